"""Busy moments of the models are waited out where nothing was charged; steps that get no answer give up after their own
patience, say which they were, and can be tried again; and answers that never end are ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from agent import (
    AgentMessage,
    Charge,
    ErrorCode,
    FailureNote,
    Patiences,
    PictureReviewed,
    SearchFound,
    SearchNote,
    Settings,
    SmartCanvas,
    Source,
    Step,
    TextDelta,
    TextPart,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnState,
)
from tests.adapters.models import Hold as Gated
from tests.adapters.models import Line, calls, says
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support import broken_servers as broken
from tests.support.clock import Clock
from tests.support.gemini import REVIEWED, SMALL, paint, search
from tests.support.scenes import Scene, generate, of_type, only, picture, run, words
from tests.support.turns import retry, started
from tests.support.waiting import until
from tests.wire_server import DelayBetweenChunks, Events, Hold, HttpError, Search, Text, quota_body

# A piece so often that no silence is ever long, and so many that the answer takes a minute.
TRICKLE = DelayBetweenChunks(0.1, Text("word " * 600, chunks=600))
FACTS = {"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"}
# No step waits longer for a sign of life, but the painter.
PATIENCE_S = Patiences().planner_s + 1
PAUSE_S = 12
BUSY = HttpError(429, body=quota_body(retry_s=PAUSE_S))


@pytest_asyncio.fixture(loop_scope="module")
async def patient(open_talk: OpenTalk) -> AsyncIterator[Talk]:
    """A conversation in a studio that asks again."""
    async with open_talk(retry_budget_s=60) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def silent(open_talk: OpenTalk) -> AsyncIterator[Talk]:
    """A conversation in which the patience of a step runs out, and no read of an answer."""
    async with open_talk(text_timeout_s=600, image_timeout_s=600) as talk:
        yield talk


def pauses(events: list[TurnEvent]) -> list[int]:
    """Return how many seconds each pause before another try was told to take."""
    return [int(log.parameters["seconds"]) for log in of_type(events, ThoughtLog) if log.step is Step.RETRYING]


async def waited_out(talk: Talk, clock: Clock, text: str, **more: Any) -> TurnResult:
    """Run a turn to its end, each of its pauses over as soon as it is told."""

    async def rest(event: TurnEvent) -> None:
        for pause_s in pauses([event]):
            await clock.rest(pause_s)

    return await talk.follow(rest, text, **more)


async def given_up(talk: Talk, clock: Clock, text: str, **more: Any) -> TurnResult:
    """Run a turn whose patience runs out once an answer is held."""
    return await clock.run_out(talk.say(text, **more), lambda: talk.models.held, PATIENCE_S)


# ---- busy


async def test_a_busy_minute_is_waited_out_and_told_unless_it_is_longer_than_one_would_wait(
    patient: Talk, clock: Clock
) -> None:
    busy = HttpError(429, body=quota_body(retry_s=1.0))
    turn = await waited_out(patient, clock, "hello there", plan=[busy, Text("Here I am.")])
    assert (pauses(turn.events), turn.words, len(turn.requests)) == ([1], "Here I am.", 2)
    busy = HttpError(429, "slow down", headers={"Retry-After": "2"})
    turn = await waited_out(patient, clock, "a red fox", plan=paint(), image=[busy, SMALL])
    assert (pauses(turn.events), turn.picture.handle, len(turn.painted())) == ([2], "#1", 2)
    turn = await patient.say("another", plan=paint(), image=HttpError(429, body=quota_body(retry_s=300.0)))
    assert (turn.failure.code, turn.failure.charged) == (ErrorCode.RATE_LIMITED, Charge.NO)
    assert "try again in 300 s" in turn.failure.message
    assert (pauses(turn.events), len(turn.painted())) == ([], 1)


async def test_a_model_that_is_busy_for_ever_is_asked_four_times_in_a_turn_and_then_paused(
    patient: Talk, clock: Clock
) -> None:
    patient.models.on_text(lambda request: HttpError(429, body=quota_body(retry_s=0.0)))
    turns = [await waited_out(patient, clock, f"message {number}") for number in range(3)]
    limited, paused = ErrorCode.RATE_LIMITED, ErrorCode.MODEL_PAUSED
    assert [(turn.failure.code, len(turn.requests)) for turn in turns] == [(limited, 4), (limited, 1), (paused, 0)]


async def test_conversations_that_meet_the_same_busy_moment_ask_again_at_different_times(
    patient: Talk, clock: Clock
) -> None:
    waited: list[list[float]] = []
    for talk in (patient, await patient.another()):
        turn = await waited_out(talk, clock, "hello there", plan=[HttpError(503), HttpError(503), Text("Here I am.")])
        assert (turn.words, len(turn.requests)) == ("Here I am.", 3)
        waited.append([once.pause_s for step in await talk.trace(turn) for once in step.retries])
    assert [len(one) for one in waited] == [2, 2]
    assert waited[0] != waited[1]


@pytest.mark.parametrize("elsewhere", [broken.refusing, broken.unknown_host], ids=["nobody listens", "no such name"])
async def test_a_server_that_is_not_there_is_tried_again_then_told_and_no_call_stays_on_its_way(
    open_talk: OpenTalk, clock: Clock, elsewhere: Callable[[], AbstractContextManager[str]]
) -> None:
    with elsewhere() as url:
        async with open_talk(retry_budget_s=60, gemini_base_url=url) as talk:
            turn = await waited_out(talk, clock, "hello there")
            [call] = await talk.calls(turn)
    assert (turn.failure.code, turn.failure.charged) == (ErrorCode.CONNECTION_FAILED, Charge.NO)
    assert "check the network connection" in turn.failure.message
    assert (len(pauses(turn.events)), call["state"], call["attempts"]) == (3, "failed", 4)


async def test_a_picture_that_may_have_been_charged_is_never_asked_for_again(patient: Talk) -> None:
    turn = await patient.say("a red fox", plan=paint(), image=HttpError(500))
    assert (turn.failure.code, len(turn.requests), turn.pictures) == (ErrorCode.PROVIDER_ERROR, 2, [])
    # However busy the model says it is, once its answer has begun.
    busy = Events([{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}])
    turn = await patient.say("another", plan=paint(), image=busy)
    assert (turn.failure.code, turn.failure.charged) == (ErrorCode.OVERLOADED, Charge.MAYBE)
    assert (len(turn.requests), (await patient.calls(turn))[-1]["state"]) == (2, "unknown")


async def test_a_pause_before_another_try_is_not_taken_for_silence(open_talk: OpenTalk, clock: Clock) -> None:
    hasty = Patiences(planner_s=PAUSE_S - 2, searcher_s=PAUSE_S - 2, critic_s=PAUSE_S - 2)
    async with open_talk(retry_budget_s=60, patiences=hasty) as talk:
        planned = await waited_out(talk, clock, "hello there", plan=[BUSY, BUSY, Text("Here I am.")])
        plan = [search(), BUSY, BUSY, Search(FACTS), Text("330 m.")]
        searched = await waited_out(talk, clock, "how high?", plan=plan, allow_search=True)
        plan = [paint(), BUSY, BUSY, REVIEWED]
        reviewed = await waited_out(talk, clock, "a fox", plan=plan, image=SMALL, review="always")
    assert [pauses(turn.events) for turn in (planned, searched, reviewed)] == [[PAUSE_S] * 2] * 3
    assert (planned.words, searched.words) == ("Here I am.", "330 m.")
    assert reviewed.one(PictureReviewed).review.score == 0.9


@pytest.mark.parametrize("place", [-1, 0], ids=["the newest message", "an older one"])
async def test_after_five_failures_a_model_is_paused_and_try_again_asks_it_at_once(
    open_talk: OpenTalk, place: int
) -> None:
    """The person sees why nothing was sent, and need not wait for the pause to end."""
    async with open_talk() as talk:
        talk.models.on_text(lambda _: HttpError(503))
        turns = [await talk.say(f"message {number}") for number in range(6)]
        assert [one.failure.code for one in turns] == [ErrorCode.OVERLOADED] * 5 + [ErrorCode.MODEL_PAUSED]
        assert len(talk.models.requests) == 5
        error = turns[-1].failure
        assert "failed 5 times in a row" in error.message
        assert 0 < int(error.parameters["seconds"]) <= 30
        assert error.charged is Charge.NO
        assert (await talk.retry(turns[place], plan=Text("Well again."))).words == "Well again."
        # One success is enough: everything goes through again.
        assert (await talk.say("and now?", plan=Text("Well again."))).words == "Well again."


# ---- without an end, or an answer


async def test_answers_that_trickle_for_ever_end_at_the_deadline_and_what_came_is_kept(open_talk: OpenTalk) -> None:
    async with open_talk(text_deadline_s=1.5, image_deadline_s=1.0) as talk:
        told = await talk.say("Tell me a story.", plan=TRICKLE)
        painted = await talk.say("a red fox", plan=paint(), image=TRICKLE)
        call = (await talk.calls(painted))[-1]
    assert (told.failure.code, told.failure.charged) == (ErrorCode.ANSWER_TOO_SLOW, Charge.MAYBE)
    assert len(told.requests) == 1
    assert "after 1.5 s" in told.failure.message
    assert told.words.startswith("word")
    assert told.components[0] == AgentMessage(text=told.words.strip())
    assert painted.failure.code is ErrorCode.ANSWER_TOO_SLOW
    assert (call["state"], call["error_code"]) == ("unknown", "answer_too_slow")


async def test_a_planner_that_says_nothing_fails_and_can_be_asked_again(silent: Talk, clock: Clock) -> None:
    failed = await given_up(silent, clock, "hello there", plan=Hold(Text("never")))
    told = failed.one(TurnFailed)
    assert (told.error.code, told.node, failed.events[-1]) == (ErrorCode.NODE_TIMEOUT, "planner", told)
    assert told.error.can_retry
    assert failed.record.state is TurnState.FAILED
    assert failed.components[-1] == FailureNote(error=told.error, node="planner")
    assert [call["state"] for call in await silent.calls(failed)] == ["failed"]
    await asyncio.to_thread(silent.models.wait_for_disconnect)
    assert (await silent.retry(failed, plan=Text("Here I am."))).words == "Here I am."


async def test_a_planner_that_falls_silent_after_a_word_fails_and_one_that_keeps_talking_is_not_cut(
    silent: Talk, clock: Clock
) -> None:
    async def wait_long(event: TurnEvent) -> None:
        if isinstance(event, TextDelta):
            await clock.move(PATIENCE_S)

    async def wait_a_little(event: TurnEvent) -> None:
        if isinstance(event, TextDelta):
            await clock.move(PATIENCE_S * 0.8)
            silent.models.release()

    failed = await silent.follow(wait_long, "count", plan=Hold(Text("One two.", chunks=2), after_chunks=1))
    assert (failed.words.strip(), failed.one(TurnFailed).node) == ("One", "planner")
    assert failed.components[0] == AgentMessage(text="One")
    again = await silent.retry(failed, plan=Text("One two."))
    assert [one for one in again.components if isinstance(one, AgentMessage)] == [AgentMessage(text="One two.")]
    slow = Hold(Hold(Hold(Text("word word word", chunks=3), 3), 2), 1)
    turn = await silent.follow(wait_a_little, "count on", plan=slow)
    assert (turn.words, type(turn.events[-1])) == ("word word word", TurnDone)


class Gate(asyncio.Event):
    """Knows when somebody has come to it."""

    is_reached = False

    async def wait(self) -> Literal[True]:
        self.is_reached = True
        return await super().wait()


async def test_a_planner_that_keeps_thinking_is_not_cut_however_long_it_takes(tmp_path: Path, clock: Clock) -> None:
    gates = [Gate() for _ in range(3)]
    thoughts = tuple(part for gate in gates for part in (TextPart(text="Hm.", is_thought=True), Gated(gate)))
    scene = Scene(Settings(home=tmp_path), text=[Line((*thoughts, TextPart(text="Here I am.")))])
    async with scene.studio() as studio:
        running = asyncio.create_task(run(studio, (await studio.conversations.create()).id, "hello there"))
        for gate in gates:
            await until(partial(getattr, gate, "is_reached"))
            await clock.move(PATIENCE_S * 0.8)
            gate.set()
        events = await running
    assert (words(events), isinstance(events[-1], TurnDone)) == ("Here I am.", True)


async def test_a_search_that_takes_too_long_fails_and_can_be_made_again(silent: Talk, clock: Clock) -> None:
    failed = await given_up(silent, clock, "the tower", plan=[search(), Hold(Search(FACTS))], allow_search=True)
    await asyncio.to_thread(silent.models.wait_for_disconnect)
    told = failed.one(TurnFailed)
    assert (told.error.code, told.node) == (ErrorCode.NODE_TIMEOUT, "searcher")
    again = await silent.retry(failed, plan=[Search(FACTS), Text("330 m.")])
    assert (again.words, type(again.events[-1])) == ("330 m.", TurnDone)
    assert [one.has_search for one in silent.models.requests] == [False, True, True, False]


async def test_a_critic_that_takes_too_long_lets_the_picture_pass_unreviewed(silent: Talk, clock: Clock) -> None:
    plan = [paint(), Hold(REVIEWED)]
    turn = await given_up(silent, clock, "a red fox", plan=plan, image=SMALL, review="always")
    reviewed = turn.one(PictureReviewed)
    assert (reviewed.handle, reviewed.review.score, type(turn.events[-1])) == ("#1", None, TurnDone)
    assert Step.NOT_REVIEWED in [log.step for log in of_type(turn.events, ThoughtLog)]
    assert [one.handles for one in turn.components if isinstance(one, SmartCanvas)] == [("#1",)]
    assert (turn.record.state, len(turn.painted())) == (TurnState.DONE, 1)


async def test_a_painter_that_takes_too_long_may_have_charged_and_is_tried_again_by_the_person_as_are_words(
    open_talk: OpenTalk, clock: Clock
) -> None:
    async with open_talk(text_timeout_s=50, image_timeout_s=50) as talk:
        failed = await clock.run_out(talk.say("hello", plan=Hold(Text("never"))), lambda: talk.models.held, 51)
        assert failed.failure.code is ErrorCode.PROVIDER_TIMEOUT
        assert (await talk.retry(failed, plan=Text("Here."))).words == "Here."
        failed = await given_up(talk, clock, "a red fox", plan=paint(), image=Hold(SMALL))
        told, call = failed.one(TurnFailed), (await talk.calls(failed))[-1]
        assert (told.error.code, told.node) == (ErrorCode.PROVIDER_TIMEOUT, "executor")
        assert (call["state"], call["error_code"]) == ("unknown", "provider_timeout")
        talk.models.on_image(SMALL)
        again = await talk.retry(failed)
        assert (again.picture.handle, len(again.requests), len(failed.painted())) == ("#1", 1, 1)


async def test_the_patience_of_one_step_is_not_another_s(silent: Talk, clock: Clock) -> None:
    saying = asyncio.create_task(silent.say("a fox", plan=paint(), image=Hold(SMALL)))
    await until(lambda: silent.models.held)
    await clock.move(PATIENCE_S * 2)
    assert silent.studio.turns.is_running(silent.id, silent.owner)
    silent.models.release()
    assert isinstance((await saying).events[-1], TurnDone)


# ---- answers of other kinds


async def test_words_of_a_painter_that_is_not_gemini_s_are_no_picture_and_each_try_is_counted_once(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path, retry_budget_s=0)
    scene = Scene(settings, text=[calls(generate())], pictures=[says("I cannot."), picture()])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        failed = await run(studio, conversation.id, "a fox")
        events = await retry(studio, conversation.id, started(failed))
        [after] = (await studio.conversations.get(conversation.id)).turns
    assert only(failed, TurnFailed).error.code is ErrorCode.NO_PICTURE
    assert (len(scene.provider.asked), type(events[-1]), after.usage.prompt_tokens) == (3, TurnDone, 300)


async def test_the_works_that_an_answer_quotes_are_shown_beneath_it(talk: Talk) -> None:
    cited = {"citationSources": [{"startIndex": 0, "endIndex": 5, "uri": "https://poems.example/7"}]}
    candidate = {"content": {"parts": [{"text": "Tyger"}]}, "finishReason": "STOP", "citationMetadata": cited}
    turn = await talk.say("Recite the poem.", plan=Events([{"candidates": [candidate]}]))
    sources = (Source(title="poems.example", url="https://poems.example/7"),)
    assert turn.one(SearchFound).sources == sources
    assert turn.components == (AgentMessage(text="Tyger"), SearchNote(sources=sources))
