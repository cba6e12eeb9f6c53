"""The same request sent twice runs once, in one process and after a restart, and is told the same both times."""

from __future__ import annotations

import asyncio

from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.events import (
    PictureReady,
    PlanReady,
    QuestionAsked,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
)
from agent.providers.scripted import Line, calls, says
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import Scene, generate, of_type, only, picture, png, words
from tests.support.turns import decide, newest, send, started
from tests.wire_server import GeminiServer

REFUSED = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))


def request(text: str = "two foxes", name: str | None = "r1", *images: bytes, **settings: object) -> TurnRequest:
    return TurnRequest(text=text, images=images, settings=TurnSettings.model_validate(settings), request_id=name)


def handles(events: list[TurnEvent]) -> list[str]:
    return sorted(event.picture.handle for event in of_type(events, PictureReady))


async def test_in_one_process_the_same_request_is_answered_by_the_turn_it_began(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(number_of_images=2), text="Two.")], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first, second = await asyncio.gather(*(send(studio, conversation.id, request()) for _ in range(2)))
        third = await send(studio, conversation.id, request())
        kept = await studio.conversation(conversation.id)
    assert len(scene.provider.asked) == 3
    assert first == second
    for again in (second, third):
        assert (started(again), handles(again), words(again)) == (started(first), ["#1", "#2"], "Two.")
        assert only(again, TurnDone).price_usd == only(first, TurnDone).price_usd
    assert len(kept.turns) == 1


async def test_after_a_restart_it_is_told_from_the_record_and_nothing_is_asked(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(number_of_images=2), text="Two.")], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = await send(studio, conversation.id, request("two foxes", "r1", png()))
        before = await studio.conversation(conversation.id)
    scene.text = scene.pictures = []
    async with scene.studio() as studio:
        again = await send(studio, conversation.id, request("two foxes", "r1", png()))
        assert await studio.conversation(conversation.id) == before
    assert scene.provider.asked == []
    assert again[0] == first[0]
    assert (handles(again), words(again)) == (["#1b", "#1c"], "Two.")
    assert again[-1] == first[-1]


async def test_on_the_real_wire_it_costs_nothing_more(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(SMALL)
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            first = await send(studio, conversation.id, request())
        for _ in range(2):
            async with Studio(gemini) as studio:
                again = await send(studio, conversation.id, request())
                assert (handles(again), again[-1]) == (handles(first), first[-1])
                stored = await studio.picture(conversation.id, "#1")
        assert len(server.requests) == 2
    assert stored.receipt == only(first, PictureReady).picture.receipt


async def test_a_request_that_failed_is_told_as_failed_and_not_tried_again(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(), text="One.")], pictures=[REFUSED])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = await send(studio, conversation.id, request())
        second = await send(studio, conversation.id, request())
    scene.text = scene.pictures = []
    async with scene.studio() as studio:
        third = await send(studio, conversation.id, request())
        kept = await studio.conversation(conversation.id)
    assert scene.provider.asked == []
    for events in (first, second, third):
        failed = only(events, TurnFailed)
        assert (failed.error.code, failed.node) == (ErrorCode.PICTURE_BLOCKED, "executor")
        assert (started(events), words(events), events[-1]) == (kept.turns[0].id, "One.", failed)
    assert len(kept.turns) == 1


async def test_a_request_whose_plan_waits_shows_the_plan_again_and_it_can_be_run(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = await send(studio, conversation.id, request(confirm=True))
        second = await send(studio, conversation.id, request(confirm=True))
    scene.text = []
    async with scene.studio() as studio:
        third = await send(studio, conversation.id, request(confirm=True))
        assert scene.provider.asked == []
        done = await decide(studio, conversation.id, started(third))
    async with scene.studio() as studio:
        after = await send(studio, conversation.id, request(confirm=True))
        assert (await newest(studio, conversation.id)).state is TurnState.DONE
    for events in (first, second, third):
        assert only(events, PlanReady) == only(first, PlanReady)
        assert isinstance(events[-1], TurnPaused)
    assert handles(done) == handles(after) == ["#1"]
    assert not of_type(after, PlanReady)
    assert isinstance(after[-1], TurnDone)


async def test_a_question_asked_back_is_asked_again(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        first = await send(studio, conversation.id, request(""))
    async with Studio(settings) as studio:
        again = await send(studio, conversation.id, request(""))
    assert of_type(again, QuestionAsked) == of_type(first, QuestionAsked) == [QuestionAsked(question="empty")]
    assert again[-1] == first[-1]


async def test_a_stopped_request_is_told_as_stopped(settings: Settings) -> None:
    scene = Scene(settings, text=[says("One two three")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        live = studio.run_turn(conversation.id, request("count"))
        async for event in live:
            if isinstance(event, TurnStarted):
                assert await studio.cancel(conversation.id)
        assert (await newest(studio, conversation.id)).state is TurnState.STOPPED
    scene.text = []
    async with scene.studio() as studio:
        again = await send(studio, conversation.id, request("count"))
    assert again[-1].type == "turn_stopped"
    assert scene.provider.asked == []


async def test_other_names_other_conversations_and_no_name_at_all_run_each_for_itself(settings: Settings) -> None:
    scene = Scene(settings, text=lambda asked: says("Hello."))
    async with scene.studio() as studio:
        one, two = await studio.new_conversation(), await studio.new_conversation()
        for conversation_id, name in (
            (one.id, "r1"),
            (one.id, "r2"),
            (two.id, "r1"),
            (one.id, None),
            (one.id, None),
            (one.id, "r1"),
        ):
            await send(studio, conversation_id, request("hello there", name))
        kept = await studio.conversation(one.id)
    assert len(scene.provider.asked) == 5
    assert [turn.request_id for turn in kept.turns] == ["r1", "r2", None, None]


async def test_a_stranger_who_guesses_the_name_learns_nothing(settings: Settings) -> None:
    scene = Scene(settings, text=[says("A secret.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await send(studio, conversation.id, request("tell me"))
        events = await send(studio, conversation.id, request("tell me"), owner="bob")
    assert only(events, TurnFailed).error.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert words(events) == ""
