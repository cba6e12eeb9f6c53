"""Actions of the page, asked for as no page asks."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from tests.adapters.webui import actions
from tests.support.cases import each_case
from tests.webui.hostile import Stranger
from tests.webui.people import Person, words


def asked(http: httpx.Client, name: str, body: bytes = b"{}", **headers: str) -> httpx.Response:
    """Ask for an action with a body as it is."""
    return http.post(f"/aivista/act/{name}", content=body, headers={"Content-Type": "application/json", **headers})


def problem(answer: httpx.Response) -> str:
    """Return the one sentence that an answer says, and nothing else."""
    [patch] = answer.json()["patches"]
    assert (patch["id"], answer.json()["events"]) == ("toast", {})
    assert 'role="alert"' in patch["html"]
    return words(patch["html"])


@each_case("name", actions())
def test_every_action_needs_our_cookie_our_origin_and_json(ann: Person, name: str) -> None:
    with httpx.Client(base_url=ann.http.base_url) as nobody:
        for cookies in ({}, {"aivista_session": "forged.0123"}):
            nobody.cookies.update(cookies)
            refused = asked(nobody, name)
            assert refused.status_code == 403
            assert problem(refused)
    assert asked(ann.http, name, Origin="https://elsewhere.example").status_code == 403
    assert problem(asked(ann.http, name, b"["))


DEEP = b'{"args":' * 500 + b"1" + b"}" * 500


@each_case("body", [b"", b"[]", b"{", b"\xff", b'{"args": []}', b'{"args": {}, "more": 1}', DEEP, b" " * (5 << 20)])
def test_what_an_action_cannot_read_is_told_in_a_sentence(ann: Person, body: bytes) -> None:
    unreadable = asked(ann.http, "shortcuts.open", body)
    assert unreadable.status_code == 400
    assert problem(unreadable)


@each_case("name", ["styles", "styles.nothing", ".open", "styles.open.x", "%00", "none.open"])
def test_what_is_no_action_is_not_there(ann: Person, name: str) -> None:
    answer = asked(ann.http, name)
    assert answer.status_code == 404
    assert problem(answer)


def test_a_stranger_who_asks_without_end_is_told_to_wait(person: Callable[..., Person]) -> None:
    stranger: Stranger = person()
    # What may be asked in a minute, and what comes back meanwhile.
    answers = (asked(stranger.http, "shortcuts.open") for _ in range(900))
    assert next(answers).status_code == 200
    refused = next(answer for answer in answers if answer.status_code != 200)
    assert refused.status_code == 429
    assert "Retry-After" in refused.headers
