"""The operator's choice to reuse the planner's answers: the same request within the hour is not paid for again."""

from __future__ import annotations

from typing import Any

import pytest

from agent.events import PictureReady, Step, TextDelta, ThoughtLog, TurnDone, TurnEvent
from agent.messages import TextPart
from agent.providers.scripted import Line, calls, says
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run, words
from tests.support.turns import asked, calls_on_disk, retry, send, started
from tests.wire_server import GeminiServer, HttpError
from tests.wire_server.models import Kind


@pytest.fixture
def thrifty(settings: Settings) -> Settings:
    return settings.model_copy(update={"reuse_plans": True})


def steps(events: list[TurnEvent]) -> list[Step]:
    return [log.step for log in of_type(events, ThoughtLog)]


async def ask(studio: Studio, text: str, *images: bytes, **settings: Any) -> list[TurnEvent]:
    """Run one turn in a new conversation."""
    return await run(studio, (await studio.new_conversation()).id, text, *images, **settings)


async def test_the_second_time_the_same_words_cost_nothing_and_that_is_said(thrifty: Settings) -> None:
    scene = Scene(thrifty, text=[says("Which season shall it be?")])
    async with scene.studio() as studio:
        first = await ask(studio, "a forest")
        second = await ask(studio, "a forest")
    assert len(scene.provider.asked) == 1
    assert words(first) == words(second) == "Which season shall it be?"
    assert (Step.REUSED in steps(first), Step.REUSED in steps(second)) == (False, True)
    assert only(first, TurnDone).price_usd > only(second, TurnDone).price_usd == 0
    assert only(second, TurnDone).usage.total_tokens == 0


async def test_a_reused_plan_is_painted_anew_and_only_the_picture_is_paid(thrifty: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(SMALL, SMALL)
        async with Studio(on_gemini(thrifty, server.url)) as studio:
            first = await ask(studio, "a red fox")
            second = await ask(studio, "a red fox")
        assert (asked(server, Kind.TEXT), asked(server, Kind.IMAGE)) == (1, 2)
        assert server.violations == []
    receipt = only(second, PictureReady).picture.receipt
    assert receipt is not None
    assert only(second, TurnDone).price_usd == receipt.price_usd > 0
    assert only(first, TurnDone).price_usd > receipt.price_usd


async def test_the_conversation_goes_on_after_a_reused_answer(thrifty: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(SMALL, SMALL)
        async with Studio(on_gemini(thrifty, server.url)) as studio:
            await ask(studio, "a red fox")
            conversation = await studio.new_conversation()
            await run(studio, conversation.id, "a red fox")
            events = await run(studio, conversation.id, "thank you")
        assert server.violations == []
    assert isinstance(events[-1], TurnDone)


async def test_it_is_reused_after_a_restart_too(thrifty: Settings) -> None:
    scene = Scene(thrifty, text=[says("Which season?")])
    async with scene.studio() as studio:
        await ask(studio, "a forest")
    scene.text = []
    async with scene.studio() as studio:
        events = await ask(studio, "a forest")
    assert words(events) == "Which season?"
    assert scene.provider.asked == []


async def test_another_owner_is_asked_anew(thrifty: Settings) -> None:
    scene = Scene(thrifty, text=[says("For Ann."), says("For Bob.")])
    said = {}
    async with scene.studio() as studio:
        for owner in ("ann", "bob", "ann"):
            conversation = await studio.new_conversation(owner=owner)
            events = await send(studio, conversation.id, TurnRequest(text="a forest"), owner=owner)
            said[owner] = words(events)
    assert said == {"ann": "For Ann.", "bob": "For Bob."}
    assert len(scene.provider.asked) == 2


@pytest.mark.parametrize(
    ("text", "images", "chosen"),
    [
        ("another forest", (), {}),
        ("a forest", (png(),), {}),
        ("a forest", (), {"text_model": "thinking"}),
        ("a forest", (), {"allow_search": True}),
    ],
    ids=["words", "picture", "model", "search"],
)
async def test_whatever_the_answer_depends_on_makes_it_another_request(
    thrifty: Settings, text: str, images: tuple[bytes, ...], chosen: dict[str, Any]
) -> None:
    scene = Scene(thrifty, text=[says("One."), says("Two.")])
    async with scene.studio() as studio:
        await ask(studio, "a forest")
        events = await ask(studio, text, *images, **chosen)
    assert words(events) == "Two."


async def test_a_history_makes_it_another_request(thrifty: Settings) -> None:
    scene = Scene(thrifty, text=[says("One."), says("Two.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a forest")
        events = await run(studio, conversation.id, "a forest")
    assert words(events) == "Two."


async def test_a_failed_answer_is_not_kept(thrifty: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(HttpError(500))
        async with Studio(on_gemini(thrifty, server.url)) as studio:
            await ask(studio, "hello there")
            events = await ask(studio, "hello there")
        assert asked(server, Kind.TEXT) == 2
    assert isinstance(events[-1], TurnDone)


async def test_by_default_every_request_is_asked(settings: Settings) -> None:
    scene = Scene(settings, text=[says("One."), says("Two.")])
    async with scene.studio() as studio:
        said = [words(await ask(studio, "a forest")) for _ in range(2)]
    assert said == ["One.", "Two."]


async def test_reviews_and_searches_are_made_every_time(thrifty: Settings) -> None:
    review = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "", "suggestions": []}'
    scene = Scene(thrifty, text=[calls(generate()), says(review), says(review)], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        for _ in range(2):
            events = await ask(studio, "a red fox", review="always")
            assert isinstance(events[-1], TurnDone)
    assert sum(one.request is None for one in scene.provider.asked) == 3


async def test_a_reused_answer_leaves_no_row_of_a_call_that_was_never_made(thrifty: Settings) -> None:
    scene = Scene(thrifty, text=[says("Hello.")])
    async with scene.studio() as studio:
        first = started(await ask(studio, "hello there"))
        await ask(studio, "hello there")
    assert [row["turn_id"] for row in calls_on_disk(thrifty.home).values()] == [first]


async def test_a_turn_with_a_reused_plan_goes_on_after_its_picture_failed(thrifty: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(SMALL, HttpError(500), SMALL)
        async with Studio(on_gemini(thrifty, server.url)) as studio:
            await ask(studio, "a red fox")
            conversation = await studio.new_conversation()
            failed = await run(studio, conversation.id, "a red fox")
            events = await retry(studio, conversation.id, started(failed))
        assert (asked(server, Kind.TEXT), asked(server, Kind.IMAGE)) == (1, 3)
    assert len(of_type(events, PictureReady)) == 1


async def test_reused_words_are_streamed_once(thrifty: Settings) -> None:
    line = Line(tuple(TextPart(text=text) for text in ("One ", "two ", "three.")))
    scene = Scene(thrifty, text=[line])
    async with scene.studio() as studio:
        await ask(studio, "count")
        events = await ask(studio, "count")
    assert "".join(event.text for event in of_type(events, TextDelta)) == "One two three."
