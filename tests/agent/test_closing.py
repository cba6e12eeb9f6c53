"""A studio that is told to close: no turn begins any more, those at work may end, and the rest goes on at its next
start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from agent.components import SmartCanvas
from agent.conversation import TurnState
from agent.errors import ErrorCode
from agent.events import (
    PaintingStarted,
    Step,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
)
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.adapters.records import CallState
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import of_type, run
from tests.support.turns import asked, at_rest, calls_on_disk
from tests.wire_server import GeminiServer, Hold, Text
from tests.wire_server.models import Kind


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def gemini(settings: Settings, server: GeminiServer) -> Settings:
    return on_gemini(settings, server.url)


def refusal_of(events: list[TurnEvent]) -> ErrorCode:
    [event] = events
    assert isinstance(event, TurnFailed)
    return event.error.code


async def test_a_turn_at_work_ends_within_the_grace_and_a_new_one_is_refused_in_a_sentence(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(paint())
    server.on_image(Hold(SMALL))
    async with Studio(gemini) as studio:
        assert await studio.not_ready() == ()
        painting, other = await studio.new_conversation(), await studio.new_conversation()
        turn = asyncio.create_task(run(studio, painting.id, "a fox"))
        await asyncio.to_thread(server.wait_for_held)
        closing = asyncio.create_task(studio.wind_down(30))
        await asyncio.sleep(0)
        assert await studio.not_ready() == ("turns",)
        assert refusal_of(await run(studio, other.id, "a dog")) is ErrorCode.STUDIO_CLOSING
        assert refusal_of(await run(studio, painting.id, "another fox")) is ErrorCode.STUDIO_CLOSING
        server.release()
        await closing
        assert isinstance((await turn)[-1], TurnDone)
    async with Studio(gemini) as studio:
        kept = await studio.conversation(painting.id)
        assert [one.state for one in kept.turns] == [TurnState.DONE]
        assert [one.handle for one in kept.pictures] == ["#1"]
        assert (await studio.conversation(other.id)).turns == ()
    assert asked(server, Kind.IMAGE) == 1


async def test_what_waits_in_line_is_told_at_once_and_is_nowhere_on_record(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(Hold(Text("One two three", chunks=3), after_chunks=1))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        first = asyncio.create_task(run(studio, conversation.id, "count"))
        await asyncio.to_thread(server.wait_for_held)
        waiting = studio.run_turn(conversation.id, TurnRequest(text="and then a fox"))
        told = await anext(waiting)
        assert isinstance(told, ThoughtLog)
        assert told.step is Step.WAITING
        closing = asyncio.create_task(studio.wind_down(30))
        # The one before it is still at work.
        assert refusal_of([event async for event in waiting]) is ErrorCode.STUDIO_CLOSING
        server.release()
        await closing
        assert isinstance((await first)[-1], TurnDone)
        kept = await studio.conversation(conversation.id)
        assert [turn.text for turn in kept.turns] == ["count"]


async def test_a_paid_call_that_outlasts_the_grace_is_told_as_such_and_made_again_only_by_a_click(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(paint())
    server.on_image(Hold(SMALL))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "a fox"))
        await asyncio.to_thread(server.wait_for_held)
        await studio.wind_down(0)
    last = (await turn)[-1]
    assert isinstance(last, TurnPaused)
    assert last.is_cut
    [call] = [row for name, row in calls_on_disk(gemini.home).items() if name.startswith("picture")]
    assert call["state"] == CallState.SENT
    server.clear()
    server.on_image(SMALL)
    async with Studio(gemini) as studio:
        kept = await at_rest(studio, conversation.id)
        assert kept.turns[0].state is TurnState.FAILED
        assert ErrorCode.CALL_UNKNOWN in kept.turns[0].model_dump_json()
        assert asked(server, Kind.IMAGE) == 0
        events = [event async for event in studio.retry(conversation.id, kept.turns[0].id)]
        assert isinstance(events[-1], TurnDone)
        assert [one.handle for one in (await studio.conversation(conversation.id)).pictures] == ["#1"]


@pytest.mark.parametrize("kind", [TurnStarted, ThoughtLog, TextDelta, PaintingStarted])
async def test_a_studio_that_is_left_in_a_turn_has_it_go_on_at_the_next_start_and_pays_nothing_twice(
    server: GeminiServer, gemini: Settings, kind: type[TurnEvent]
) -> None:
    server.on_text(paint())
    server.on_image(SMALL)
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="a fox")):
            if isinstance(event, kind):
                break
        # A picture on its way comes while the studio closes.
    before, lost = asked(server, Kind.IMAGE), set[str]()
    server.clear()
    server.on_text(paint())
    server.on_image(SMALL)
    async with Studio(gemini) as studio:
        kept = await at_rest(studio, conversation.id)
        if kept.turns[0].state is TurnState.FAILED:
            # Something was on its way whose answer never came: it is asked for again by a click alone.
            calls = calls_on_disk(gemini.home)
            lost = {name.partition(":")[0] for name, row in calls.items() if row["state"] == CallState.UNKNOWN}
            assert lost
            events = [event async for event in studio.retry(conversation.id, kept.turns[0].id)]
            assert len(of_type(events, TurnDone)) == 1
            kept = await studio.conversation(conversation.id)
        assert [turn.state for turn in kept.turns] == [TurnState.DONE]
        assert [one.handle for one in kept.pictures] == ["#1"]
        assert not kept.pictures[0].after_stop
        assert SmartCanvas(handles=("#1",)) in kept.turns[0].components
        assert (await studio.picture(conversation.id, "#1")).receipt is not None
    assert before + asked(server, Kind.IMAGE) == 1 + ("picture" in lost)


async def test_a_studio_that_is_closed_is_not_ready(settings: Settings) -> None:
    studio = Studio(settings)
    async with studio:
        assert await studio.not_ready() == ()
    assert await studio.not_ready() == ("turns", "records")
