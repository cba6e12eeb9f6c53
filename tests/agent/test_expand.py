"""Pictures made larger beyond their edges, through whole turns: the picture itself stays what it was."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agent.errors import ErrorCode
from agent.events import PaintingStarted, PictureReady, TurnFailed
from agent.messages import Role
from agent.pictures import Margins
from agent.providers.scripted import calls, says
from agent.requests import Expansion, Mask
from agent.settings import Settings
from tests.bench.masking_simulator import Redrawing
from tests.support.masked_turns import changed, painter, pixels_of, read_now
from tests.support.masking_scenes import photo, stored
from tests.support.scenes import Scene, generate, only, run
from tests.support.turns import newest, retry, started

PHOTO = stored(photo())
WIDER = Expansion("#1", left=0.25, right=0.1, top=0.05)
MARGINS = Margins(left=160, right=64, top=26)
SIZE = (640 + 160 + 64, 520 + 26)


async def test_every_pixel_of_the_original_is_in_the_wider_picture(settings: Settings) -> None:
    scene = Scene(settings, text=[says("I see."), calls(generate("more of the table"))], pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        events = await run(studio, conversation.id, "wider", expand=WIDER, aspect_ratio="1:1", resolution="4K")
        before, after = await studio.picture(conversation.id, "#1"), await studio.picture(conversation.id, "#1b")
        turn = await newest(studio, conversation.id)
    picture = only(events, PictureReady).picture
    edit = picture.edit
    assert edit is not None
    assert (edit.kind, edit.verdict, edit.margins, edit.changed_outside) == ("expansion", "good", MARGINS, 0)
    assert (edit.outside, turn.margins, picture.parents) == (640 * 520, MARGINS, ("#1",))
    inner = pixels_of(after.data)[26 : 26 + 520, 160 : 160 + 640]
    assert (inner == pixels_of(before.data)).all()
    canvas = pixels_of(read_now(settings, edit.base))
    new = np.ones(SIZE[::-1], bool)
    new[26 : 26 + 520, 160 : 160 + 640] = False
    assert (changed(canvas, pixels_of(after.data))[new] > 0).mean() > 0.5
    frame = only(events, PaintingStarted)
    assert (frame.width, frame.height) == SIZE
    receipt = picture.receipt
    assert receipt is not None
    assert (receipt.asked_resolution, receipt.width, receipt.height) == (f"{SIZE[0]}×{SIZE[1]}", *SIZE)
    assert receipt.shortfalls == ()


async def test_the_models_hear_of_the_new_part_and_see_it_marked(settings: Settings) -> None:
    script = [says("I see."), calls(generate("more of the table", action="unknown"))]
    scene = Scene(settings, text=script, pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        await run(studio, conversation.id, "", expand=WIDER)
    words = next(one.text for one in reversed(scene.provider.asked[1].messages) if one.role is Role.PROMPT)
    assert "[The person marked #1 to be made larger beyond its edges: 25% at the left, 10% at the right" in words
    assert "bottom" not in words
    request = scene.provider.asked[-1].request
    assert request is not None
    assert len(request.messages[0].images) == 2
    assert "larger canvas" in request.messages[0].text


async def test_an_answer_with_spill_leaves_the_original_as_it_is_until_the_person_grows_the_mask(
    settings: Settings,
) -> None:
    how = painter(settings, Redrawing(shift=(5.0, 4.0), bleed_px=16))
    scene = Scene(settings, text=[says("I see."), calls(generate("more of the table"))], pictures=how)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        await run(studio, conversation.id, "wider", expand=Expansion("#1", right=0.5))
        asked = len(scene.provider.asked)
        before, after = await studio.picture(conversation.id, "#1"), await studio.picture(conversation.id, "#1b")
        grown = await studio.grow_mask(conversation.id, "#1b")
        wider = await studio.picture(conversation.id, grown.handle)
    assert (pixels_of(after.data)[:, :640] == pixels_of(before.data)).all()
    assert (grown.image.width, grown.image.height) == (960, 520)
    assert len(scene.provider.asked) == asked
    far = pixels_of(wider.data)[:, :500]
    assert (far == pixels_of(before.data)[:, :500]).all()
    assert grown.edit is not None
    assert (grown.edit.margins, grown.edit.changed_outside) == (Margins(right=320), 0)


@pytest.mark.parametrize(
    ("expand", "code"),
    [
        (Expansion("#1"), ErrorCode.EXPANSION_EMPTY),
        (Expansion("#1", left=0.0001), ErrorCode.EXPANSION_EMPTY),
        (Expansion("#1", left=-0.5, right=1), ErrorCode.EXPANSION_EMPTY),
        (Expansion("#1", top=math.nan), ErrorCode.EXPANSION_EMPTY),
        (Expansion("#1", top=math.inf), ErrorCode.EXPANSION_EMPTY),
        (Expansion("#1", left=1e300), ErrorCode.EXPANSION_TOO_LARGE),
        (Expansion("#1", left=8, right=8, top=12), ErrorCode.EXPANSION_TOO_LARGE),
        (Expansion("#7", left=1), ErrorCode.PICTURE_NOT_FOUND),
    ],
)
async def test_an_expansion_that_cannot_be_is_refused_before_anything_is_asked(
    settings: Settings, expand: Expansion, code: ErrorCode
) -> None:
    scene = Scene(settings, text=[says("I see.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        events = await run(studio, conversation.id, "wider", expand=expand)
    assert only(events, TurnFailed).error.code is code
    assert len(scene.provider.asked) == 1


async def test_a_mask_and_an_expansion_are_not_one_wish(settings: Settings) -> None:
    scene = Scene(settings, text=[says("I see.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        events = await run(studio, conversation.id, "wider", expand=WIDER, mask=Mask(PHOTO, "#1"))
    assert only(events, TurnFailed).error.code is ErrorCode.MASK_AND_EXPANSION


async def test_an_expansion_sent_again_grows_by_the_same(settings: Settings) -> None:
    script = [says("I see."), says("With what?"), says("And then?"), calls(generate("more of the table"))]
    scene = Scene(settings, text=script, pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        first = await run(studio, conversation.id, "wider", expand=WIDER)
        await run(studio, conversation.id, "more table")
        events = await retry(studio, conversation.id, started(first))
        turns = (await studio.conversation(conversation.id)).turns
    assert (turns[1].margins, turns[-1].margins) == (MARGINS, MARGINS)
    image = only(events, PictureReady).picture.image
    assert (image.width, image.height) == SIZE
