"""Pictures made larger beyond their edges, through whole turns: the picture itself stays what it was."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from PIL import Image

from agent import ErrorCode, Expansion, ImageOrigin, Margins, Mask, PaintingStarted, PlanReady
from tests.behaviour.talk import Talk
from tests.bench.masking_simulator import Redrawing
from tests.support.gemini import paint
from tests.support.masked_turns import changed, edit_of, painted_inside, pixels_of, read_now
from tests.support.masking_scenes import photo, stored
from tests.support.scenes import png
from tests.wire_server import Text

WIDER = Expansion("#1", left=0.25, right=0.1, top=0.05)
MARGINS = Margins(left=160, right=64, top=26)
SIZE = (640 + 160 + 64, 520 + 26)
TABLE = paint("more of the table")


async def test_every_pixel_of_the_original_is_in_the_wider_picture(shown: Talk) -> None:
    locks = {"aspect_ratio": "1:1", "resolution": "4K"}
    turn = await shown.say("wider", plan=TABLE, image=painted_inside(), expand=WIDER, **locks)
    before, after = pixels_of((await shown.picture("#1")).data), pixels_of((await shown.picture("#1b")).data)
    edit = edit_of(turn.picture)
    assert (edit.kind, edit.verdict, edit.margins, edit.changed_outside) == ("expansion", "good", MARGINS, 0)
    assert (edit.outside, turn.picture.parents) == (640 * 520, ("#1",))
    assert turn.turn is not None
    assert turn.turn.margins == MARGINS
    assert (after[26 : 26 + 520, 160 : 160 + 640] == before).all()
    canvas = pixels_of(read_now(shown.studio.settings, edit.base))
    new = np.ones(SIZE[::-1], bool)
    new[26 : 26 + 520, 160 : 160 + 640] = False
    assert (changed(canvas, after)[new] > 0).mean() > 0.5
    frame = turn.one(PaintingStarted)
    assert (frame.width, frame.height) == SIZE
    asked = (turn.receipt.asked_resolution, turn.receipt.width, turn.receipt.height)
    assert (asked, turn.receipt.shortfalls) == ((f"{SIZE[0]}×{SIZE[1]}", *SIZE), ())


async def test_the_models_hear_of_the_new_part_and_see_it_marked(shown: Talk) -> None:
    vague = paint("more of the table", action="unknown")
    planned, painted = (await shown.say("", plan=vague, image=painted_inside(), expand=WIDER)).requests
    assert "[The person marked #1 to be made larger beyond its edges: 25% at the left, 10% at the right" in planned.text
    assert "bottom" not in planned.prompt
    assert len(painted.pictures) == 2
    assert "larger canvas" in painted.prompt


async def test_an_answer_with_spill_leaves_the_original_as_it_is_until_the_person_grows_the_mask(shown: Talk) -> None:
    spills = painted_inside(Redrawing(shift=(5.0, 4.0), bleed_px=16))
    await shown.say("wider", plan=TABLE, image=spills, expand=Expansion("#1", right=0.5))
    asked = len(shown.models.requests)
    before, after = pixels_of((await shown.picture("#1")).data), pixels_of((await shown.picture("#1b")).data)
    grown = await shown.studio.edits.grow_mask(shown.id, "#1b", shown.owner)
    assert (after[:, :640] == before).all()
    assert (grown.image.width, grown.image.height) == (960, 520)
    assert len(shown.models.requests) == asked
    assert (pixels_of((await shown.picture(grown.handle)).data)[:, :500] == before[:, :500]).all()
    assert (edit_of(grown).margins, edit_of(grown).changed_outside) == (Margins(right=320), 0)


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
    shown: Talk, expand: Expansion, code: ErrorCode
) -> None:
    turn = await shown.say("wider", expand=expand)
    assert (turn.failure.code, turn.requests) == (code, [])


async def test_a_mask_and_an_expansion_are_not_one_wish(shown: Talk) -> None:
    turn = await shown.say("wider", expand=WIDER, mask=Mask(stored(photo()), "#1"))
    assert turn.failure.code is ErrorCode.MASK_AND_EXPANSION


async def test_an_expansion_sent_again_grows_by_the_same(shown: Talk) -> None:
    first = (await shown.say("wider", plan=Text("With what?"), expand=WIDER)).turn
    assert first is not None
    await shown.say("more table", plan=Text("And then?"))
    request = await shown.studio.turns.request_of(shown.id, first.id, shown.owner)
    assert request.expand is not None
    again = await shown.say("wider", plan=TABLE, image=painted_inside(), expand=request.expand)
    assert again.turn is not None
    assert (first.margins, again.turn.margins) == (MARGINS, MARGINS)
    assert (again.picture.image.width, again.picture.image.height) == SIZE


# ---- in words


def colours(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


TEAL = png(640, 480, "teal")


@pytest.mark.parametrize(
    ("text", "size", "corner"),
    [
        ("outpaint to 16:9", (854, 480), (107, 0)),
        ("扩展画面到16:9", (854, 480), (107, 0)),
        ("往左边扩一点", (800, 480), (160, 0)),
        ("show more around it", (960, 720), (160, 120)),
    ],
)
async def test_without_a_key_what_is_there_is_continued(
    sketch: Talk, text: str, size: tuple[int, int], corner: tuple[int, int]
) -> None:
    made = (await sketch.say(text, TEAL)).picture
    before, after = [colours((await sketch.picture(handle)).data) for handle in ("#1", "#1b")]
    left, top = corner
    assert after.size == size
    assert after.crop((left, top, left + 640, top + 480)).tobytes() == before.tobytes()
    assert (made.image.origin, edit_of(made).kind) == (ImageOrigin.EDITED, "expansion")


async def test_with_a_key_the_agent_is_told_how_far_the_picture_grows_and_grows_it_exactly(talk: Talk) -> None:
    plan = paint("the same teal wall goes on", action="edit_image", handles=["#1"])
    turn = await talk.say("outpaint to 16:9", TEAL, plan=plan)
    assert turn.record.margins == Margins(left=107, right=107)
    assert "made larger beyond its edges" in turn.requests[0].last_text
    # Of a picture of one colour there is little to align by: the person is asked before it is paid for.
    assert turn.one(PlanReady).plans[0].notices == ("little_to_align_by",)
    there = await talk.say("outpaint to 4:3", TEAL)
    assert (there.failure.code, there.requests) == (ErrorCode.EXPANSION_EMPTY, [])
