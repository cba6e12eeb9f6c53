"""Busy moments of the real API: waited out where nothing was charged, told where it may have been; and answers that
never end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from agent.components import AgentMessage, SearchNote
from agent.errors import Charge, ErrorCode
from agent.events import PictureReady, SearchFound, Step, ThoughtLog, TurnDone, TurnEvent, TurnFailed
from agent.messages import Source
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.support import broken_servers as broken
from tests.support.clock import Clock
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import of_type, only, run, words
from tests.support.turns import asked, calls_on_disk, newest, retry, started
from tests.wire_server import (
    Answer,
    DelayBetweenChunks,
    Events,
    GeminiServer,
    HttpError,
    PictureAnswer,
    Text,
    WireRequest,
    quota_body,
)
from tests.wire_server.models import Kind

# A piece so often that no silence is ever long, and so many that the answer takes a minute.
TRICKLE = DelayBetweenChunks(0.1, Text("word " * 600, chunks=600))


def pauses(events: list[TurnEvent]) -> list[int]:
    """Return how many seconds each pause before another try was told to take."""
    return [int(log.parameters["seconds"]) for log in of_type(events, ThoughtLog) if log.step is Step.RETRYING]


async def waited_out(studio: Studio, conversation_id: str, text: str, clock: Clock) -> list[TurnEvent]:
    """Run a turn to its end, each of its pauses over as soon as it is told."""
    events: list[TurnEvent] = []
    async for event in studio.run_turn(conversation_id, TurnRequest(text=text)):
        events.append(event)
        if pause := pauses([event]):
            await clock.rest(*pause)
    return events


async def test_a_busy_minute_is_waited_out_as_long_as_the_api_says_and_told(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(HttpError(429, body=quota_body(retry_s=1.0)), Text("Here I am."))
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "hello there")
        assert len(server.requests) == 2
    assert pauses(events) == [1]
    assert words(events) == "Here I am."
    assert isinstance(events[-1], TurnDone)


async def test_a_picture_that_was_refused_for_a_moment_is_asked_for_once_more_and_is_one(
    settings: Settings, clock: Clock
) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(HttpError(429, "slow down", headers={"Retry-After": "2"}), SMALL)
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            events = await waited_out(studio, conversation.id, "a red fox", clock)
            kept = await studio.conversation(conversation.id)
        assert asked(server, Kind.IMAGE) == 2
    assert pauses(events) == [2]
    assert [one.handle for one in kept.pictures] == ["#1"]
    assert isinstance(events[-1], TurnDone)


async def test_a_wait_longer_than_one_would_wait_is_not_begun_and_told_with_its_time(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(HttpError(429, body=quota_body(retry_s=300.0)), SMALL)
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "a red fox")
        assert asked(server, Kind.IMAGE) == 1
    error = only(events, TurnFailed).error
    assert (error.code, error.charged) == (ErrorCode.RATE_LIMITED, Charge.NO)
    assert "try again in 300 s" in error.message
    assert pauses(events) == []


async def test_a_model_that_is_busy_for_ever_is_asked_four_times_in_a_turn_and_then_paused(
    settings: Settings, clock: Clock
) -> None:
    with GeminiServer(text=lambda request: HttpError(429, body=quota_body(retry_s=0.0))) as server:
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            ends = []
            for number in range(3):
                events = await waited_out(studio, conversation.id, f"message {number}", clock)
                ends.append((only(events, TurnFailed).error.code, len(server.requests)))
    limited, paused = ErrorCode.RATE_LIMITED, ErrorCode.MODEL_PAUSED
    assert ends == [(limited, 4), (limited, 5), (paused, 5)]


async def test_conversations_that_meet_the_same_busy_moment_ask_again_at_different_times(
    settings: Settings, clock: Clock
) -> None:
    with GeminiServer() as server:
        server.on_text(*[HttpError(503), HttpError(503), Text("Here I am.")] * 2)
        waited: list[list[float]] = []
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            for _ in range(2):
                conversation = await studio.new_conversation()
                events = await waited_out(studio, conversation.id, "hello there", clock)
                assert words(events) == "Here I am."
                steps = await studio.trace(conversation.id, started(events))
                waited.append([once.pause_s for step in steps for once in step.retries])
        assert len(server.requests) == 6
    assert [len(one) for one in waited] == [2, 2]
    assert waited[0] != waited[1]


@pytest.mark.parametrize("elsewhere", [broken.refusing, broken.unknown_host], ids=["nobody listens", "no such name"])
async def test_a_server_that_is_not_there_is_tried_again_then_told_and_no_call_stays_on_its_way(
    settings: Settings, clock: Clock, elsewhere: Callable[[], AbstractContextManager[str]]
) -> None:
    with elsewhere() as url:
        gemini = on_gemini(settings, url, retry_budget_s=60)
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            events = await waited_out(studio, conversation.id, "hello there", clock)
    error = only(events, TurnFailed).error
    assert (error.code, error.charged) == (ErrorCode.CONNECTION_FAILED, Charge.NO)
    assert "check the network connection" in error.message
    assert len(pauses(events)) == 3
    [call] = calls_on_disk(gemini.home).values()
    assert (call["state"], call["attempts"]) == ("failed", 4)


async def test_a_picture_that_may_have_been_charged_is_never_asked_for_again(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(HttpError(500), PictureAnswer())
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "a red fox")
        assert len(server.requests) == 2
    assert only(events, TurnFailed).error.code is ErrorCode.PROVIDER_ERROR
    assert not of_type(events, PictureReady)


async def test_a_picture_whose_answer_had_begun_is_not_asked_for_again_however_busy_the_model_says_it_is(
    settings: Settings,
) -> None:
    busy = Events([{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}])
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(busy, PictureAnswer())
        gemini = on_gemini(settings, server.url, retry_budget_s=60)
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "a red fox")
        assert len(server.requests) == 2
    error = only(events, TurnFailed).error
    assert (error.code, error.charged) == (ErrorCode.OVERLOADED, Charge.MAYBE)
    assert calls_on_disk(gemini.home)["picture:1.0.0.1"]["state"] == "unknown"


async def test_words_that_trickle_for_ever_end_at_the_deadline_and_what_came_is_kept(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(TRICKLE)
        async with Studio(on_gemini(settings, server.url, text_deadline_s=1.5)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "Tell me a story.")
            turn = await newest(studio, conversation.id)
        assert len(server.requests) == 1
    error = only(events, TurnFailed).error
    assert (error.code, error.charged) == (ErrorCode.ANSWER_TOO_SLOW, Charge.MAYBE)
    assert "after 1.5 s" in error.message
    assert isinstance(turn.components[0], AgentMessage)
    assert turn.components[0].text.startswith("word")
    assert turn.components[0].text == words(events).strip()


async def test_a_picture_that_trickles_for_ever_ends_at_the_deadline_as_one_that_may_have_been_charged(
    settings: Settings,
) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(TRICKLE)
        gemini = on_gemini(settings, server.url, image_deadline_s=1.0)
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "a red fox")
    assert only(events, TurnFailed).error.code is ErrorCode.ANSWER_TOO_SLOW
    row = calls_on_disk(gemini.home)["picture:1.0.0.1"]
    assert (row["state"], row["error_code"]) == ("unknown", "answer_too_slow")


@pytest.mark.parametrize("is_newest", [True, False], ids=["the newest message", "an older one"])
async def test_after_five_failures_a_model_is_paused_and_try_again_asks_it_at_once(
    settings: Settings, is_newest: bool
) -> None:
    """The person sees why nothing was sent, and need not wait for the pause to end."""
    is_well = False

    def answer(request: WireRequest) -> Answer:
        return Text("Well again.") if is_well else HttpError(503)

    with GeminiServer() as server:
        server.on_text(answer)
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            turns = [await run(studio, conversation.id, f"message {number}") for number in range(6)]
            errors = [only(events, TurnFailed).error for events in turns]
            assert [error.code for error in errors] == [ErrorCode.OVERLOADED] * 5 + [ErrorCode.MODEL_PAUSED]
            assert len(server.requests) == 5
            assert "failed 5 times in a row" in errors[-1].message
            assert 0 < int(errors[-1].parameters["seconds"]) <= 30
            assert errors[-1].charged is Charge.NO
            is_well = True
            again = await retry(studio, conversation.id, started(turns[-1 if is_newest else 0]))
            assert words(again) == "Well again."
            # One success is enough: everything goes through again.
            assert words(await run(studio, conversation.id, "and now?")) == "Well again."


async def test_the_works_that_an_answer_quotes_are_shown_beneath_it(settings: Settings) -> None:
    cited = {"citationSources": [{"startIndex": 0, "endIndex": 5, "uri": "https://poems.example/7"}]}
    candidate = {"content": {"parts": [{"text": "Tyger"}]}, "finishReason": "STOP", "citationMetadata": cited}
    with GeminiServer() as server:
        server.on_text(Events([{"candidates": [candidate]}]))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "Recite the poem.")
            turn = await newest(studio, conversation.id)
    sources = (Source(title="poems.example", url="https://poems.example/7"),)
    assert only(events, SearchFound).sources == sources
    assert turn.components == (AgentMessage(text="Tyger"), SearchNote(sources=sources))
