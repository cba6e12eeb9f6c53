"""The gate before routes of ours and Gradio's, with something behind it that only says it was reached."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from agent.settings import OPERATOR
from tests.support.tables import table
from webui.page_gate.gate import House, PageGate
from webui.page_gate.limits import Limits, Rate
from webui.sessions import COOKIE, Sessions
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
        limits = Limits(events=Rate.of(3), uploads=Rate.of(2)) if self.is_shared else None
        house = House(self.sessions, lambda: {"components": [], "dependencies": []}, self.folder, limits)
        self.gate = PageGate(self.behind, lambda: house)

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
    for path in ("/aivista/files", "/aivista/files/x/run", "/aivista/gallery/change"):
        assert (await ann.post(path)).status_code == 200
    refused = await ann.post("/aivista/recipe")
    assert refused.status_code == 429
    assert refused.json()["error"].startswith(AGAIN[:20])
    assert int(refused.headers["Retry-After"]) >= 1
    assert (await bob.post("/aivista/files")).status_code == 200
    # To look is free, and programs are counted elsewhere.
    for path in ("/aivista/files/x/list", "/media/x/1"):
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
    answers = [(await place.browser().post("/aivista/files")).status_code for _ in range(16)]
    assert answers == [200] * 15 + [429]
    assert (await place.browser(address="93.184.216.2").post("/aivista/files")).status_code == 200


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


async def test_an_import_that_must_wait_says_so_where_the_page_reads_it(place: Place) -> None:
    ann = place.browser()
    for _ in range(2):
        assert (await ann.post("/import")).status_code == 200
    told = (await ann.post("/import")).json()
    assert told["isDone"] is False
    assert told["text"].startswith(AGAIN[:20])


async def test_the_operator_is_held_by_no_limit(place: Place) -> None:
    own = place.browser(OPERATOR)
    for _ in range(40):
        assert (await own.post("/aivista/files")).status_code == 200
        assert (await own.get("/export")).status_code == 200
        assert (await own.get("/gradio_api/queue/data?session_hash=abc")).status_code == 200


async def test_where_nobody_else_comes_nothing_is_counted(tmp_path: Path) -> None:
    ann = Place(tmp_path, is_shared=False).browser()
    answers = await asyncio.gather(*(ann.post("/import") for _ in range(40)))
    assert {one.status_code for one in answers} == {200}


@pytest.mark.parametrize("query", table("page_requests")["two_sessions"])
async def test_a_stream_is_asked_for_by_one_session(place: Place, query: str) -> None:
    answer = await place.browser(OPERATOR).get(f"/gradio_api/queue/data?{query}")
    assert answer.status_code == 422
    assert set(answer.json()) == {"detail"}


@pytest.mark.parametrize("path", ["%00", "/tmp/a%00b", "{folder}/abc/a.png"])
async def test_a_file_that_nobody_has_sent_is_not_there(place: Place, path: str) -> None:
    answer = await place.browser().get(f"/gradio_api/file={path.format(folder=place.folder)}")
    assert answer.status_code == 404


async def test_more_than_was_announced_for_all_uploads_is_refused_before_it_comes(place: Place) -> None:
    headers = {"Content-Length": "9" * 5000, "Content-Type": "multipart/form-data"}
    assert (await place.browser().post("/gradio_api/upload", headers=headers)).status_code == 507
