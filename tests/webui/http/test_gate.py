"""The gate before routes of ours and Gradio's, with something behind it that only says it was reached."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from agent import OPERATOR
from tests.support.tables import table
from webui.http.gate import PageGate
from webui.http.sessions import COOKIE, Sessions
from webui.words import load_words

AGAIN = load_words("en")("api.too_many_requests", seconds=5)


@dataclass
class Behind:
    """What is behind the gate: it waits, where it is told to, and answers."""

    goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.goes_on.wait()
        await PlainTextResponse("reached")(scope, receive, send)


@dataclass
class Place:
    """A page where others come, who may ask three things in a minute, and send two files."""

    folder: Path
    is_shared: bool = True
    behind: Behind = field(default_factory=Behind)

    def __post_init__(self) -> None:
        self.behind.goes_on.set()
        self.sessions = Sessions(b"s" * 32, is_shared=self.is_shared)
        self.gate = PageGate(
            self.behind,
            sessions=self.sessions,
            config=lambda: {"components": [], "dependencies": []},
            folder=lambda: self.folder,
            events_a_minute=3,
            uploads_a_minute=2,
        )

    def browser(self, owner: str | None = None, address: str = "93.184.216.1") -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.gate, client=(address, 4711)),
            base_url="http://127.0.0.1",
            cookies={COOKIE: self.sessions.new_cookie(owner)},
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_what_changes_something_is_counted_on_every_route_of_the_page(place: Place) -> None:
    ann, bob = place.browser(), place.browser()
    for path in ("/aivista/act/files.show", "/aivista/files/x/upload", "/aivista/act/gallery.star"):
        assert (await ann.post(path)).status_code == 200
    refused = await ann.post("/aivista/recipe")
    assert refused.status_code == 429
    assert refused.json()["error"].startswith(AGAIN[:20])
    assert int(refused.headers["Retry-After"]) >= 1
    assert (await bob.post("/aivista/act/files.show")).status_code == 200
    assert [(await bob.post("/import")).status_code for _ in range(2)] == [200, 200]
    told = (await bob.post("/import")).json()
    assert (told["isDone"], told["text"][:20]) == (False, AGAIN[:20])
    # To look is free, and programs are counted elsewhere.
    for path in ("/aivista/files/x/raw", "/media/x/1"):
        assert (await ann.get(path)).status_code == 200
    for path in ("/api/v1/conversations", "/v1/images/generations"):
        assert (await ann.post(path)).status_code == 200


async def test_the_page_is_counted_for_it_comes_with_all_of_a_conversation(place: Place) -> None:
    ann, bob = place.browser(), place.browser()
    assert [(await ann.get("/")).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = await ann.get("/")
    assert refused.text.startswith(AGAIN[:20])
    assert refused.headers["content-type"].startswith("text/plain")
    assert (await bob.get("/")).status_code == 200
    assert (await ann.head("/")).status_code == 200, "whoever looks whether the studio lives is shown nothing"


async def test_a_fresh_cookie_for_each_request_is_counted_by_its_address(place: Place) -> None:
    answers = [(await place.browser().post("/aivista/act/files.show")).status_code for _ in range(16)]
    assert answers == [200] * 15 + [429]
    assert (await place.browser(address="93.184.216.2").post("/aivista/act/files.show")).status_code == 200


@pytest.mark.parametrize(("method", "path"), table("page_requests")["long_ones"])
async def test_of_what_takes_long_one_is_at_work_for_a_visitor(place: Place, method: str, path: str) -> None:
    ann, bob = place.browser(), place.browser()
    place.behind.goes_on.clear()
    under_way = asyncio.create_task(ann.request(method, path))
    await asyncio.sleep(0.01)
    refused = await ann.get("/export")
    assert refused.status_code == 429
    assert refused.text == AGAIN
    others = asyncio.create_task(bob.request(method, path))
    await asyncio.sleep(0.01)
    place.behind.goes_on.set()
    assert [(await one).status_code for one in (under_way, others)] == [200, 200]
    # That was two of two: counted is each of them, let in or not.
    assert (await ann.request(method, path)).status_code == 429


async def test_nothing_is_counted_of_the_operator_and_where_nobody_else_comes(place: Place, tmp_path: Path) -> None:
    own = place.browser(OPERATOR)
    for _ in range(40):
        for path in ("/export", "/gradio_api/queue/data?session_hash=abc"):
            assert (await own.get(path)).status_code == 200
        assert (await own.post("/aivista/act/files.show")).status_code == 200
    ann = Place(tmp_path, is_shared=False).browser()
    answers = await asyncio.gather(*(ann.post("/import") for _ in range(40)))
    assert {one.status_code for one in answers} == {200}


async def test_a_stream_is_asked_for_by_one_session_and_a_file_that_nobody_has_sent_is_not_there(place: Place) -> None:
    own, ann = place.browser(OPERATOR), place.browser()
    for query in table("page_requests")["two_sessions"]:
        answer = await own.get(f"/gradio_api/queue/data?{query}")
        assert (answer.status_code, set(answer.json())) == (422, {"detail"})
    for path in ("%00", "/tmp/a%00b", f"{place.folder}/abc/a.png"):
        assert (await ann.get(f"/gradio_api/file={path}")).status_code == 404


async def test_more_than_was_announced_for_all_uploads_is_refused_before_it_comes(place: Place) -> None:
    headers = {"Content-Length": "9" * 5000, "Content-Type": "multipart/form-data"}
    assert (await place.browser().post("/gradio_api/upload", headers=headers)).status_code == 507
