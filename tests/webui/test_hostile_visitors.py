"""What a hostile visitor tries at a running studio, one test for each thing, and what becomes of it: nothing.

Two studios run: one of a single person on this machine, and one that others reach, where each browser is a visitor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.page import PageProcess
from tests.support.api import png
from tests.support.cases import each_case
from tests.support.tables import table
from tests.webui.hostile import SECRET, Stranger
from tests.webui.people import Person

MB = 1 << 20


@pytest.fixture
def stranger(own: PageProcess) -> Iterator[Stranger]:
    one = Stranger(own.url)
    yield one
    one.close()


def file_at(path: str) -> dict[str, Any]:
    """Return a path as Gradio's client names an uploaded file."""
    return {"path": path, "orig_name": "a.png", "mime_type": "image/png", "meta": {"_type": "gradio.FileData"}}


def hostile_values(path: str) -> list[Any]:
    """Return what somebody puts where the page puts a word, a number, or a message with files."""
    message = {"text": "a fox", "files": [file_at(path)]}
    nowhere = {"url": "http://127.0.0.1:1/", "meta": {"_type": "gradio.FileData"}}
    values = [file_at(path), message, {"text": "a fox", "files": [path]}, nowhere, [[[[path]]]], 1e308, -1, True]
    values += [{"text": {"path": path}, "files": {"path": path}}, {"__type__": "update", "value": path}]
    return [*values, "\u0000\u202e<script>alert(1)</script>../../etc/passwd", "x" * (3 * MB)]


@pytest.mark.parametrize(
    "where", ["/etc/passwd", "/proc/self/environ", "notes.txt", "{home}/session.secret", "{notes}"]
)
def test_no_event_reads_a_file_by_its_path(own: PageProcess, stranger: Stranger, where: str) -> None:
    path = where.format(home=own.home, notes=own.home.parent / "notes.txt")
    for number in stranger.events:
        for value in (file_at(path), {"text": "", "files": [file_at(path)]}):
            data = [value if kind != "state" else None for kind in stranger.events[number]]
            answer = stranger.join(number, data)
            # An event without inputs has no place for one.
            assert answer.status_code == 422 or not set(stranger.events[number]) - {"state"}, answer.text
        plain = stranger.plain(number)
        assert stranger.join(number, plain, event_data=file_at(path)).status_code == 404


@each_case("path", table("page_requests")["files_of_the_machine"])
def test_no_address_serves_a_file_of_the_machine(own: PageProcess, stranger: Stranger, path: str) -> None:
    for prefix in ("/gradio_api/file=", "/file=", "/gradio_api/file/"):
        answer = stranger.http.get(prefix + path.format(home=own.home))
        assert answer.status_code in (403, 404), (prefix, path)
        assert SECRET not in answer.text


def test_an_upload_is_served_to_whoever_sent_it_and_taken_from_nobody_else(person: Callable[..., Person]) -> None:
    victim, other = person(), person()
    [path] = victim.upload("a.png", png()).json()
    assert victim.http.get(f"/gradio_api/file={path}").status_code == 200
    assert other.http.get(f"/gradio_api/file={path}").status_code == 404
    # Nor is one that nobody is known to have sent.
    left = Path(path).with_name("left.png")
    left.write_bytes(png("green"))
    assert victim.http.get(f"/gradio_api/file={left}").status_code == 404
    twisted = path.replace("/uploads/", "/uploads/./../uploads/")
    for strange in (twisted, "%00", f"{path}%00", "%ED%A0%80"):
        assert other.http.get(f"/gradio_api/file={strange}").status_code in (403, 404)
    send = victim.number("send")
    data = other.plain(send)
    data[other.events[send].index("multimodaltextbox")] = {"text": "my fox", "files": [file_at(path)]}
    assert other.join(send, data).status_code == 404
    # Whoever has the very same file may send it as well.
    assert other.upload("a.png", png()).json() == [path]
    assert other.http.get(f"/gradio_api/file={path}").status_code == 200


def test_a_page_that_was_uploaded_is_never_shown_as_one(stranger: Stranger) -> None:
    [path] = stranger.upload("x.html", b"<script>alert(1)</script>").json()
    answer = stranger.http.get(f"/gradio_api/file={path}")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert not answer.headers["content-type"].startswith("text/html")
    [flat] = stranger.upload("../../../x.png", png()).json()
    assert ".." not in flat


def test_a_session_of_the_page_opens_to_nobody_but_the_browser_that_began_it(person: Callable[..., Person]) -> None:
    victim = person()
    number = victim.number("chat")
    event = victim.join(number, victim.plain(number)).json()["event_id"]
    thieves = person(), person()
    thieves[1].has_cookie = False
    for thief in thieves:
        thief.session = victim.session
        assert thief.http.get(f"/gradio_api/queue/data?session_hash={victim.session}").status_code == 404
        doubled = f"session_hash={thief.session}a&session_hash={victim.session}"
        assert thief.http.get(f"/gradio_api/queue/data?{doubled}").status_code == 422
        assert thief.http.get(f"/gradio_api/heartbeat/{victim.session}").status_code == 404
        assert thief.join(number, thief.plain(number)).status_code == 404
        narrow = thief.number("narrow")
        assert thief.join(narrow, thief.plain(narrow)).status_code == 404
        cancel = {"session_hash": victim.session, "fn_index": number, "event_id": event}
        assert thief.http.post("/gradio_api/cancel", json=cancel).status_code == 404
        assert thief.http.get(f"/gradio_api/deep_link?session_hash={victim.session}").status_code == 404
    assert victim.told(event)[-1]["msg"] == "process_completed"


def test_a_session_has_a_browsers_name_and_none_that_is_missing_is_logged(own: PageProcess, stranger: Stranger) -> None:
    number, before = stranger.number("stop"), own.errors
    for session in ("", "../x", "x" * 65, "a b", "ü", 7, ["x"], {"x": 1}):
        assert stranger.join(number, stranger.plain(number), session_hash=session).status_code == 422
    answer = stranger.http.get("/gradio_api/queue/data?session_hash=unknown1")
    assert '"session_not_found":true' in answer.text
    assert own.errors == before


def test_what_belongs_to_another_is_not_reached_by_any_event(person: Callable[..., Person]) -> None:
    victim, other = person(), person()
    conversation = victim.says(f"Draw a fox. {SECRET}")
    click = {"act": "open", "arg": conversation}
    for number, kinds in other.events.items():
        values = zip(kinds, other.plain(number), strict=True)
        hostile = [conversation if kind == "textbox" else value for kind, value in values]
        for event_data in (None, click):
            answer = other.join(number, hostile, event_data=event_data)
            if answer.status_code == 200:
                assert SECRET not in other.heard(answer), number
    for path in (f"/media/{conversation}/1", f"/aivista/thread/{conversation}"):
        assert other.http.get(path).status_code == 404
    for path in (f"export/{conversation}", f"aivista/trace/{conversation}.json", f"aivista/files/{conversation}/list"):
        assert SECRET not in other.http.get(f"/{path}").text
    assert SECRET not in str(other.act("trace.show", conversation))
    for name, args in (("open", {"arg": conversation}), ("view", {"arg": "#1"})):
        assert SECRET not in str(other.ask(f"page.{name}", conversation, **args)), name
    # And it is all still there.
    assert SECRET in victim.shown(conversation)


def test_the_page_tells_a_visitor_nothing_of_anybody_else(public: PageProcess, person: Callable[..., Person]) -> None:
    answers = [person().http.get(path).text for path in ("/config", "/gradio_api/info", "/")]
    for told in answers:
        assert SECRET not in told
        assert str(public.home) not in told


def test_private_events_are_no_less_careful_when_they_are_called_by_number(stranger: Stranger) -> None:
    for value in hostile_values("/etc/passwd"):
        for number, kinds in stranger.events.items():
            data = [value if kind != "state" else None for kind in kinds]
            answer = stranger.join(number, data)
            if answer.status_code == 200:
                assert "root:" not in stranger.heard(answer)
                continue
            assert answer.status_code in (404, 413, 422), answer.text
            assert set(answer.json()) == {"detail"}
            stateful = [
                "x" if kind == "state" else one for kind, one in zip(kinds, stranger.plain(number), strict=True)
            ]
            assert "state" not in kinds or stranger.join(number, stateful).status_code == 422


EVENT = '{"data": [], "fn_index": 2, "event_data": %s}'
DEEP = ("[" * 600 + "]" * 600, '{"x":' * 600 + "1" + "}" * 600)


@each_case("body", [*table("page_requests")["no_events"], "[" * 200_000, *(EVENT % deep for deep in DEEP)])
def test_a_body_that_is_no_event_is_refused_in_a_sentence(stranger: Stranger, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    for path in ("queue/join", "run/predict", "call/chat"):
        answer = stranger.http.post(f"/gradio_api/{path}", content=body.encode("latin-1"), headers=headers)
        assert (answer.status_code, set(answer.json())) == (422, {"detail"})


def test_a_message_with_half_a_character_is_sent_all_the_same(stranger: Stranger) -> None:
    send = stranger.number("send")
    data = stranger.plain(send)
    data[stranger.events[send].index("multimodaltextbox")] = {"text": "a fox \ud83d", "files": []}
    body = json.dumps({"fn_index": send, "data": data, "session_hash": stranger.session, "event_data": None})
    headers = {"Content-Type": "application/json"}
    assert stranger.http.post(stranger.path(send), content=body, headers=headers).status_code == 200


def test_five_megabytes_of_text_are_too_much_however_they_come(
    stranger: Stranger, person: Callable[..., Person]
) -> None:
    send = stranger.number("send")
    data = stranger.plain(send)
    place = stranger.events[send].index("multimodaltextbox")
    data[place] = {"text": "x" * (5 * MB), "files": []}
    assert stranger.join(send, data).status_code == 413

    def without_length() -> Iterator[bytes]:
        for _ in range(5):
            yield b"x" * MB

    assert stranger.http.post("/gradio_api/queue/join", content=without_length()).status_code == 413
    # What fits through the door is still more than a message may be.
    assert 'data-code="text_too_long"' in person().send("x" * MB)


@each_case("host", ["evil.test", "127.0.0.1.evil.test", "evil.test:{port}"])
def test_a_name_that_was_pointed_at_this_machine_finds_nothing(own: PageProcess, host: str) -> None:
    name = host.format(port=own.port)
    headers = {"Host": name, "Origin": f"http://{name}"}
    with httpx.Client(base_url=own.url, headers=headers) as client:
        for path in ("/", "/config", "/gradio_api/info", "/healthz", "/readyz", "/media/x/1"):
            answer = client.get(path)
            assert answer.status_code == 403
            assert "host name" in answer.text
        assert client.post("/gradio_api/queue/join", json={}).status_code == 403


@each_case("origin", ["http://evil.test", "null", "http://localhost:9999", "https://{host}.evil.test", "http://[x"])
def test_a_page_of_another_site_cannot_read_send_or_upload(stranger: Stranger, own: PageProcess, origin: str) -> None:
    headers = {"Origin": origin.format(host="127.0.0.1")}
    for path in ("/", "/config", "/gradio_api/queue/data?session_hash=x"):
        assert stranger.http.get(path, headers=headers).status_code == 403
    assert stranger.upload("a.png", png(), **headers).status_code == 403
    for path in ("queue/join", "cancel", "call/chat", "component_server"):
        answer = stranger.http.post(f"/gradio_api/{path}", json={}, headers=headers)
        assert answer.status_code == 403
        assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api/v1/conversations", "application/problem+json"), ("/v1/images/generations", "application/json")],
)
def test_a_program_that_is_turned_away_reads_why_in_the_form_it_knows(own: PageProcess, path: str, kind: str) -> None:
    for headers, code in ({"Host": "evil.test"}, "foreign_host"), ({"Origin": "null"}, "foreign_origin"):
        answer = httpx.post(own.url + path, json={}, headers=headers)
        assert answer.status_code == 403
        assert answer.headers["content-type"].startswith(kind)
        told = answer.json()
        assert (told.get("error") or told)["code"] == code


def test_one_visitor_cannot_fill_the_studio_with_files(person: Callable[..., Person]) -> None:
    greedy, other = person(), person()
    [path] = other.upload("small.png", png("blue")).json()
    before = set(Path(path).parents[1].rglob("*"))
    assert person().upload("a.png", b"x" * (21 * MB)).status_code == 413
    assert set(Path(path).parents[1].rglob("*")) <= before
    answers = [greedy.upload(f"{number}.png", b"x" * (19 * MB)).status_code for number in range(22)]
    assert (answers[:20], answers[-1]) == ([200] * 20, 507)
    assert other.upload("a.png", png()).status_code == 200


def test_whoever_asks_too_often_is_told_when_to_come_back(person: Callable[..., Person]) -> None:
    other = person()

    def press(one: Person) -> httpx.Response:
        return one.join(number, data)

    def change(one: Person) -> httpx.Response:
        return one.http.post("/aivista/act/gallery.star", json={})

    number = other.number("stop")
    data = other.plain(number)
    for ask, usual in ((press, 200), (change, 400)):
        eager = person()
        # Leave comes back while one asks: how many it takes is a matter of how fast the machine answers.
        refused = next(one for one in (ask(eager) for _ in range(3000)) if one.status_code != usual)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) >= 1
        assert ask(other).status_code == usual
    assert set(refused.json()) == {"error"}


@each_case(("method", "path"), table("page_requests")["nothing_there"])
def test_what_the_page_has_no_use_for_is_not_there(stranger: Stranger, method: str, path: str) -> None:
    answer = stranger.http.request(method, path, json={} if method == "POST" else None)
    # An event that is private has no name.
    assert answer.status_code in ((404, 422) if path.endswith("call/send") else (403, 404, 405))
