"""What can never be painted is refused before any model is paid, and what a planner writes has a length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agent.errors import Actor, Charge, ErrorCode
from agent.events import PictureReady, TurnDone, TurnFailed
from agent.pictures import ReferenceRole
from agent.requests import Expansion
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.support.gemini import SMALL, draw, on_gemini, paint
from tests.support.scenes import of_type, only, png, run, words
from tests.support.turns import newest, send
from tests.wire_server import Answer, Call, Calls, GeminiServer, Text, WireRequest
from tests.wire_server.models import Kind

MEGABYTE = 1 << 20


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


# What the person has fixed.


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"image_model": "pro", "aspect_ratio": "1:8"}, "Pro does not offer aspect ratio 1:8"),
        ({"image_model": "both", "aspect_ratio": "1:8"}, "Pro does not offer aspect ratio 1:8"),
        ({"image_model": "flash", "resolution": "512"}, "Flash does not offer resolution 512"),
        ({"aspect_ratio": "7:3"}, "does not offer aspect ratio 7:3"),
        ({"resolution": "16K"}, "does not offer resolution 16K"),
        ({"aspect_ratio": "wide"}, "does not offer aspect ratio wide"),
    ],
    ids=str,
)
async def test_settings_that_no_model_can_obey_are_refused_before_the_planner_is_paid(
    server: GeminiServer, settings: Settings, chosen: dict[str, Any], says: str
) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox", **chosen)
        turn = await newest(studio, conversation.id)
    error = only(events, TurnFailed).error
    assert (error.code, error.actor, error.charged) == (ErrorCode.SETTING_NOT_SUPPORTED, Actor.YOU, Charge.NO)
    assert says in error.message
    assert (turn.text, turn.price_usd) == ("a red fox", 0.0)
    assert server.requests == []


async def test_a_lock_that_one_of_the_models_obeys_is_obeyed(server: GeminiServer, settings: Settings) -> None:
    server.on_text(paint())
    server.on_image(SMALL)
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a tall red fox", aspect_ratio="1:8")
    assert only(events, PictureReady).picture.receipt is not None
    assert isinstance(events[-1], TurnDone)


async def test_the_edit_of_a_part_has_the_shape_of_its_picture_whatever_is_locked(
    server: GeminiServer, settings: Settings
) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        server.clear()
        server.on_text(Text("I only looked."))
        request = TurnRequest(
            text="more sky",
            expand=Expansion("#1", top=20),
            settings=TurnSettings(image_model="pro", aspect_ratio="1:8"),
        )
        events = await send(studio, conversation.id, request)
    assert words(events) == "I only looked."


async def test_more_faces_than_the_chosen_model_keeps_alike_are_refused_before_the_planner_is_paid(
    server: GeminiServer, settings: Settings
) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        limit = studio.catalogue.by_id("gemini-nano-banana-2.1")
        assert limit is not None
        count = limit.max_characters + 1
        server.on_text(Text("Nice people."))
        pictures = [png(8, 8 + number, "green") for number in range(count)]
        await send(studio, conversation.id, TurnRequest(text="these", images=pictures))
        server.clear()
        handles = tuple(f"#{number}" for number in range(1, count + 1))
        request = TurnRequest(
            text="all of them",
            references=handles,
            roles=dict.fromkeys(handles, ReferenceRole.FACE),
            settings=TurnSettings(image_model="flash"),
        )
        events = await send(studio, conversation.id, request)
    assert only(events, TurnFailed).error.code is ErrorCode.TOO_MANY_FACES
    assert server.requests == []


# What the planner writes.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"prompt": "fox " * (5 * MEGABYTE // 4)}, f"its prompt has {5 * MEGABYTE} characters"),
        ({"prompt": "a fox", "negative_prompt": "x" * 5000}, "its negative_prompt has 5000 characters"),
        ({"prompt": "a fox", "handles": ["#1"] * 5000}, "its handles has"),
        ({"prompt": "a fox", "surprise": "x" * 5000}, "its surprise has 5000 characters"),
    ],
    ids=["prompt", "negative prompt", "handles", "what there is not"],
)
async def test_a_call_that_is_too_long_goes_back_to_the_planner_and_is_not_sent_on(
    server: GeminiServer, settings: Settings, arguments: dict[str, Any], says: str
) -> None:
    too_long = Call("generate_image", {"confidence": 0.9, **arguments})
    server.on_text(too_long, paint("a short fox"))
    server.on_image(SMALL)
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
    assert isinstance(events[-1], TurnDone)
    assert len(of_type(events, PictureReady)) == 1
    first, second, picture = server.requests
    assert [one.kind for one in server.requests] == [Kind.TEXT, Kind.TEXT, Kind.IMAGE]
    [answer] = second.function_responses
    assert says in answer["response"]["error"]
    assert "Call it again with less" in answer["response"]["error"]
    # Neither the next question nor the picture pays for what was too long.
    assert len(second.body) < len(first.body) + 4000
    assert "a short fox" in picture.text
    assert server.violations == []


async def test_of_two_calls_the_one_that_fits_is_carried_out(server: GeminiServer, settings: Settings) -> None:
    def brain(request: WireRequest) -> Answer:
        if "the other?" in request.text:
            return Text("One of two.")
        fits = Call("generate_image", {"prompt": "a fox", "confidence": 0.9})
        return Calls([Call("generate_image", {"prompt": "y" * MEGABYTE, "confidence": 0.9}), fits])

    server.on_text(brain)
    server.on_image(SMALL)
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "two foxes")
        assert isinstance(events[-1], TurnDone)
        assert len(of_type(events, PictureReady)) == 1
        events = await run(studio, conversation.id, "And the other?")
        assert words(events) == "One of two.", events[-1]
    assert server.violations == []


async def test_a_search_for_a_whole_book_goes_back_to_the_planner(server: GeminiServer, settings: Settings) -> None:
    server.on_text(Call("web_search", {"query": "why " * 10_000}), Text("I know it by heart."))
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "look it up", allow_search=True)
    assert words(events) == "I know it by heart."
    assert not any(request.has_search for request in server.requests)


async def test_a_planner_that_never_gets_shorter_is_stopped(server: GeminiServer, settings: Settings) -> None:
    def brain(request: WireRequest) -> Answer:
        return Call("generate_image", {"prompt": "z" * MEGABYTE, "confidence": 0.9})

    server.on_text(brain)
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
    assert only(events, TurnFailed).error.code is ErrorCode.TOO_MANY_STEPS
    assert len(server.requests) == 3


async def test_without_a_key_the_longest_message_is_drawn(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "draw a red fox " + "in the snow " * 8000)
    assert isinstance(events[-1], TurnDone), events[-1]
