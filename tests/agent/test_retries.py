"""Busy moments of the real API: waited out where nothing was charged, told where it may have been."""

from __future__ import annotations

from agent.errors import ErrorCode
from agent.events import PictureReady, Step, ThoughtLog, TurnDone, TurnFailed
from agent.settings import Settings
from agent.studio import Studio
from tests.support.gemini import on_gemini, paint
from tests.support.scenes import of_type, only, run, words
from tests.wire_server import GeminiServer, HttpError, PictureAnswer, Text, quota_body


async def test_a_busy_minute_is_waited_out_as_long_as_the_api_says_and_told(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(HttpError(429, body=quota_body(retry_s=1.0)), Text("Here I am."))
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "hello there")
        assert len(server.requests) == 2
    waited = [log.parameters["seconds"] for log in of_type(events, ThoughtLog) if log.step is Step.RETRYING]
    assert waited == [1]
    assert words(events) == "Here I am."
    assert isinstance(events[-1], TurnDone)


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
