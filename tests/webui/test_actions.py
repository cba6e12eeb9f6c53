"""Actions of the page, asked for as no page asks."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.adapters.page import actions
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


@pytest.mark.parametrize("name", actions())
def test_an_action_needs_our_cookie(ann: Person, name: str) -> None:
    with httpx.Client(base_url=ann.http.base_url) as nobody:
        for cookies in ({}, {"aivista_session": "forged.0123"}):
            nobody.cookies.update(cookies)
            refused = asked(nobody, name)
            assert refused.status_code == 403
            assert problem(refused)


@pytest.mark.parametrize("name", actions())
def test_an_action_needs_our_origin_and_json(ann: Person, name: str) -> None:
    assert asked(ann.http, name, Origin="https://elsewhere.example").status_code == 403
    deep = b'{"args":' * 500 + b"1" + b"}" * 500
    for body in (b"", b"[]", b"{", b"\xff", b'{"args": []}', b'{"args": {}, "more": 1}', deep, b" " * (5 << 20)):
        unreadable = asked(ann.http, name, body)
        assert unreadable.status_code == 400, body[:20]
        assert problem(unreadable)


@pytest.mark.parametrize("name", ["styles", "styles.nothing", ".open", "styles.open.x", "%00", "none.open"])
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
