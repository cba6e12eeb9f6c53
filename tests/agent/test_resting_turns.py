"""Turns whose time passes at once, and one whose model answers well and paints nothing, as Gemini never does."""

from __future__ import annotations

from agent.errors import ErrorCode, ErrorInfo
from agent.events import (
    PictureReviewed,
    Step,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
)
from agent.messages import GroundingPart, Source, ToolCallPart
from agent.settings import Patiences, Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.adapters.scripted import Line, calls, finds, says
from tests.support.clock import Clock
from tests.support.gemini import on_gemini
from tests.support.scenes import Scene, generate, only, picture, run, words
from tests.support.turns import newest, retry, started
from tests.wire_server import GeminiServer, Text
from tests.wire_server import Hold as Held

PAUSE_S = 12
BUSY = Line(error=ErrorInfo(code=ErrorCode.RATE_LIMITED, parameters={"seconds": PAUSE_S}))
SEARCH = ToolCallPart(name="web_search", arguments={"query": "How high is the tower?"})
FACTS = '{"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"}'
GROUNDED = GroundingPart(queries=("q",), sources=(Source(title="t.example", url="https://r.example/1"),))
REVIEW = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "", "suggestions": []}'


async def test_an_answer_without_a_picture_is_asked_for_again_and_each_is_counted_once(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[says("I cannot."), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await run(studio, conversation.id, "a fox")
        assert only(failed, TurnFailed).error.code is ErrorCode.NO_PICTURE
        events = await retry(studio, conversation.id, started(failed))
        after = await newest(studio, conversation.id)
    assert (len(scene.provider.asked), type(events[-1])) == (3, TurnDone)
    assert after.usage.prompt_tokens == 100 * len(scene.provider.asked)


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


async def test_words_that_never_came_are_asked_for_again(settings: Settings, clock: Clock) -> None:
    with GeminiServer() as server:
        server.on_text(Held(Text("never")), Text("Here."))
        async with Studio(on_gemini(settings, server.url, text_timeout_s=50)) as studio:
            conversation = await studio.new_conversation()
            failed = await clock.run_out(run(studio, conversation.id, "hello"), lambda: server.held, 51)
            assert only(failed, TurnFailed).error.code is ErrorCode.PROVIDER_TIMEOUT
            events = await retry(studio, conversation.id, started(failed))
    assert words(events) == "Here."
