"""A studio that is told to close: no turn begins any more, those at work may end, and the rest goes on at its next
start."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent import (
    Conversation,
    ErrorCode,
    PaintingStarted,
    SmartCanvas,
    Step,
    Studio,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnPaused,
    TurnStarted,
    TurnState,
)
from tests.behaviour.conftest import OpenTalk, settings_in
from tests.behaviour.talk import Talk
from tests.support.gemini import SMALL, paint
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold, Text

AT_WORK = (TurnState.RUNNING, TurnState.INTERRUPTED)


async def at_rest(talk: Talk) -> Conversation:
    """Return the conversation once nothing of it is at work, nor was left behind."""

    async def resting() -> Conversation | None:
        kept = await talk.kept()
        is_at_work = kept.turns[-1].state in AT_WORK or talk.studio.turns.is_running(talk.id, talk.owner)
        return None if is_at_work else kept

    return await until(resting)


async def test_a_turn_at_work_ends_within_the_grace_and_a_new_one_is_refused_in_a_sentence(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        other = await talk.another()
        assert await talk.studio.not_ready() == ()
        saying = asyncio.create_task(talk.say("a fox", plan=paint(), image=Hold(SMALL)))
        await until(lambda: talk.models.held)
        closing = asyncio.create_task(talk.studio.wind_down(30))
        await asyncio.sleep(0)
        assert await talk.studio.not_ready() == ("turns",)
        refused = [await other.say("a dog"), await talk.say("another fox")]
        assert [turn.failure.code for turn in refused] == [ErrorCode.STUDIO_CLOSING] * 2
        talk.models.release()
        await closing
        turn = await saying
        assert (type(turn.events[-1]), len(turn.painted())) == (TurnDone, 1)
    assert await talk.studio.not_ready() == ("turns", "records")
    async with open_talk(talk) as talk:
        kept = await talk.kept()
        assert [one.state for one in kept.turns] == [TurnState.DONE]
        assert [one.handle for one in kept.pictures] == ["#1"]
        assert (await talk.studio.conversations.get(other.id, talk.owner)).turns == ()


async def test_what_waits_in_line_is_told_at_once_and_is_nowhere_on_record(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first = asyncio.create_task(talk.say("count", plan=Hold(Text("One two three", chunks=3), after_chunks=1)))
        await until(lambda: talk.models.held)
        waiting = talk.run("and then a fox")
        told = await anext(waiting)
        assert isinstance(told, ThoughtLog)
        assert told.step is Step.WAITING
        closing = asyncio.create_task(talk.studio.wind_down(30))
        # The one before it is still at work.
        [refused] = [event async for event in waiting]
        assert refused.error.code is ErrorCode.STUDIO_CLOSING
        talk.models.release()
        await closing
        assert isinstance((await first).events[-1], TurnDone)
        assert [turn.text for turn in (await talk.kept()).turns] == ["count"]


async def begun(studio: Studio, models: GeminiServer) -> Talk:
    """Return a conversation of a studio that is left as it is: the one of `open_talk` waits until it rests."""
    return Talk(studio, models, (await studio.conversations.create()).id, "local")


def painted(models: GeminiServer) -> int:
    """Return how many pictures were asked for, and forget them."""
    asked = sum(one.kind == "image" for one in models.requests)
    models.clear()
    return asked


async def test_a_paid_call_that_outlasts_the_grace_is_told_as_such_and_made_again_only_by_a_click(
    models: GeminiServer, tmp_path: Path
) -> None:
    settings = settings_in(tmp_path, models)
    async with Studio(settings) as studio:
        talk = await begun(studio, models)
        saying = asyncio.create_task(talk.say("a fox", plan=paint(), image=Hold(SMALL)))
        await until(lambda: models.held)
        await studio.wind_down(0)
        turn = await saying
        last = turn.events[-1]
        assert isinstance(last, TurnPaused)
        assert last.is_cut
        assert (await talk.calls(turn))[-1]["state"] == "sent"
    assert painted(models) == 1
    async with Studio(settings) as studio:
        talk = replace(talk, studio=studio)
        [left] = (await at_rest(talk)).turns
        assert (left.state, painted(models)) == (TurnState.FAILED, 0)
        assert ErrorCode.CALL_UNKNOWN in left.model_dump_json()
        models.on_image(SMALL)
        assert (await talk.retry(left)).picture.handle == "#1"
    assert painted(models) == 1


@pytest.mark.parametrize("kind", [TurnStarted, ThoughtLog, TextDelta, PaintingStarted])
async def test_a_studio_that_is_left_in_a_turn_has_it_go_on_at_the_next_start_and_pays_nothing_twice(
    models: GeminiServer, tmp_path: Path, kind: type[TurnEvent]
) -> None:
    settings = settings_in(tmp_path, models)
    models.on_text(lambda _: paint())
    models.on_image(lambda _: SMALL)
    async with Studio(settings) as studio:
        talk = await begun(studio, models)
        async for event in talk.run("a fox"):
            if isinstance(event, kind):
                break
        # A picture on its way comes while the studio closes.
    async with Studio(settings) as studio:
        talk = replace(talk, studio=studio)
        [turn] = (await at_rest(talk)).turns
        lost = {call["name"].partition(":")[0] for call in await talk.calls(turn) if call["state"] == "unknown"}
        assert bool(lost) is (turn.state is TurnState.FAILED)
        if lost:
            # Something was on its way whose answer never came: it is asked for again by a click alone.
            turn = (await talk.retry(turn)).record
        [picture] = (await talk.kept()).pictures
        assert (turn.state, picture.handle, picture.after_stop) == (TurnState.DONE, "#1", False)
        assert SmartCanvas(handles=("#1",)) in turn.components
        assert (await talk.picture("#1")).receipt is not None
    assert painted(models) == 1 + ("picture" in lost)
