"""The drift guard: what an edit without a mask changed unasked is found, told, and can be taken back."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from agent.errors import ErrorCode, RequestRefused
from agent.events import PictureReady, TurnDone
from agent.pictures import Picture
from agent.requests import Mask
from agent.settings import Settings
from agent.studio import Studio
from tests.adapters.masks import packed
from tests.adapters.scripted import Line, Painting, calls, says
from tests.bench.masking_simulator import Redrawing
from tests.support.masked_turns import changed, in_turn, jpeg, mask_over, painter, pixels_of, read_now, redrawn
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.scenes import Scene, generate, of_type, only, run
from tests.support.turns import newest

PHOTO = stored(photo())
AREA = rectangle(260, 180, 400, 320)
DRIFT = Redrawing(shift=(7.0, -5.0), scale=1.015, gain=(1.05, 0.98, 0.96))
REVIEW = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
EDIT = calls(generate("a red cup", action="edit_image"))


def redrawn_photo() -> Line:
    return Line((Painting(redrawn(photo(), AREA, DRIFT), "image/jpeg", signature=b"its own"),))


async def edited(studio: Studio, **settings: Any) -> tuple[str, Picture]:
    """Return a conversation whose #1b is an edit of the photograph #1 without a mask, as it is on record."""
    conversation = await studio.new_conversation()
    await run(studio, conversation.id, "Look.", PHOTO)
    await run(studio, conversation.id, "a red cup", editing="#1", **settings)
    return conversation.id, (await studio.conversation(conversation.id)).picture("#1b")


@pytest.mark.parametrize("review", ["off", "always"])
async def test_what_an_edit_changed_is_on_record_when_the_turn_is_done(settings: Settings, review: str) -> None:
    script = [says("I see."), EDIT, *([says(REVIEW)] if review == "always" else []), calls(generate("darker"))]
    scene = Scene(settings, text=script, pictures=[redrawn_photo(), redrawn_photo()])
    async with scene.studio() as studio:
        conversation, picture = await edited(studio, review=review)
        await run(studio, conversation, "darker at dusk", editing="#1b", review="off")
    drift = picture.drift
    assert drift is not None
    assert (drift.base, drift.is_comparable, picture.review is not None) == ("#1", True, review == "always")
    assert (np.abs(drift.shift_px) > 1).any()
    assert abs(drift.scale - 1.015) < 0.01
    assert 0.01 < drift.changed_share < 0.3
    marked = pixels_of(read_now(settings, drift.changed))[..., 0]
    assert marked.shape == AREA.shape
    assert (marked[240:260, 320:340] > 0).all()
    assert (marked[AREA == 0] > 0).mean() < 0.1
    # What was added to its record took nothing from it: it goes back as the model's own.
    request = scene.provider.asked[-1].request
    assert request is not None
    assert request.messages[1].images[0].thought_signature == b"its own"
    async with scene.studio() as studio:
        assert (await studio.conversation(conversation)).picture("#1b") == picture


async def test_a_new_picture_a_masked_one_and_a_sketch_have_no_drift(settings: Settings) -> None:
    paint = in_turn(Line((Painting(PHOTO),)), painter(settings))
    scene = Scene(settings, text=[calls(generate("a table")), EDIT], pictures=paint)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a table")
        await run(studio, conversation.id, "a cup", mask=mask_over("#1", AREA))
        pictures = (await studio.conversation(conversation.id)).pictures
    assert [picture.drift for picture in pictures] == [None, None]
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        await run(studio, conversation.id, "blur it")
        pictures = (await studio.conversation(conversation.id)).pictures
    assert len(pictures) == 2
    assert pictures[-1].drift is None


async def test_another_picture_is_told_as_such(settings: Settings) -> None:
    other = Line((Painting(jpeg(photo("astronaut", 1200, 896)), "image/jpeg"),))
    scene = Scene(settings, text=[says("I see."), EDIT], pictures=[other])
    async with scene.studio() as studio:
        conversation, picture = await edited(studio)
        with pytest.raises(RequestRefused) as refused:
            await studio.keep_only(conversation, "#1b")
    assert picture.drift is not None
    assert (picture.drift.is_comparable, picture.drift.changed_share) == (False, 1.0)
    assert refused.value.code is ErrorCode.NOT_COMPARABLE


async def test_a_picture_whose_base_is_gone_is_shown_without_and_the_turn_is_done(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def paint(asked: object) -> Line:
        for path in (settings.home / "pictures").rglob("*.png"):
            path.unlink()
        return redrawn_photo()

    scene = Scene(settings, text=[says("I see."), EDIT], pictures=paint)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        with caplog.at_level(logging.WARNING):
            events = await run(studio, conversation.id, "a red cup", editing="#1")
        picture = (await studio.conversation(conversation.id)).picture("#1b")
    assert isinstance(events[-1], TurnDone)
    assert len(of_type(events, PictureReady)) == 1
    assert picture.drift is None
    assert "what changed in #1b cannot be told" in caplog.text


@pytest.mark.parametrize("is_masked", [False, True])
async def test_only_what_changed_is_kept_without_a_request(settings: Settings, is_masked: bool) -> None:
    scene = Scene(settings, text=[says("I see."), EDIT], pictures=[redrawn_photo()])
    area = rectangle(300, 200, 400, 300)
    async with scene.studio() as studio:
        conversation, picture = await edited(studio)
        asked = len(scene.provider.asked)
        mask = Mask(packed(area).data, "#1") if is_masked else None
        kept = await studio.keep_only(conversation, "#1b", mask=mask)
        before, after = await studio.picture(conversation, "#1"), await studio.picture(conversation, "#1c")
        turn = await newest(studio, conversation)
    assert len(scene.provider.asked) == asked
    assert (kept.handle, kept.parents, kept.edit is not None) == ("#1c", ("#1", "#1b"), True)
    assert kept.edit is not None
    assert (kept.edit.kind, kept.edit.verdict, kept.edit.grown_from) == ("kept_part", "good", "#1b")
    allowed = pixels_of(read_now(settings, kept.edit.mask))[..., 0]
    assert (allowed == area).all() if is_masked else picture.drift is not None
    differs = changed(pixels_of(before.data), pixels_of(after.data))
    assert (differs[allowed == 0] == 0).all()
    assert (differs[230:270, 310:350] > 0).mean() > 0.5
    # The edit itself had changed nearly every pixel.
    assert (
        changed(pixels_of(before.data), pixels_of(read_now(settings, picture.image)))[allowed == 0] > 0
    ).mean() > 0.5
    assert kept.receipt is not None
    assert kept.receipt.price_usd == 0
    assert turn.components[-1].type == "smart_canvas"


async def test_an_upload_and_a_picture_made_anew_have_nothing_to_keep_a_part_of(settings: Settings) -> None:
    scene = Scene(settings, text=[says("I see."), calls(generate("a table", action="generate_image"))], pictures=_new())
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO)
        events = await run(studio, conversation.id, "a new table")
        for handle in ("#1", only(events, PictureReady).picture.handle):
            with pytest.raises(RequestRefused) as refused:
                await studio.keep_only(conversation.id, handle)
            assert refused.value.code is ErrorCode.NOT_COMPARABLE


def _new() -> list[Line]:
    return [Line((Painting(stored(photo("chelsea"))),))]
