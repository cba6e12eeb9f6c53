"""The drift guard: what an edit without a mask changed unasked is found, told, and can be taken back."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from agent import ErrorCode, Mask, TurnDone
from tests.adapters.masks import packed
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.bench.masking_simulator import Redrawing
from tests.support.gemini import REVIEWED, SMALL, paint
from tests.support.masked_turns import changed, jpeg, mask_over, painted_inside, pixels_of, read_now, redrawn
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.refusals import refusal
from tests.wire_server import Answer, PictureAnswer, Text, WireRequest

PHOTO = stored(photo())
AREA = rectangle(260, 180, 400, 320)
REDRAWN = PictureAnswer(data=redrawn(photo(), AREA, Redrawing(shift=(7.0, -5.0), scale=1.015, gain=(1.05, 0.98, 0.96))))
EDIT = paint("a red cup", action="edit_image")


async def edited(shown: Talk, image: Answer = REDRAWN) -> TurnResult:
    """Have the photograph #1 edited without a mask: it becomes #1b."""
    return await shown.say("a red cup", plan=EDIT, image=image, editing="#1")


@pytest.mark.parametrize("review", ["off", "always"])
async def test_what_an_edit_changed_is_on_record_when_the_turn_is_done(shown: Talk, review: str) -> None:
    plan = [EDIT, REVIEWED][: 1 + (review == "always")]
    await shown.say("a red cup", plan=plan, image=REDRAWN, editing="#1", review=review)
    picture = (await shown.picture("#1b")).picture
    drift = picture.drift
    assert drift is not None
    assert (drift.base, drift.is_comparable, picture.review is not None) == ("#1", True, review == "always")
    assert (np.abs(drift.shift_px) > 1).any()
    assert abs(drift.scale - 1.015) < 0.01
    assert 0.01 < drift.changed_share < 0.3
    marked = pixels_of(read_now(shown.studio.settings, drift.changed))[..., 0]
    assert marked.shape == AREA.shape
    assert (marked[240:260, 320:340] > 0).all()
    assert (marked[AREA == 0] > 0).mean() < 0.1
    # What was added to its record took nothing from it: it goes back as the model's own, signed.
    turn = await shown.say("darker at dusk", plan=paint("darker"), image=SMALL, editing="#1b")
    assert [content["role"] for content in turn.painted()[0].contents] == ["user", "model", "user"]


async def test_a_new_picture_a_masked_one_and_a_sketch_have_no_drift(talk: Talk, sketch: Talk) -> None:
    await talk.say("a table", plan=paint(), image=PictureAnswer(data=PHOTO, mime="image/png"))
    await talk.say("a cup", plan=EDIT, image=painted_inside(), mask=mask_over("#1", AREA))
    await sketch.say("blur it", PHOTO)
    pictures = [*(await talk.kept()).pictures, *(await sketch.kept()).pictures]
    assert [picture.drift for picture in pictures] == [None] * 4


async def test_another_picture_is_told_as_such_and_nothing_of_it_can_be_kept(shown: Talk) -> None:
    await edited(shown, PictureAnswer(data=jpeg(photo("astronaut", 1200, 896))))
    drift = (await shown.picture("#1b")).picture.drift
    assert drift is not None
    assert (drift.is_comparable, drift.changed_share) == (False, 1.0)
    # Nor of an upload, and of a picture made anew.
    plan = paint("a table", action="generate_image")
    new = await shown.say(
        "a new table", plan=plan, image=PictureAnswer(data=stored(photo("chelsea")), mime="image/png")
    )
    keep_only = shown.studio.edits.keep_only
    handles = ("#1b", "#1", new.picture.handle)
    refused = [await refusal(keep_only(shown.id, handle, owner=shown.owner)) for handle in handles]
    assert refused == [ErrorCode.NOT_COMPARABLE] * 3


async def test_a_picture_whose_base_is_gone_is_shown_without_and_the_turn_is_done(
    open_talk: OpenTalk, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_talk() as talk:

        def painter(request: WireRequest) -> Answer:
            for path in (talk.studio.settings.home / "pictures").rglob("*.png"):
                path.unlink()
            return REDRAWN

        await talk.say("Look.", PHOTO, plan=Text("I see."))
        with caplog.at_level(logging.WARNING):
            turn = await talk.say("a red cup", plan=EDIT, image=painter, editing="#1")
        kept = await talk.kept()
    assert (type(turn.events[-1]), len(turn.pictures), kept.picture("#1b").drift) == (TurnDone, 1, None)
    assert "what changed in #1b cannot be told" in caplog.text


@pytest.mark.parametrize("is_masked", [False, True])
async def test_only_what_changed_is_kept_without_a_request(shown: Talk, is_masked: bool) -> None:
    area = rectangle(300, 200, 400, 300)
    await edited(shown)
    picture, asked = (await shown.picture("#1b")).picture, len(shown.models.requests)
    mask = Mask(packed(area).data, "#1") if is_masked else None
    kept = await shown.studio.edits.keep_only(shown.id, "#1b", mask=mask, owner=shown.owner)
    assert len(shown.models.requests) == asked
    assert (kept.handle, kept.parents) == ("#1c", ("#1", "#1b"))
    assert kept.edit is not None
    assert (kept.edit.kind, kept.edit.verdict, kept.edit.grown_from) == ("kept_part", "good", "#1b")
    allowed = pixels_of(read_now(shown.studio.settings, kept.edit.mask))[..., 0]
    assert (allowed == area).all() if is_masked else picture.drift is not None
    before, whole, part = [pixels_of((await shown.picture(handle)).data) for handle in ("#1", "#1b", "#1c")]
    differs = changed(before, part)
    assert (differs[allowed == 0] == 0).all()
    assert (differs[230:270, 310:350] > 0).mean() > 0.5
    # The edit itself had changed nearly every pixel.
    assert (changed(before, whole)[allowed == 0] > 0).mean() > 0.5
    assert kept.receipt is not None
    assert kept.receipt.price_usd == 0
    assert (await shown.kept()).turns[-1].components[-1].type == "smart_canvas"
