"""Edits inside a mask through whole turns: what is sent, what comes of each kind of answer, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agent.components import SmartCanvas
from agent.errors import ErrorCode, RequestRefused
from agent.events import (
    PaintingStarted,
    PictureReady,
    PictureReviewed,
    TurnFailed,
)
from agent.messages import PromptMessage, Role, TextPart, ToolResultPart
from agent.requests import Expansion, Mask
from agent.settings import Settings
from tests.adapters.masks import packed
from tests.adapters.scripted import Asked, Line, Painting, calls, says
from tests.support.cases import each_case
from tests.support.masked_turns import (
    SIGNATURE,
    changed,
    deep,
    edit_of,
    in_turn,
    jpeg,
    mask_over,
    painter,
    pixels_of,
    planned,
    read_now,
    uploaded,
)
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.scenes import Scene, generate, of_type, only, png, run, words
from tests.support.turns import newest

PHOTO = stored(photo())
PLAIN = Line((Painting(PHOTO),))
AREA = rectangle(260, 180, 400, 320)
FRAME_1K = {(1024, 1024), (1264, 848), (848, 1264), (1200, 896), (896, 1200), (1152, 928), (928, 1152)}


def told(asked: Asked) -> PromptMessage:
    return next(message for message in reversed(asked.messages) if message.role is Role.PROMPT)


async def test_outside_the_mask_no_pixel_of_the_stored_file_changes_and_receipt_and_planner_say_so(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=planned("a cup", says("So be it.")), pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        # A pointing word is no question where there is a mask.
        chosen: dict[str, Any] = {"editing": "#1", "aspect_ratio": "21:9", "resolution": "4K"}
        events = await run(studio, conversation, "change this part", mask=mask_over("1", AREA, 16), **chosen)
        turn = await newest(studio, conversation)
        await run(studio, conversation, "thank you")
        before, after = await studio.picture(conversation, "#1"), await studio.picture(conversation, "#1b")
        raw = read_now(settings, edit_of(after.picture).raw)
    picture = only(events, PictureReady).picture
    assert (picture.handle, picture.parents) == ("#1b", ("#1",))
    assert (picture.image.mime_type, picture.image.width, picture.image.height) == ("image/png", 640, 520)
    differs = changed(pixels_of(before.data), pixels_of(after.data))
    assert (differs[AREA == 0] == 0).all()
    assert (differs[AREA > 0] > 0).mean() > 0.5
    edit = edit_of(picture)
    assert (edit.verdict, edit.reason, edit.kind) == ("good", "same_picture", "mask")
    assert (edit.changed_outside, edit.outside) == (0, int((AREA == 0).sum()))
    assert edit.shift_px > 3
    assert edit.placement is not None
    assert (turn.editing, turn.feather_px, edit.placement.feather_px) == ("#1", 16, 16)
    assert raw.startswith(b"\xff\xd8")
    assert after.picture == picture
    # The result is held against the picture's own size.
    started, receipt = only(events, PaintingStarted), picture.receipt
    assert (started.width, started.height) == (640, 520)
    assert receipt is not None
    assert (receipt.asked_resolution, receipt.asked_aspect_ratio) == ("640×520", None)
    assert (receipt.width, receipt.height, receipt.shortfalls) == (640, 520, ())
    assert receipt.price_usd > 0
    assert "[The person painted a mask over #1.]" in told(scene.provider.asked[1]).text
    results = [part for message in scene.provider.asked[-1].messages for part in message.parts]
    [result] = [part for part in results if isinstance(part, ToolResultPart)]
    assert "every pixel outside the marked part is as it was" in str(result.content)


async def test_the_model_is_sent_the_crop_the_marked_copy_the_references_and_what_must_stay(settings: Settings) -> None:
    script = [says("Two."), calls(generate("a red cup like #2", handles=["#2"]), text="A cup.")]
    scene = Scene(settings, text=script, pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Look.", PHOTO, stored(photo("chelsea")))
        await run(studio, conversation.id, "a cup", mask=mask_over("#1", AREA), aspect_ratio="21:9", resolution="4K")
        reference = await studio.picture(conversation.id, "#2")
    request = scene.provider.asked[-1].request
    assert request is not None
    [message] = request.messages
    crop, marked, other = message.images
    assert {(image.width, image.height) for image in (crop, marked)} <= FRAME_1K
    assert request.model.pixels(request.aspect_ratio or "", request.resolution) == (crop.width, crop.height)
    assert request.resolution == "1K"
    assert other.digest == reference.picture.image.digest
    assert isinstance(message.parts[-1], TextPart)
    text = message.parts[-1].text
    assert text.startswith("a red cup like #2")
    assert "pixel for pixel" in text
    assert "Image 3 is #2." in text
    assert "{" not in text
    assert request.mask is not None
    white = pixels_of(read_now(settings, request.mask))[..., 0] > 0
    assert (request.mask.width, request.mask.height) == (crop.width, crop.height)
    tinted = pixels_of(read_now(settings, crop)) != pixels_of(read_now(settings, marked))
    # The outline of the tint is drawn on both sides of the mask's border.
    assert (tinted.any(axis=2)[white]).mean() > 0.99
    assert 0.05 < white.mean() < 0.5


async def test_a_picture_that_was_pasted_is_never_sent_back_as_the_models_own(settings: Settings) -> None:
    first = painter(settings)
    lines: list[Line] = []

    def paint(asked: Asked) -> Line:
        lines.append(first(asked) if not lines else Line((Painting(PHOTO),)))
        return lines[-1]

    script = [*planned(), calls(generate("darker", reference_mode="LAST_GENERATED"))]
    scene = Scene(settings, text=script, pictures=paint)
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        await run(studio, conversation, "a cup", mask=mask_over("#1", AREA))
        composite = await studio.picture(conversation, "#1b")
        events = await run(studio, conversation, "let it be evening")
    assert isinstance(lines[0].parts[0], Painting)
    assert lines[0].parts[0].signature == SIGNATURE
    request = scene.provider.asked[-1].request
    assert request is not None
    assert [message.role for message in request.messages] == [Role.PROMPT]
    [shown] = request.messages[0].images
    assert (shown.digest, shown.thought_signature) == (composite.picture.image.digest, None)
    assert only(events, PictureReady).picture.parents == ("#1b",)


async def test_an_answer_that_shows_another_picture_is_kept_beside_the_untouched_original(settings: Settings) -> None:
    other = jpeg(photo("astronaut", 1200, 896))
    script = planned("a cup", says("I am sorry."), calls(generate("darker", action="edit_image")))
    scene = Scene(settings, text=script, pictures=[Line((Painting(other, "image/jpeg", signature=SIGNATURE),)), PLAIN])
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        events = await run(studio, conversation, "a cup", mask=mask_over("#1", AREA))
        original, kept = await studio.picture(conversation, "#1"), await studio.picture(conversation, "#1b")
        await run(studio, conversation, "what happened?")
        later = await run(studio, conversation, "darken it a lot at dusk")
        with pytest.raises(RequestRefused) as refused:
            await studio.keep(conversation, "#1b", True)
    assert kept.data == other
    edit = edit_of(only(events, PictureReady).picture)
    assert edit.verdict == "refused"
    assert edit.reason in {"another_picture", "another_framing"}
    assert (edit.base.digest, kept.picture.answer) == (original.picture.image.digest, None)
    assert kept.receipt is not None
    assert "×" not in (kept.receipt.asked_resolution or "")
    results = [part for message in scene.provider.asked[3].messages for part in message.parts]
    assert any("Not pasted" in str(part.content) for part in results if isinstance(part, ToolResultPart))
    # What fitted nowhere is not what the next change starts from.
    assert only(later, PictureReady).picture.parents == ("#1",)
    assert refused.value.code is ErrorCode.NOT_A_PART_EDIT


async def test_several_areas_are_one_request(settings: Settings) -> None:
    areas = [rectangle(120, 120, 220, 210), rectangle(400, 300, 520, 400)]
    both = np.maximum(*areas)
    scene = Scene(settings, text=planned(), pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        events = await run(studio, conversation, "cups here and there", mask=mask_over("#1", both))
        before, after = await studio.picture(conversation, "#1"), await studio.picture(conversation, "#1b")
    assert sum(asked.request is not None for asked in scene.provider.asked) == 1
    assert edit_of(only(events, PictureReady).picture).verdict == "good"
    differs = changed(pixels_of(before.data), pixels_of(after.data))
    assert (differs[both == 0] == 0).all()
    assert all((differs[area > 0] > 0).mean() > 0.3 for area in areas)


async def test_sixteen_bits_and_alpha_survive(settings: Settings) -> None:
    original = deep(photo())
    paint = in_turn(Line((Painting(stored(original)),)), painter(settings))
    scene = Scene(
        settings,
        text=[calls(generate("a table")), calls(generate("a red cup"))],
        pictures=paint,
    )
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a table")
        events = await run(studio, conversation.id, "a cup", mask=mask_over("#1", AREA))
        after = pixels_of((await studio.picture(conversation.id, "#1b")).data)
    assert edit_of(only(events, PictureReady).picture).verdict == "good"
    assert after.dtype == np.uint16
    assert (after[..., 3] == original[..., 3]).all()
    assert (changed(original, after)[AREA == 0] == 0).all()
    assert (changed(original, after)[AREA > 0] > 0).any()


async def test_each_of_several_pictures_is_pasted_by_itself(settings: Settings) -> None:
    other = jpeg(photo("astronaut", 1200, 896))
    paint = in_turn(painter(settings), Line((Painting(other, "image/jpeg"),)))
    scene = Scene(settings, text=planned(number_of_images=2), pictures=paint)
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        events = await run(studio, conversation, "two cups", mask=mask_over("#1", AREA))
    pictures = [event.picture for event in of_type(events, PictureReady)]
    assert sorted(edit_of(picture).verdict for picture in pictures) == ["good", "refused"]
    assert sorted(picture.handle for picture in pictures) == ["#1b", "#1c"]


async def test_the_review_looks_at_what_was_pasted_and_a_refused_answer_is_tried_again_unseen(
    settings: Settings,
) -> None:
    other = jpeg(photo("astronaut", 1200, 896))
    paint = in_turn(Line((Painting(other, "image/jpeg"),)), painter(settings))
    review = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
    scene = Scene(settings, text=planned("a cup", says(review)), pictures=paint)
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        events = await run(studio, conversation, "a cup", mask=mask_over("#1", AREA), review="always")
        turn = await newest(studio, conversation)
    reviewed = {event.handle: event.review for event in of_type(events, PictureReviewed)}
    assert (reviewed["#1b"].score, reviewed["#1b"].checklist) == (0.0, ())
    assert reviewed["#1c"].score == 0.9
    looks = [asked for asked in scene.provider.asked if asked.options.response_schema]
    assert len(looks) == 1
    assert "Asked for: 640:520. The picture has 640 × 520 pixels." in looks[0].messages[0].text
    assert "Image 2" not in looks[0].messages[0].text
    assert any(one == SmartCanvas(handles=("#1c",), earlier=("#1b",)) for one in turn.components)
    mended = [asked.request for asked in scene.provider.asked if asked.request][-1]
    assert "Keep the framing" in mended.messages[0].text


EMPTY, FULL = packed(np.zeros((52, 64), np.uint8)).data, packed(np.full((52, 64), 255, np.uint8)).data
ONE, TWO = Mask(FULL, "#1"), Mask(FULL, "#2")


@each_case(
    ("masks", "editing", "expand", "code"),
    [
        ([Mask(EMPTY, "#1")], None, None, ErrorCode.MASK_EMPTY),
        ([Mask(packed(np.full((64, 64), 255, np.uint8)).data, "#1")], None, None, ErrorCode.MASK_WRONG_SHAPE),
        ([Mask(b"no picture at all", "#1")], None, None, ErrorCode.MASK_UNREADABLE),
        ([Mask(FULL + bytes(21 << 20), "#1")], None, None, ErrorCode.MASK_TOO_LARGE),
        ([Mask(FULL, "#9")], None, None, ErrorCode.PICTURE_NOT_FOUND),
        ([ONE], "#2", None, ErrorCode.MASK_OF_ANOTHER_PICTURE),
        ([ONE, Mask(FULL, "1")], None, None, ErrorCode.MASKED_TWICE),
        ([ONE, Mask(FULL, "#9")], None, None, ErrorCode.PICTURE_NOT_FOUND),
        ([ONE, Mask(b"no picture", "#2")], None, None, ErrorCode.MASK_UNREADABLE),
        ([ONE] * 17, None, None, ErrorCode.TOO_MANY_PICTURES),
        ([ONE, TWO], "#3", None, ErrorCode.MASK_OF_ANOTHER_PICTURE),
        ([ONE, TWO], None, Expansion("#1", left=1), ErrorCode.MASK_AND_EXPANSION),
    ],
)
async def test_masks_that_cannot_be_used_are_refused_before_anything_is_asked(
    settings: Settings, masks: list[Mask], editing: str | None, expand: Expansion | None, code: ErrorCode
) -> None:
    scene = Scene(settings, text=[says("Three.")])
    mask = masks[0] if len(masks) == 1 else masks
    async with scene.studio() as studio:
        conversation = (await studio.new_conversation()).id
        await run(studio, conversation, "Look.", PHOTO, stored(photo("chelsea")), png())
        events = await run(studio, conversation, "a cup", mask=mask, editing=editing, expand=expand)
        kept = await studio.conversation(conversation)
    failed = only(events, TurnFailed)
    assert (failed.error.code, failed.error.actor.value) == (code, "you")
    assert len(scene.provider.asked) == 1
    assert len(kept.turns) == 1


@each_case(("arguments", "is_painted"), [({"action": "unknown"}, True), ({"confidence": 0.4}, False)])
async def test_with_a_mask_only_doubt_about_the_wish_asks_back(
    settings: Settings, arguments: dict[str, object], is_painted: bool
) -> None:
    script = planned("a cup", says("What shall it be?"), **arguments)
    scene = Scene(settings, text=script, pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        events = await run(studio, conversation, "put it here", mask=mask_over("#1", AREA))
    assert bool(of_type(events, PictureReady)) is is_painted
    assert ("What shall it be?" in words(events)) is not is_painted
