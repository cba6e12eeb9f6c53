"""Masks over several pictures in one message: each picture is changed by itself, inside its own mask."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from agent.events import PictureReady, PictureReviewed, TurnFailed
from agent.requests import Mask
from agent.settings import Settings
from agent.studio import Studio
from tests.support.gemini import on_gemini
from tests.support.masked_turns import changed, edit_of, mask_over, painted_inside, pixels_of, read_now
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.scenes import of_type, only, run
from tests.support.turns import newest
from tests.wire_server import Call, Calls, GeminiServer, HttpError, Text

PHOTO, OTHER = stored(photo()), stored(np.ascontiguousarray(photo()[::-1]))
FIRST = rectangle(260, 180, 400, 320)
SECOND = np.ascontiguousarray(FIRST[::-1])


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        running.on_image(painted_inside())
        yield running
        assert running.violations == []


def cups(*handles: str) -> Calls:
    """Return the planner's answer for several masks: a call for each."""
    arguments = {"prompt": "a red cup", "confidence": 0.9}
    return Calls([Call("generate_image", {**arguments, "handles": [handle]}) for handle in handles])


async def two_photos(studio: Studio, server: GeminiServer | None = None) -> str:
    if server is not None:
        server.on_text(Text("I see."))
    conversation = (await studio.new_conversation()).id
    await run(studio, conversation, "What are these?", PHOTO, OTHER)
    return conversation


def masks(first: str = "#1", second: str = "#2") -> list[Mask]:
    return [mask_over(first, FIRST, 16), mask_over(second, SECOND)]


@pytest.mark.parametrize("names", [("#1", "#2"), ("upload:1", "upload:2")])
async def test_without_a_key_each_picture_is_changed_inside_its_own_mask(
    settings: Settings, names: tuple[str, str]
) -> None:
    async with Studio(settings) as studio:
        if names == ("#1", "#2"):
            conversation = await two_photos(studio)
            events = await run(studio, conversation, "make it much darker", mask=masks())
        else:
            conversation = (await studio.new_conversation()).id
            events = await run(studio, conversation, "make it much darker", PHOTO, OTHER, mask=masks(*names))
        pairs = [
            [await studio.picture(conversation, handle), await studio.picture(conversation, f"{handle}b")]
            for handle in ("#1", "#2")
        ]
    made = [one.picture for one in of_type(events, PictureReady)]
    assert [(one.handle, one.parents) for one in made] == [("#1b", ("#1",)), ("#2b", ("#2",))]
    assert of_type(events, PictureReviewed) == []
    for pair, picture, area in zip(pairs, made, (FIRST, SECOND), strict=True):
        before, after = (pixels_of(one.data) for one in pair)
        differs = changed(before, after)
        assert (differs[area == 0] == 0).all()
        assert (differs[area > 0] > 0).mean() > 0.9
        assert after[area > 0].mean() < before[area > 0].mean() - 10
        edit = edit_of(picture)
        assert (edit.verdict, edit.changed_outside, edit.outside) == ("good", 0, int((area == 0).sum()))


async def test_the_planner_hears_of_every_mask_and_each_call_gets_that_of_its_picture_and_so_does_one_painted_again(
    settings: Settings, server: GeminiServer
) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await two_photos(studio, server)
        server.on_text(cups("1", "#2"))
        events = await run(studio, conversation, "put a cup here", mask=masks(), editing="#2", review="off")
        turn = await newest(studio, conversation)
        request = await studio.repeated(conversation, "#2b")
        assert request is not None
        assert [one.handle for one in request.masks] == ["#2"]
        repeated = [event async for event in studio.run_turn(conversation, request)]
    told = server.requests[1].prompt
    assert "[The person marked #2 as the picture to change.]" in told
    assert told.index("a mask over #2.]") < told.index("a mask over #1.]"), "the marked one comes first"
    assert [(one.handle, one.feather_px) for one in turn.masked] == [("#2", None), ("#1", 16)]
    edits = {one.picture.parents[0]: edit_of(one.picture) for one in of_type(events, PictureReady)}
    for handle, area in (("#1", FIRST), ("#2", SECOND)):
        kept = pixels_of(read_now(settings, edits[handle].mask))[..., 0]
        assert ((kept > 127) == (area > 0)).all()
        assert edits[handle].changed_outside == 0
    again = only(repeated, PictureReady).picture
    assert again.parents == ("#2",)
    assert ((pixels_of(read_now(settings, edit_of(again).mask))[..., 0] > 127) == (SECOND > 0)).all()


async def test_a_turn_that_failed_is_sent_again_with_all_its_masks(settings: Settings, server: GeminiServer) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await two_photos(studio, server)
        server.on_text(HttpError(500, "INTERNAL"), Text("Hello."), cups("#1", "#2"))
        only(await run(studio, conversation, "put a cup here", mask=masks(), review="off"), TurnFailed)
        turn = await newest(studio, conversation)
        # The conversation has gone on: it cannot go on where it failed.
        await run(studio, conversation, "hello")
        events = [event async for event in studio.retry(conversation, turn.id)]
    assert {one.picture.parents[0] for one in of_type(events, PictureReady)} == {"#1", "#2"}
