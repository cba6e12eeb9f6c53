"""The trace's addresses over real records: each owner's turns alone, a page at a time, all of it as files."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from agent.conversation import Conversation, TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.storage.traces import Traces
from agent.trace import StepKind, TraceStep
from tests.support.galleries import Filled, filled
from tests.support.histories import begun_turn
from tests.support.traces import traced
from webui.guard import Guard, HostRules
from webui.sessions import COOKIE, Sessions
from webui.trace_routes import PAGE_TURNS, trace_routes

BROKEN = ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "Flash"})


@dataclass(frozen=True)
class Studio:
    """What the routes need of the studio."""

    kept: Filled

    async def conversation(self, conversation_id: str, owner: str) -> Conversation:
        return await self.kept.store.get(conversation_id, owner)

    @property
    def traces(self) -> Traces:
        return self.kept.store.traces


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as one:
        yield one


@asynccontextmanager
async def browser(
    kept: Filled, sessions: Sessions, cookie: str | None, language: str = "en"
) -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(
        routes=trace_routes(lambda: Studio(kept), sessions),
        middleware=[Middleware(Guard, rules=HostRules(is_loopback=True), sessions=sessions)],
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1:7860/aivista/trace/",
        cookies={COOKIE: cookie} if cookie is not None else {},
        headers={"Accept-Language": language},
    ) as client:
        yield client


@pytest.fixture
async def page(kept: Filled) -> AsyncIterator[httpx.AsyncClient]:
    sessions = Sessions(b"s" * 32)
    async with browser(kept, sessions, sessions.new_cookie()) as client:
        yield client


async def talk(kept: Filled, turns: int = 1, owner: str = "local") -> str:
    """Return a conversation of so many turns, t1 and on, each with a node and a call in it."""
    one = await kept.store.create(owner, "A talk")
    for number in range(1, turns + 1):
        parent = f"t{number - 1}" if number > 1 else None
        turn = begun_turn(f"t{number}", f"wish {number}", parent=parent)
        await kept.store.begin_turn(one.id, turn)
        await kept.store.finish_turn(one.id, turn.model_copy(update={"state": TurnState.DONE, "seconds": 3.0}))
        node = traced(1, f"t{number}", StepKind.NODE, name="planner", led_to="presenter", sent={}, came={})
        await add(kept, one.id, node, traced(2, f"t{number}", within=1, model_label="Flash", price_usd=0.25))
    return one.id


async def add(kept: Filled, conversation_id: str, *steps: TraceStep) -> None:
    for step in steps:
        kept.store.traces.keep(conversation_id, partial(TraceStep.model_copy, step))
    await kept.store.traces.settled()


def turns(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [turn["id"] for turn in answer.json()["turns"]]


async def test_turns_come_a_page_at_a_time_and_only_the_newest_is_open(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await talk(kept, PAGE_TURNS + 2)
    first = await page.get(conversation)
    assert turns(first) == [f"t{number}" for number in range(3, PAGE_TURNS + 3)]
    assert first.json()["has_more"] is True
    opened = [turn["id"] for turn in first.json()["turns"] if 'class="trc-steps"' in turn["html"]]
    assert opened == [f"t{PAGE_TURNS + 2}"]
    before = await page.get(conversation, params={"before": "t3"})
    assert (turns(before), before.json()["has_more"]) == (["t1", "t2"], False)
    assert turns(await page.get(conversation, params={"since": f"t{PAGE_TURNS + 1}"})) == ["t21", "t22"]
    assert first.headers["cache-control"] == "no-store"


async def test_a_turn_and_a_step_are_fetched_when_they_are_opened(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await talk(kept, 2)
    inside = (await page.get(f"{conversation}/t1")).json()["html"]
    assert re.findall(r'data-number="(\d+)"', inside) == ["1", "2"]
    assert "$0.250" in inside
    assert "Be kind." not in inside
    step = (await page.get(f"{conversation}/t1/2")).json()["html"]
    assert "Be kind." in step
    assert "a fox" in step


async def test_files_hold_the_steps_as_they_are_on_record(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await talk(kept, 2)
    steps = await kept.store.traces.steps(conversation)
    for path, expected, name in (
        (f"{conversation}.json", steps, conversation),
        (f"{conversation}/t2.json", steps[2:], "t2"),
        (f"{conversation}/t2/2.json", steps[3:], "step"),
    ):
        answer = await page.get(path)
        assert answer.status_code == 200
        assert answer.json()["steps"] == [step.model_dump(mode="json") for step in expected]
        assert answer.headers["content-disposition"] == f'attachment; filename="aivista-trace-{name}.json"'
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["", ".json", "/t1", "/t1.json", "/t1/1", "/t1/1.json"])
async def test_every_address_wants_our_cookie_and_its_owner(kept: Filled, path: str) -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    mine, theirs = sessions.new_cookie(), sessions.new_cookie()
    conversation = await talk(kept, 1, sessions.owner(sessions.token_of(mine)))
    for cookie, status in ((mine, 200), (theirs, 404), (None, 403), ("forged.cookie", 403)):
        async with browser(kept, sessions, cookie) as client:
            answer = await client.get(f"{conversation}{path}")
        assert answer.status_code == status
        if status != 200:
            assert answer.json()["error"]
            assert "planner" not in answer.text


@pytest.mark.parametrize(
    "path", ["nobody", "nobody.json", "{}/t9", "{}/t9.json", "{}/t1/9", "{}/t1/99999999999999.json"]
)
async def test_what_is_not_there_is_told_in_a_sentence(kept: Filled, page: httpx.AsyncClient, path: str) -> None:
    answer = await page.get(path.format(await talk(kept)))
    assert answer.status_code == 404
    assert answer.json()["error"].endswith(".")


async def test_a_turn_that_is_older_than_what_is_kept_says_so(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await kept.conversation(turn_id="old")
    [turn] = (await page.get(conversation)).json()["turns"]
    assert "No steps are on record" in turn["html"]


async def test_pictures_are_shown_by_handle_and_others_named_by_digest(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await talk(kept)
    await kept.add(conversation)
    [picture] = (await kept.store.get(conversation, "local")).all_pictures
    known = {"type": "image", "digest": picture.image.digest, "mime_type": "image/png", "width": 64, "height": 36}
    gone = {"type": "image", "digest": "e" * 64, "mime_type": "image/png", "width": None, "height": None}
    await add(kept, conversation, traced(3, came={"parts": [known, gone]}))
    shown = (await page.get(f"{conversation}/t1/3")).json()["html"]
    assert re.findall(r'src="([^"]+)"', shown) == [f"media/{conversation}/{picture.handle.lstrip('#')}?size=192"]
    assert "eeeeeeeeeeee…" in shown


async def test_a_running_turn_shows_its_node_before_that_has_ended(kept: Filled, page: httpx.AsyncClient) -> None:
    one = await kept.store.create("local", "A talk")
    await kept.store.begin_turn(one.id, begun_turn("t1"))
    await add(kept, one.id, traced(2, within=1, node="planner", model_label="Flash"))
    [turn] = (await page.get(one.id)).json()["turns"]
    assert turn["is_running"] is True
    assert re.findall(r'class="trc-step (\w+)[^"]*" data-number="(\d)"', turn["html"]) == [("node", "1"), ("call", "2")]
    await add(kept, one.id, traced(1, kind=StepKind.NODE, name="planner", sent={}, came={}))
    [turn] = (await page.get(one.id)).json()["turns"]
    assert turn["html"].count('data-number="1"') == 1


async def test_the_answer_speaks_the_visitors_language(kept: Filled) -> None:
    sessions = Sessions(b"s" * 32)
    conversation = await talk(kept)
    await add(kept, conversation, traced(3, error=BROKEN, has_failed=True))
    async with browser(kept, sessions, sessions.new_cookie(), "zh-CN") as client:
        shown = (await client.get(f"{conversation}/t1")).json()["html"]
    assert "用时" in shown
    assert "trouble" in shown
    told: Any = json.dumps(shown, ensure_ascii=False)
    assert "overloaded" not in told
