"""Steps that get no answer: each gives up after its own patience, says which it was, and can be tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Literal

import pytest

from agent.components import AgentMessage, FailureNote, SmartCanvas
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.events import PictureReady, PictureReviewed, Step, TextDelta, ThoughtLog, TurnDone, TurnEvent, TurnFailed
from agent.messages import GroundingPart, Source, TextPart, ToolCallPart
from agent.settings import Patiences, Settings
from agent.studio import Studio, TurnRequest
from tests.adapters.scripted import Hold, Line, calls, finds, says
from tests.support.clock import Clock
from tests.support.gemini import SMALL, on_gemini, paint, search
from tests.support.scenes import Scene, generate, of_type, only, picture, run, words
from tests.support.turns import asked, calls_on_disk, newest, retry, started
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Search, Text, WireRequest
from tests.wire_server import Hold as Held
from tests.wire_server.models import Kind
from tests.wire_server.steps import Answer

FACTS = '{"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"}'
GROUNDED = GroundingPart(queries=("q",), sources=(Source(title="t.example", url="https://r.example/1"),))
SEARCH = ToolCallPart(name="web_search", arguments={"query": "How high is the tower?"})


# No step waits longer for a sign of life, but the painter.
PATIENCE_S = Patiences().planner_s + 1


def silence(*said: str) -> Line:
    """Return an answer that never ends after these words."""
    return Line((*(TextPart(text=text) for text in said), Hold(asyncio.Event())))


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


async def test_a_planner_that_says_nothing_fails_and_can_be_asked_again(settings: Settings, clock: Clock) -> None:
    scene = Scene(settings, text=[silence(), says("Here I am.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await clock.run_out(
            run(studio, conversation.id, "hello there"), lambda: scene.provider.asked, PATIENCE_S
        )
        kept = await newest(studio, conversation.id)
        row = calls_on_disk(settings.home)["planner:1"]
        events = await retry(studio, conversation.id, started(failed))
    told = only(failed, TurnFailed)
    assert (told.error.code, told.node, failed[-1]) == (ErrorCode.NODE_TIMEOUT, "planner", told)
    assert told.error.can_retry
    assert (kept.state, kept.components[-1]) == (TurnState.FAILED, FailureNote(error=told.error, node="planner"))
    assert row["state"] == "cancelled"
    assert words(events) == "Here I am."


async def test_a_planner_that_falls_silent_after_a_word_fails_as_well(settings: Settings, clock: Clock) -> None:
    scene = Scene(settings, text=[silence("One "), says("One two.")])
    failed: list[TurnEvent] = []
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="count")):
            failed.append(event)
            if isinstance(event, TextDelta):
                await clock.move(PATIENCE_S)
        await retry(studio, conversation.id, started(failed))
        kept = await newest(studio, conversation.id)
    assert (words(failed), only(failed, TurnFailed).node) == ("One ", "planner")
    assert [one for one in kept.components if isinstance(one, AgentMessage)] == [AgentMessage(text="One two.")]


async def test_a_planner_that_keeps_talking_is_not_cut_however_long_it_takes(settings: Settings, clock: Clock) -> None:
    gates = [asyncio.Event() for _ in range(3)]
    line = Line(tuple(part for gate in gates for part in (TextPart(text="word "), Hold(gate))))
    scene = Scene(settings, text=[line])
    events: list[TurnEvent] = []
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="count")):
            events.append(event)
            if isinstance(event, TextDelta):
                await clock.move(PATIENCE_S * 0.8)
                gates.pop(0).set()
    assert isinstance(events[-1], TurnDone)
    assert words(events) == "word word word "
    assert gates == []


class Gate(asyncio.Event):
    """Knows when somebody has come to it."""

    is_reached = False

    async def wait(self) -> Literal[True]:
        self.is_reached = True
        return await super().wait()


async def test_a_planner_that_keeps_thinking_is_not_cut_however_long_it_takes(settings: Settings, clock: Clock) -> None:
    gates = [Gate() for _ in range(3)]
    thoughts = tuple(part for gate in gates for part in (TextPart(text="Hm.", is_thought=True), Hold(gate)))
    scene = Scene(settings, text=[Line((*thoughts, TextPart(text="Here I am.")))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        running = asyncio.create_task(run(studio, conversation.id, "hello there"))
        for gate in gates:
            await until(partial(getattr, gate, "is_reached"))
            await clock.move(PATIENCE_S * 0.8)
            gate.set()
        events = await running
    assert (words(events), isinstance(events[-1], TurnDone)) == ("Here I am.", True)


async def test_a_pause_before_another_try_is_not_taken_for_silence(settings: Settings, clock: Clock) -> None:
    patiences, pause_s = Patiences(planner_s=10), 12
    busy = Line(error=ErrorInfo(code=ErrorCode.RATE_LIMITED, parameters={"seconds": pause_s}))
    impatient = settings.model_copy(update={"patiences": patiences, "retry_budget_s": 60})
    scene = Scene(impatient, text=[busy, busy, says("Here I am.")])
    events: list[TurnEvent] = []
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="hello there")):
            events.append(event)
            if isinstance(event, ThoughtLog) and event.step is Step.RETRYING:
                await clock.rest(pause_s)
    assert words(events) == "Here I am."
    assert len([log for log in of_type(events, ThoughtLog) if log.step is Step.RETRYING]) == 2


async def test_a_search_that_takes_too_long_fails_and_can_be_made_again(settings: Settings, clock: Clock) -> None:
    script = [calls(SEARCH, text="I will look it up."), silence(), finds(FACTS, GROUNDED), says("330 m.")]
    scene = Scene(settings, text=script)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await clock.run_out(
            run(studio, conversation.id, "the tower", allow_search=True),
            lambda: len(scene.provider.asked) == 2,
            PATIENCE_S,
        )
        events = await retry(studio, conversation.id, started(failed))
    told = only(failed, TurnFailed)
    assert (told.error.code, told.node) == (ErrorCode.NODE_TIMEOUT, "searcher")
    assert (words(events), isinstance(events[-1], TurnDone)) == ("330 m.", True)
    assert [one.options.google_search for one in scene.provider.asked] == [False, True, True, False]


async def test_the_stream_of_a_search_given_up_is_closed(
    server: GeminiServer, settings: Settings, clock: Clock
) -> None:
    server.on_text(search(), Held(Search({"facts": [], "prompt_draft": ""})))
    async with Studio(on_gemini(settings, server.url, text_timeout_s=600)) as studio:
        conversation = await studio.new_conversation()
        failed = await clock.run_out(
            run(studio, conversation.id, "the tower", allow_search=True), lambda: server.held, PATIENCE_S
        )
        await asyncio.to_thread(server.wait_for_disconnect)
    assert only(failed, TurnFailed).node == "searcher"


async def test_a_critic_that_takes_too_long_lets_the_picture_pass_unreviewed(
    server: GeminiServer, settings: Settings, clock: Clock
) -> None:
    def text(request: WireRequest) -> Answer:
        return paint() if request.function_names else Held(Text("{}"))

    server.on_text(text)
    server.on_image(SMALL)
    # The reviewer's patience is what runs out, and no read of its answer.
    async with Studio(on_gemini(settings, server.url, text_timeout_s=600)) as studio:
        conversation = await studio.new_conversation()
        events = await clock.run_out(
            run(studio, conversation.id, "a red fox", review="always"), lambda: server.held, PATIENCE_S
        )
        kept = await studio.conversation(conversation.id)
    assert isinstance(events[-1], TurnDone)
    reviewed = only(events, PictureReviewed)
    assert (reviewed.handle, reviewed.review.score) == ("#1", None)
    assert Step.NOT_REVIEWED in [log.step for log in of_type(events, ThoughtLog)]
    assert [one.handles for one in kept.turns[0].components if isinstance(one, SmartCanvas)] == [("#1",)]
    assert kept.turns[0].state is TurnState.DONE
    assert asked(server, Kind.IMAGE) == 1


async def test_a_painter_that_takes_too_long_fails_as_one_that_may_have_charged_and_is_tried_again_by_the_person(
    server: GeminiServer, settings: Settings, clock: Clock
) -> None:
    server.on_text(paint())
    server.on_image(Held(SMALL), SMALL)
    gemini = on_gemini(settings, server.url, image_timeout_s=50)
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        failed = await clock.run_out(run(studio, conversation.id, "a red fox"), lambda: server.held, PATIENCE_S)
        row = calls_on_disk(gemini.home)["picture:1.0.0.1"]
        assert asked(server, Kind.IMAGE) == 1
        events = await retry(studio, conversation.id, started(failed))
    told = only(failed, TurnFailed)
    assert (told.error.code, told.node) == (ErrorCode.PROVIDER_TIMEOUT, "executor")
    assert (row["state"], row["error_code"]) == ("unknown", "provider_timeout")
    assert only(events, PictureReady).picture.handle == "#1"
    assert (asked(server, Kind.TEXT), asked(server, Kind.IMAGE)) == (1, 2)


async def test_the_patience_of_one_step_is_not_another_s(settings: Settings, clock: Clock) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=[calls(generate())], pictures=[Line((Hold(gate), *picture().parts))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "a fox", review="off"))
        await until(lambda: len(scene.provider.asked) == 2)
        await clock.move(PATIENCE_S * 2)
        assert studio.is_running(conversation.id)
        gate.set()
        events = await turn
    assert isinstance(events[-1], TurnDone)
