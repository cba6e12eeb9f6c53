"""Turns taken up again at awkward moments: nothing said is lost, nothing waits for ever, nothing is asked in vain."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator

from agent.components import AgentMessage, AskBack, PlanCard, Steps
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo, ProviderFailure
from agent.events import (
    PictureReviewed,
    PlanReady,
    Step,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStopped,
)
from agent.messages import GroundingPart, Source, TextPart, ToolCallPart
from agent.providers.scripted import Hold, Line, Painting, calls, finds, says
from agent.settings import Patiences, Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from agent.workflow.dispatch import MAX_WAITING
from tests.support.clock import Clock
from tests.support.gemini import on_gemini
from tests.support.scenes import Scene, generate, of_type, only, picture, run, words
from tests.support.turns import decide, newest, retry, rows, send, started
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Text
from tests.wire_server import Hold as Held

PAUSE_S = 12
BUSY = Line(error=ErrorInfo(code=ErrorCode.RATE_LIMITED, parameters={"seconds": PAUSE_S}))
BROKEN = Line(raises=ProviderFailure(ErrorCode.PROVIDER_ERROR))
SEARCH = ToolCallPart(name="web_search", arguments={"query": "How high is the tower?"})
FACTS = '{"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"}'
GROUNDED = GroundingPart(queries=("q",), sources=(Source(title="t.example", url="https://r.example/1"),))
REVIEW = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "", "suggestions": []}'


async def press_after(studio: Studio, conversation_id: str, hops: int) -> None:
    """Press Stop after so many steps of the event loop."""
    for _ in range(hops):
        await asyncio.sleep(0)
    await studio.cancel(conversation_id)


async def hear(events: AsyncIterator[TurnEvent], told: list[TurnEvent]) -> None:
    """Add each event as it comes."""
    async for event in events:
        told += [event]


def waits(told: list[TurnEvent]) -> int:
    """Return how often it was said that a turn waits in line."""
    return sum(log.step is Step.WAITING for log in of_type(told, ThoughtLog))


async def test_retry_of_a_waiting_turn_leaves_its_plan_waiting(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox", confirm=True))
        events = await retry(studio, conversation.id, turn_id)
        assert (len(of_type(events, PlanReady)), isinstance(events[-1], TurnPaused)) == (1, True)
        assert (await newest(studio, conversation.id)).state is TurnState.WAITING
        done = await decide(studio, conversation.id, turn_id)
    assert isinstance(done[-1], TurnDone)


async def test_an_answer_without_a_picture_is_asked_for_again(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[says("I cannot."), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await run(studio, conversation.id, "a fox")
        assert only(failed, TurnFailed).error.code is ErrorCode.NO_PICTURE
        events = await retry(studio, conversation.id, started(failed))
    assert (len(scene.provider.asked), type(events[-1])) == (3, TurnDone)


async def test_an_answer_without_a_picture_is_counted_once(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[says("I cannot."), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await run(studio, conversation.id, "a fox")
        await retry(studio, conversation.id, started(failed))
        after = await newest(studio, conversation.id)
    assert after.usage.prompt_tokens == 100 * len(scene.provider.asked)


async def test_a_picture_that_arrived_damaged_is_asked_for_again(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[Line((Painting(b"not a picture"),)), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await run(studio, conversation.id, "a fox")
        assert only(failed, TurnFailed).error.code is ErrorCode.BROKEN_PICTURE
        events = await retry(studio, conversation.id, started(failed))
    assert (len(scene.provider.asked), type(events[-1])) == (3, TurnDone)


async def test_a_search_that_could_not_be_read_is_made_again(settings: Settings) -> None:
    script = [
        calls(SEARCH),
        finds("nothing like JSON", GROUNDED),
        says("nor this"),
        finds(FACTS, GROUNDED),
        says("330 m."),
    ]
    scene = Scene(settings, text=script)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await run(studio, conversation.id, "how high?", allow_search=True)
        assert only(failed, TurnFailed).error.code is ErrorCode.SEARCH_UNREADABLE
        events = await retry(studio, conversation.id, started(failed))
    assert (len(scene.provider.asked), type(events[-1])) == (5, TurnDone)


async def test_one_failure_is_told_once_when_the_report_cannot_be_made(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Hello."), says("Again.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello there")
        with sqlite3.connect(settings.home / "aivista.db") as database:
            database.execute("DROP TABLE calls")
        database.close()
        events = await run(studio, conversation.id, "are you there?")
    assert len(of_type(events, TurnFailed)) == 1


async def test_a_request_refused_by_a_full_queue_runs_when_sent_again(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=lambda asked: Line((Hold(gate), TextPart(text="Hello."))))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        requests = [TurnRequest(text=f"number {n}") for n in range(MAX_WAITING + 1)]
        told: list[TurnEvent] = []
        waiting = [asyncio.create_task(hear(studio.run_turn(conversation.id, one), told)) for one in requests]
        await until(lambda: waits(told) == MAX_WAITING)
        request = TurnRequest(text="one too many", request_id="r1")
        refused = await send(studio, conversation.id, request)
        assert only(refused, TurnFailed).error.code is ErrorCode.QUEUE_FULL
        gate.set()
        await asyncio.gather(*waiting)
        events = await send(studio, conversation.id, request)
    assert isinstance(events[-1], TurnDone)


async def test_the_same_request_after_the_decision_tells_what_became_of_it(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        request = TurnRequest(text="a fox", request_id="r1", settings=TurnSettings(confirm=True))
        first = await send(studio, conversation.id, request)
        await decide(studio, conversation.id, started(first))
        again = await send(studio, conversation.id, request)
    assert isinstance(again[-1], TurnDone)


async def test_stop_at_any_moment_of_a_retry_keeps_what_was_said(settings: Settings) -> None:
    lost = []
    for hops in range(0, 60, 2):
        scene = Scene(
            settings, text=[calls(SEARCH, text="I will look it up."), BROKEN, finds(FACTS, GROUNDED), says("330 m.")]
        )
        async with scene.studio() as studio:
            conversation = await studio.new_conversation()
            turn_id = started(await run(studio, conversation.id, "the tower", allow_search=True))

            await asyncio.gather(retry(studio, conversation.id, turn_id), press_after(studio, conversation.id, hops))
            kept = await newest(studio, conversation.id)
        if AgentMessage(text="I will look it up.") not in kept.components:
            lost.append((hops, kept.state))
        assert kept.state is not TurnState.RUNNING, hops
    assert lost == []


async def test_stop_at_any_moment_of_a_decision_keeps_the_card(settings: Settings) -> None:
    lost = []
    for hops in range(0, 60, 2):
        scene = Scene(settings, text=[calls(generate(), text="A fox it is.")], pictures=[picture()])
        async with scene.studio() as studio:
            conversation = await studio.new_conversation()
            turn_id = started(await run(studio, conversation.id, "a fox", confirm=True))

            await asyncio.gather(decide(studio, conversation.id, turn_id), press_after(studio, conversation.id, hops))
            kept = await newest(studio, conversation.id)
        if not any(isinstance(one, PlanCard) for one in kept.components) or not kept.messages[1:]:
            lost.append((hops, kept.state))
        assert kept.state is not TurnState.RUNNING, hops
    assert lost == []


async def test_the_question_stands_below_the_steps_that_led_to_it(settings: Settings) -> None:
    scene = Scene(settings, text=[*[calls(generate(confidence=0.2))] * 2])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox")
        kept = await newest(studio, conversation.id)
    kinds = [type(one) for one in kept.components]
    assert kinds.index(Steps) < kinds.index(AskBack)


async def run_with_pauses(scene: Scene, clock: Clock, text: str, **chosen: object) -> list[TurnEvent]:
    """Run a turn in a new studio, let the time of each pause before another try pass, and return the events."""
    events: list[TurnEvent] = []
    request = TurnRequest(text=text, settings=TurnSettings.model_validate(chosen))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        async for event in studio.run_turn(conversation.id, request):
            events.append(event)
            if isinstance(event, ThoughtLog) and event.step is Step.RETRYING:
                await clock.rest(PAUSE_S)
    return events


async def test_a_pause_of_the_search_is_not_taken_for_silence(settings: Settings, clock: Clock) -> None:
    hasty = settings.model_copy(update={"retry_budget_s": 60, "patiences": Patiences(searcher_s=PAUSE_S - 2)})
    scene = Scene(hasty, text=[calls(SEARCH), BUSY, BUSY, finds(FACTS, GROUNDED), says("330 m.")])
    events = await run_with_pauses(scene, clock, "how high?", allow_search=True)
    assert isinstance(events[-1], TurnDone), events[-1]
    assert len(scene.provider.asked) == 5


async def test_a_pause_of_the_review_is_not_taken_for_silence(settings: Settings, clock: Clock) -> None:
    hasty = settings.model_copy(update={"retry_budget_s": 60, "patiences": Patiences(critic_s=PAUSE_S - 2)})
    scene = Scene(hasty, text=[calls(generate()), BUSY, BUSY, says(REVIEW)], pictures=[picture()])
    events = await run_with_pauses(scene, clock, "a fox", review="always")
    assert only(events, PictureReviewed).review.score == 0.9


async def test_a_failure_left_behind_keeps_neither_checkpoint_nor_answers(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Hello."), says("Hello."), says("Hello.")], pictures=[BROKEN])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = started(await run(studio, conversation.id, "a fox"))
        await run(studio, conversation.id, "something else")
    for _ in range(2):
        scene.text = [says("Hello.")]
        async with scene.studio() as studio:
            await run(studio, (await studio.new_conversation()).id, "hello there")
    left = rows(settings.home / "checkpoints.db", "SELECT DISTINCT thread_id FROM checkpoints")
    kept = rows(settings.home / "aivista.db", "SELECT turn_id FROM calls WHERE answer IS NOT NULL")
    assert failed not in {r["thread_id"] for r in left}
    assert failed not in {r["turn_id"] for r in kept}


async def test_a_stop_takes_the_retry_that_runs_and_the_one_in_line(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=[calls(generate())], pictures=[BROKEN, Line((Hold(gate), *picture().parts))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox"))
        first = asyncio.create_task(retry(studio, conversation.id, turn_id))
        await until(lambda: len(scene.provider.asked) == 3)
        two: list[TurnEvent] = []
        second = asyncio.create_task(hear(studio.retry(conversation.id, turn_id), two))
        await until(lambda: waits(two))
        await studio.cancel(conversation.id)
        one = await first
        await second
        kept = await newest(studio, conversation.id)
        assert isinstance(one[-1], TurnStopped)
        assert isinstance(two[-1], TurnStopped)
        assert kept.state is TurnState.STOPPED
        gate.set()


async def test_words_that_never_came_are_asked_for_again(settings: Settings, clock: Clock) -> None:
    with GeminiServer() as server:
        server.on_text(Held(Text("never")), Text("Here."))
        async with Studio(on_gemini(settings, server.url, text_timeout_s=50)) as studio:
            conversation = await studio.new_conversation()
            failed = await clock.run_out(run(studio, conversation.id, "hello"), lambda: server.held, 51)
            assert only(failed, TurnFailed).error.code is ErrorCode.PROVIDER_TIMEOUT
            events = await retry(studio, conversation.id, started(failed))
    assert words(events) == "Here."


async def test_a_stopped_turn_shows_no_plan_that_waits(settings: Settings) -> None:
    waiting = []
    for hops in range(0, 60, 2):
        scene = Scene(settings, text=[calls(generate(), text="A fox it is.")], pictures=[picture()])
        async with scene.studio() as studio:
            conversation = await studio.new_conversation()
            turn_id = started(await run(studio, conversation.id, "a fox", confirm=True))

            await asyncio.gather(decide(studio, conversation.id, turn_id), press_after(studio, conversation.id, hops))
            kept = await newest(studio, conversation.id)
        states = [one.state for one in kept.components if isinstance(one, PlanCard)]
        if (kept.state is TurnState.WAITING) != (states == ["pending"]):
            waiting.append((hops, kept.state, states))
    assert waiting == []
