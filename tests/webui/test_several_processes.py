"""Several processes on one home: a page, an MCP server and a script paint in one conversation, one after another and at
once. Nothing is lost or paid twice, and all of them tell the same."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from agent import Conversation, PictureReady, Settings, Studio, TurnDone, TurnState
from tests.adapters.records import Housekeeping
from tests.page import PageProcess
from tests.support.api import sent
from tests.support.children import StudioChild
from tests.support.gemini import KEY, SMALL, on_gemini, paint
from tests.support.mcp_pipes import on_pipes
from tests.support.scenes import of_type, run
from tests.support.turns import rows
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold

PATIENCE_S = 120

CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from pydantic import SecretStr
from agent import Settings, Studio, TurnRequest

async def main(home, url, key, conversation_id, wish, moment=""):
    async with Studio(Settings(home=Path(home), gemini_api_key=SecretStr(key), gemini_base_url=url)) as studio:
        if not conversation_id:
            conversation_id = (await studio.conversations.create()).id
            print(conversation_id, flush=True)
        async for event in studio.run_turn(conversation_id, TurnRequest(text=wish)):
            if moment and moment in (event.type, getattr(event, "step", None)):
                os.kill(os.getpid(), signal.SIGKILL)
            if not moment:
                print(event.type, flush=True)
        await asyncio.sleep(60 if moment else 0)

asyncio.run(main(*sys.argv[1:]))
"""


@dataclass
class Writers:
    """A page, met over its HTTP API, an MCP server on its pipes, and a studio of the test's own, all on one home."""

    home: Path
    http: httpx.AsyncClient
    mcp: Client
    script: Studio

    async def page_paints(self, conversation_id: str, wish: str, request_id: str | None = None) -> list[str]:
        """Send a turn over the page's API; return the handles of its pictures. It must come to its end."""
        events = await sent(self.http, conversation_id, wish, request_id=request_id)
        assert (events[-1].event, events[-1].data["state"]) == ("done", "done"), events
        return [one.data["handle"] for one in events if one.event == "image"]

    async def mcp_paints(self, conversation_id: str, wish: str, request_id: str | None = None) -> list[str]:
        asked = {"wish": wish, "conversation_id": conversation_id, "request_id": request_id}
        result = await self.mcp.call_tool("generate", asked)
        assert not result.is_error, result.content
        assert result.structured_content["state"] == "done"
        return [picture["handle"] for picture in result.structured_content["pictures"]]

    async def script_paints(self, conversation_id: str, wish: str) -> list[str]:
        events = await run(self.script, conversation_id, wish)
        assert isinstance(events[-1], TurnDone), events[-1]
        return [event.picture.handle for event in of_type(events, PictureReady)]

    @property
    def all(self) -> Sequence[Callable[[str, str], Awaitable[list[str]]]]:
        """Each of the three ways to paint."""
        return self.page_paints, self.mcp_paints, self.script_paints

    async def page_shows(self, conversation_id: str) -> list[str]:
        """Return the handles that the page's process tells of a conversation."""
        answer = (await self.http.get(f"/api/v1/conversations/{conversation_id}/pictures")).json()
        return [picture["handle"] for picture in answer["pictures"]]


@asynccontextmanager
async def writers(home: Path, **environment: str) -> AsyncIterator[Writers]:
    settings = Settings(home=home, retry_budget_s=0)
    if environment:
        settings = on_gemini(settings, environment["GOOGLE_GEMINI_BASE_URL"])
    with PageProcess(home=home, environment=environment) as page:
        async with (
            on_pipes(home, environment=environment) as mcp,
            httpx.AsyncClient(base_url=page.url, timeout=PATIENCE_S) as http,
            Studio(settings) as script,
        ):
            yield Writers(home, http, mcp, script)


def in_a_line(conversation: Conversation) -> bool:
    """Whether each turn follows the one before it, and there is no other branch."""
    before = [None, *(turn.id for turn in conversation.turns)]
    return not conversation.forks and [turn.parent for turn in conversation.turns] == before[:-1]


def paid(home: Path) -> dict[str, int]:
    """Return how often each picture's call was sent, by turn."""
    calls = rows(home / "aivista.db", "SELECT turn_id, name, attempts FROM calls WHERE name LIKE 'picture:%'")
    return {f"{call['turn_id']} {call['name']}": call["attempts"] for call in calls}


async def test_page_mcp_server_and_script_paint_and_nothing_is_lost_or_paid_twice(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with writers(home) as three:
        conversation = await three.script.conversations.create()
        wishes = [(three.all[number % 3], f"Draw a red fox, number {number}") for number in range(12)]
        made = [await way(conversation.id, wish) for way, wish in wishes[:3]]
        assert made == [["#1"], ["#2"], ["#3"]]
        made += await asyncio.gather(*(way(conversation.id, wish) for way, wish in wishes[3:]))
        kept = await three.script.conversations.get(conversation.id)
        handles = [f"#{number}" for number in range(1, 13)]
        assert await three.page_shows(conversation.id) == handles
        # One request is one turn in whichever process it comes.
        other, ways = await three.script.conversations.create(), [three.page_paints, three.mcp_paints] * 10
        once = await asyncio.gather(*(way(other.id, "Draw a red fox", "press-1") for way in ways))
        once.append(await three.page_paints(other.id, "Draw a red fox", "press-1"))
        kept_once = await three.script.conversations.get(other.id)
    assert sorted(handle for one in made for handle in one) == sorted(handles)
    assert [turn.state for turn in kept.turns] == [TurnState.DONE] * 12
    assert in_a_line(kept)
    # What each was told of is what is on record: the turn that asked for it made that very picture.
    made_in = {turn.id: turn.text for turn in kept.turns}
    told = {wish: handle for (_, wish), (handle,) in zip(wishes, made, strict=True)}
    assert {made_in[picture.turn_id]: picture.handle for picture in kept.pictures} == told
    assert once == [["#1"]] * 21
    assert len(kept_once.turns) == len(kept_once.pictures) == 1
    assert list(paid(home).values()) == [1] * 13
    assert Housekeeping(home).check().findings == ()


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


async def test_a_process_killed_in_mid_turn_holds_up_nobody(server: GeminiServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    server.on_text(lambda request: paint("a fox"))
    server.on_image(SMALL, Hold(SMALL), lambda request: SMALL)
    environment = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.url}
    async with writers(home, **environment) as three:
        conversation = await three.script.conversations.create()
        assert await three.page_paints(conversation.id, "a fox") == ["#1"]
        with StudioChild(CHILD, str(home), server.url, KEY, conversation.id, "a doomed fox") as child:
            assert await child.line() == "turn_started"
            await asyncio.to_thread(server.wait_for_held)
            waiting = [asyncio.ensure_future(way(conversation.id, "a fox at dusk")) for way in three.all]
            done, _ = await asyncio.wait(waiting, timeout=1)
            assert not done, "they wait behind the turn that runs"
            child.kill()
            assert await child.ended() == -signal.SIGKILL
            made = await asyncio.gather(*waiting)
        kept = await three.script.conversations.get(conversation.id)
        server.release()
    assert sorted(handle for handles in made for handle in handles) == ["#2", "#3", "#4"]
    states = [turn.state for turn in kept.turns]
    assert states == [TurnState.DONE, TurnState.INTERRUPTED, *[TurnState.DONE] * 3]
    assert in_a_line(kept)
    assert sum(request.kind == "image" for request in server.requests) == 5
    assert Housekeeping(home).check().findings == ()


async def followed(studio: Studio, conversation_id: str) -> list[str]:
    return [event.type async for event in studio.attach(conversation_id)]


async def test_stop_reaches_a_turn_of_another_process(server: GeminiServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    server.on_text(paint("a fox"))
    server.on_image(Hold(SMALL))
    settings = on_gemini(Settings(home=home, retry_budget_s=0), server.url)
    async with Studio(settings) as studio:
        conversation = await studio.conversations.create()
        with StudioChild(CHILD, str(home), server.url, KEY, conversation.id, "a fox") as child:
            assert await child.line() == "turn_started"
            await asyncio.to_thread(server.wait_for_held)
            assert not studio.turns.is_running(conversation.id)
            following = asyncio.create_task(followed(studio, conversation.id))
            assert await studio.cancel(conversation.id)
            [turn] = (await studio.conversations.get(conversation.id)).turns
            assert turn.state is TurnState.STOPPED
            assert (await following)[-1] == "turn_stopped"
            server.release()
            while await child.line() != "turn_stopped":  # raises when there is no other line
                pass
            assert await child.ended() == 0
        kept = await studio.conversations.get(conversation.id)
    assert [(one.handle, one.after_stop) for one in kept.pictures] == [("#1", True)]


async def test_a_turn_of_a_killed_process_is_taken_over_and_paid_once(server: GeminiServer, tmp_path: Path) -> None:
    home, painted = tmp_path / "home", 0
    environment = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.url}
    with PageProcess(home=home, environment=environment) as page:
        async with httpx.AsyncClient(base_url=page.url, timeout=PATIENCE_S) as http:
            for moment in ("turn_started", "thinking", "painting_started", "picture_ready", "painted"):
                server.clear()
                server.on_text(lambda request: paint("a fox"))
                server.on_image(lambda request: SMALL)
                with StudioChild(CHILD, str(home), server.url, KEY, "", "a fox", moment) as child:
                    conversation_id = await child.line()
                    assert await child.ended() == -signal.SIGKILL

                async def rested(conversation_id: str = conversation_id) -> Any:
                    # Nobody may ask more than 600 times a minute.
                    await asyncio.sleep(0.15)
                    kept = (await http.get(f"/api/v1/conversations/{conversation_id}")).json()
                    return kept if kept["turns"][-1]["state"] in ("done", "failed") else None

                kept = await until(rested, PATIENCE_S)
                [turn] = kept["turns"]
                images = sum(request.kind == "image" for request in server.requests)
                painted, made = painted + images, [one["handle"] for one in kept["pictures"]]
                # Where the last words of the dead process were a question, nothing is asked again unasked.
                expected = {"done": ["#1"], "failed": []}
                assert made == expected[turn["state"]], moment
                assert images <= 1, moment
    assert painted >= 3
    assert Housekeeping(home).check().is_fine
