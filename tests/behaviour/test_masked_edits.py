"""Edits inside masks, through whole turns: what is sent, what comes of each kind of answer, and what stays."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from PIL import Image

from agent import (
    EXACT_ADJUSTMENT,
    ErrorCode,
    Expansion,
    Margins,
    Mask,
    PaintingStarted,
    PictureReviewed,
    PlanCard,
    PlanReady,
    SmartCanvas,
    TurnDone,
    TurnPaused,
    TurnStopped,
    upload_number,
)
from tests.adapters.language import AdjustmentChange, ChangeKind
from tests.adapters.masks import packed
from tests.adapters.pixels import read_rgb
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk
from tests.bench.masking_simulator import Bytes, Redrawing
from tests.support.cases import each_case
from tests.support.gemini import REVIEWED, SMALL, paint
from tests.support.masked_turns import (
    DRIFTED,
    changed,
    deep,
    edit_of,
    jpeg,
    mask_over,
    painted_inside,
    pixels_of,
    read_now,
    sky,
)
from tests.support.masking_scenes import Pixels, photo, rectangle, stored
from tests.support.refusals import refusal
from tests.support.scenes import of_type, png
from tests.support.waiting import until
from tests.wire_server import Calls, Hold, HttpError, PictureAnswer, Text
from tests.wire_server.models import pixels as frame_of

PHOTO, OTHER = stored(photo()), stored(photo("chelsea"))
FLIPPED = stored(np.ascontiguousarray(photo()[::-1]))
AREA = rectangle(260, 180, 400, 320)
MASK = mask_over("#1", AREA)
CUP = paint("a red cup on the table")
DARKER = paint("darker", action="edit_image")
ANOTHER_PICTURE = PictureAnswer(data=jpeg(photo("astronaut", 1200, 896)))
PLAIN = PictureAnswer(data=PHOTO, mime="image/png")


async def pixels(talk: Talk, handle: str) -> Pixels:
    return pixels_of((await talk.picture(handle)).data)


async def expect_changed_inside(talk: Talk, area: Bytes, after: str = "#1b", before: str = "#1") -> None:
    """Outside the area every pixel is as it was, and inside most are not."""
    differs = changed(await pixels(talk, before), await pixels(talk, after))
    assert (differs[area == 0] == 0).all()
    assert (differs[area > 0] > 0).mean() > 0.5


async def test_outside_the_mask_no_pixel_of_the_stored_file_changes_and_receipt_and_planner_say_so(shown: Talk) -> None:
    # A pointing word is no question where there is a mask.
    chosen: dict[str, Any] = {"mask": mask_over("1", AREA, 16), "editing": "#1", "aspect_ratio": "21:9"}
    turn = await shown.say("change this part", plan=CUP, image=painted_inside(), resolution="4K", **chosen)
    assert "[The person painted a mask over #1.]" in turn.requests[0].prompt
    await expect_changed_inside(shown, AREA)
    picture, edit, receipt = turn.picture, edit_of(turn.picture), turn.receipt
    assert (picture.handle, picture.parents, (await shown.picture("#1b")).picture) == ("#1b", ("#1",), picture)
    assert (picture.image.mime_type, picture.image.width, picture.image.height) == ("image/png", 640, 520)
    assert (edit.verdict, edit.reason, edit.kind) == ("good", "same_picture", "mask")
    assert (edit.changed_outside, edit.outside) == (0, int((AREA == 0).sum()))
    assert edit.shift_px > 3
    assert edit.placement is not None
    assert (turn.record.editing, turn.record.feather_px, edit.placement.feather_px) == ("#1", 16, 16)
    assert read_now(shown.studio.settings, edit.raw).startswith(b"\xff\xd8")
    # The result is held against the picture's own size.
    frame = turn.one(PaintingStarted)
    assert (frame.width, frame.height, receipt.width, receipt.height) == (640, 520, 640, 520)
    assert (receipt.asked_resolution, receipt.asked_aspect_ratio, receipt.shortfalls) == ("640×520", None, ())
    assert receipt.price_usd > 0
    [told] = (await shown.say("thank you", plan=Text("So be it."))).requests
    assert "every pixel outside the marked part is as it was" in str(told.contents)


@each_case(
    ("wish", "change", "amount"),
    [
        ("make this area a lot brighter", ChangeKind.BRIGHTER, 60),
        ("blur what I painted over a lot", ChangeKind.BLURRED, 60),
        ("censor it", ChangeKind.PIXELATED, 30),
        ("invert the colours here", ChangeKind.INVERTED, 0),
        ("把涂抹的部分变成棕褐色", ChangeKind.SEPIA, 0),
        ("打马赛克", ChangeKind.PIXELATED, 30),
    ],
)
async def test_light_and_effects_inside_a_mask_are_exact_ask_no_model_and_cost_nothing(
    shown: Talk, wish: str, change: ChangeKind, amount: float
) -> None:
    turn = await shown.say(wish, mask=mask_over("#1", AREA, 16), editing="#1")
    edit, receipt, made = edit_of(turn.picture), turn.receipt, turn.picture.handle
    await expect_changed_inside(shown, AREA, made)
    assert (turn.requests, turn.one(TurnDone).price_usd, receipt.model) == ([], 0.0, EXACT_ADJUSTMENT)
    assert receipt.changes == (AdjustmentChange(kind=change, amount=amount),)
    assert (edit.kind, edit.verdict, edit.changed_outside, edit.outside) == ("mask", "good", 0, int((AREA == 0).sum()))
    # What comes next starts from the picture as it is now, and the planner hears what was done.
    assert (await shown.say("make it warmer")).picture.parents == (made,)
    [told] = (await shown.say("what did you do?", plan=Text("So be it."))).requests
    assert f"inside the mask alone. The result is {made}.]" in told.text


async def test_the_planner_adjusts_inside_each_mask_exactly_and_a_frame_or_another_wish_is_the_image_models(
    shown: Talk,
) -> None:
    blurred = paint("blur 50", action="adjust_parameters", handles=["#1"])
    turn = await shown.say("hide the number plate", plan=blurred, mask=MASK)
    assert (turn.painted(), edit_of(turn.picture).changed_outside) == ([], 0)
    await expect_changed_inside(shown, AREA)
    for wish in ("make the cup brighter", "rotate it left", "darken all but this"):
        turn = await shown.say(wish, plan=CUP, image=painted_inside(), mask=MASK)
        assert len(turn.painted()) == 1, wish


async def test_the_model_is_sent_the_crop_the_marked_copy_the_references_and_what_must_stay(shown: Talk) -> None:
    await shown.say("And this.", OTHER, plan=Text("Two."))
    locks = {"aspect_ratio": "21:9", "resolution": "4K"}
    plan = paint("a red cup like #2", handles=["#2"])
    [request] = (await shown.say("a cup", plan=plan, image=painted_inside(), mask=MASK, **locks)).painted()
    crop, marked, other = map(read_rgb, request.pictures)
    assert request.config["imageConfig"]["imageSize"] == "1K"
    assert crop.shape[1::-1] == marked.shape[1::-1] == frame_of(request.config["imageConfig"]["aspectRatio"], "1K")
    assert (other == photo("chelsea")).all()
    assert 0.05 < (crop != marked).any(axis=2).mean() < 0.5
    assert request.prompt.startswith("a red cup like #2")
    assert "pixel for pixel" in request.prompt
    assert "Image 3 is #2." in request.prompt
    assert "{" not in request.prompt


async def test_a_picture_that_was_pasted_is_never_sent_back_as_the_models_own(shown: Talk) -> None:
    await shown.say("a cup", plan=CUP, image=painted_inside(), mask=MASK)
    again = await shown.say("and a saucer", plan=CUP, image=painted_inside(), mask=mask_over("#1b", AREA))
    assert again.picture.parents == ("#1b",)
    evening = paint("darker", reference_mode="LAST_GENERATED")
    turn = await shown.say("let it be evening", plan=evening, image=SMALL)
    [request] = turn.painted()
    assert [content["role"] for content in request.contents] == ["user"]
    assert request.pictures == [(await shown.picture("#1c")).data]
    assert "thoughtSignature" not in str(request.contents)
    assert turn.picture.parents == ("#1c",)


async def test_an_answer_that_shows_another_picture_is_kept_beside_the_untouched_original(shown: Talk) -> None:
    turn = await shown.say("a cup", plan=CUP, image=ANOTHER_PICTURE, mask=MASK)
    original, kept, edit = await shown.picture("#1"), await shown.picture("#1b"), edit_of(turn.picture)
    assert (kept.data, edit.verdict) == (ANOTHER_PICTURE.data, "refused")
    assert edit.reason in {"another_picture", "another_framing"}
    assert (edit.base.digest, kept.picture.answer) == (original.picture.image.digest, None)
    assert "×" not in (turn.receipt.asked_resolution or "")
    [told] = (await shown.say("what happened?", plan=Text("I am sorry."))).requests
    assert "Not pasted" in str(told.contents)
    # What fitted nowhere is not what the next change starts from.
    later = await shown.say("darken it a lot at dusk", plan=DARKER, image=PLAIN)
    assert later.picture.parents == ("#1",)
    assert await refusal(shown.studio.edits.keep(shown.id, "#1b", True, shown.owner)) is ErrorCode.NOT_A_PART_EDIT


async def test_several_areas_are_one_request(shown: Talk) -> None:
    areas = [rectangle(120, 120, 220, 210), rectangle(400, 300, 520, 400)]
    both = np.maximum(*areas)
    turn = await shown.say("cups here and there", plan=CUP, image=painted_inside(), mask=mask_over("#1", both))
    assert (len(turn.painted()), edit_of(turn.picture).verdict) == (1, "good")
    differs = changed(await pixels(shown, "#1"), await pixels(shown, "#1b"))
    assert (differs[both == 0] == 0).all()
    assert all((differs[area > 0] > 0).mean() > 0.3 for area in areas)


async def test_sixteen_bits_and_alpha_survive(talk: Talk) -> None:
    original = deep(photo())
    await talk.say("a table", plan=paint(), image=PictureAnswer(data=stored(original), mime="image/png"))
    turn = await talk.say("a cup", plan=CUP, image=painted_inside(), mask=MASK)
    after = await pixels(talk, "#1b")
    assert edit_of(turn.picture).verdict == "good"
    assert after.dtype == np.uint16
    assert (after[..., 3] == original[..., 3]).all()
    assert (changed(original, after)[AREA == 0] == 0).all()
    assert (changed(original, after)[AREA > 0] > 0).any()


async def test_each_of_several_pictures_is_pasted_by_itself(shown: Talk) -> None:
    plan = paint("a cup", number_of_images=2)
    turn = await shown.say("two cups", plan=plan, image=[ANOTHER_PICTURE, painted_inside()], mask=MASK)
    assert sorted(edit_of(picture).verdict for picture in turn.pictures) == ["good", "refused"]
    assert sorted(picture.handle for picture in turn.pictures) == ["#1b", "#1c"]


async def test_the_review_looks_at_what_was_pasted_and_a_refused_answer_is_tried_again_unseen(shown: Talk) -> None:
    shown.models.on_image(ANOTHER_PICTURE, painted_inside())
    turn = await shown.say("a cup", plan=[CUP, REVIEWED], mask=MASK, review="always")
    reviewed = {event.handle: event.review for event in of_type(turn.events, PictureReviewed)}
    assert (reviewed["#1b"].score, reviewed["#1b"].checklist, reviewed["#1c"].score) == (0.0, (), 0.9)
    [look] = [one for one in turn.requests if one.kind == "text" and not one.function_names]
    assert "Asked for: 640:520. The picture has 640 × 520 pixels." in look.text
    assert "Image 2" not in look.text
    assert SmartCanvas(handles=("#1c",), earlier=("#1b",)) in turn.components
    assert "Keep the framing" in turn.painted()[-1].prompt


@each_case(("doubt", "is_painted"), [({"action": "unknown"}, True), ({"confidence": 0.4}, False)])
async def test_with_a_mask_only_doubt_about_the_wish_asks_back(
    shown: Talk, doubt: dict[str, Any], is_painted: bool
) -> None:
    plan = [paint("a cup", **doubt), *([] if is_painted else [Text("What shall it be?")])]
    turn = await shown.say("put it here", plan=plan, image=painted_inside(), mask=MASK)
    assert len(turn.pictures) == is_painted
    assert ("What shall it be?" in turn.words) is not is_painted


# ---- what cannot be used

EMPTY, FULL = packed(np.zeros((52, 64), np.uint8)).data, packed(np.full((52, 64), 255, np.uint8)).data
SQUARE = packed(np.full((64, 64), 255, np.uint8)).data
ONE, TWO, SENT = Mask(FULL, "#1"), Mask(FULL, "#2"), Mask(FULL, "upload:1")


@pytest_asyncio.fixture(loop_scope="module")
async def of_three(shown: Talk) -> Talk:
    """A conversation with three pictures."""
    await shown.say("Look.", OTHER, png(), plan=Text("Three."))
    return shown


def files_of(talk: Talk) -> set[str]:
    """Return every stored file of a picture."""
    folders = (talk.studio.settings.home / "pictures", talk.studio.settings.home / "blobs")
    return {str(path) for folder in folders for path in folder.rglob("*") if path.is_file()}


@each_case(
    ("said", "code", "sentence"),
    [
        ({"mask": [Mask(EMPTY, "#1")]}, ErrorCode.MASK_EMPTY, ""),
        ({"mask": [Mask(SQUARE, "#1")]}, ErrorCode.MASK_WRONG_SHAPE, ""),
        ({"mask": [Mask(b"no picture at all", "#1")]}, ErrorCode.MASK_UNREADABLE, ""),
        ({"mask": [Mask(FULL + bytes(21 << 20), "#1")]}, ErrorCode.MASK_TOO_LARGE, ""),
        ({"mask": [Mask(FULL, "#9")]}, ErrorCode.PICTURE_NOT_FOUND, ""),
        ({"mask": [ONE], "editing": "#2"}, ErrorCode.MASK_OF_ANOTHER_PICTURE, ""),
        ({"mask": [ONE, Mask(FULL, "1")]}, ErrorCode.MASKED_TWICE, ""),
        ({"mask": [ONE, Mask(FULL, "#9")]}, ErrorCode.PICTURE_NOT_FOUND, ""),
        ({"mask": [ONE, Mask(b"no picture", "#2")]}, ErrorCode.MASK_UNREADABLE, ""),
        ({"mask": [ONE] * 17}, ErrorCode.TOO_MANY_PICTURES, ""),
        ({"mask": [ONE, TWO], "editing": "#3"}, ErrorCode.MASK_OF_ANOTHER_PICTURE, ""),
        ({"mask": [ONE, TWO], "expand": Expansion("#1", left=1)}, ErrorCode.MASK_AND_EXPANSION, ""),
        # Of a picture that comes with the very message.
        ({"mask": Mask(FULL, "upload:2")}, ErrorCode.UPLOAD_MISSING, "Picture 2 of this message"),
        ({"mask": Mask(FULL, "upload:0")}, ErrorCode.UPLOAD_MISSING, "Picture 0 of this message"),
        ({"expand": Expansion("upload:9", left=1)}, ErrorCode.UPLOAD_MISSING, "Picture 9 of this message"),
        ({"mask": Mask(SQUARE, "upload:1")}, ErrorCode.MASK_WRONG_SHAPE, "another shape than garden.png"),
        ({"mask": Mask(b"no picture", "upload:1")}, ErrorCode.MASK_UNREADABLE, ""),
        ({"mask": SENT, "editing": "#1"}, ErrorCode.MASK_OF_ANOTHER_PICTURE, "belongs to garden.png"),
        ({"mask": ONE, "editing": "upload:1"}, ErrorCode.MASK_OF_ANOTHER_PICTURE, "belongs to #1"),
        ({"mask": SENT, "editing": "#7"}, ErrorCode.PICTURE_NOT_FOUND, "#7"),
        ({"mask": Mask(FULL, "upload:x")}, ErrorCode.PICTURE_NOT_FOUND, "upload:x"),
        ({"mask": SENT, "expand": Expansion("upload:1", left=1)}, ErrorCode.MASK_AND_EXPANSION, "one at a time"),
        ({"expand": Expansion("upload:1")}, ErrorCode.EXPANSION_EMPTY, "garden.png"),
        ({"expand": Expansion("upload:1", left=400)}, ErrorCode.EXPANSION_TOO_LARGE, "garden.png would grow"),
    ],
)
async def test_masks_that_cannot_be_used_are_refused_and_nothing_is_asked_or_stored(
    of_three: Talk, said: dict[str, Any], code: ErrorCode, sentence: str
) -> None:
    images = [("garden.png", OTHER)] if "upload:" in str(said) else []
    before = files_of(of_three)
    turn = await of_three.say("a cup", *images, **said)
    assert (turn.failure.code, turn.failure.actor.value, turn.requests) == (code, "you", [])
    assert sentence in turn.failure.message
    assert (files_of(of_three), len((await of_three.kept()).turns)) == (before, 2)


async def test_a_file_that_is_no_picture_is_refused_before_the_mask_is_stored(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        turn = await talk.say("a cup", PHOTO, ("notes.png", b"words"), mask=mask_over("upload:1", AREA))
        assert turn.failure.code is ErrorCode.PICTURE_UNREADABLE
        assert (files_of(talk), (await talk.kept()).turns) == (set(), ())


# ---- pictures that come with the very message


@each_case(
    ("handle", "number"),
    [("upload:1", 1), ("upload:16", 16), ("upload:0", 0), ("#1", None), ("upload:", None), ("upload:1\n", None)],
)
def test_a_picture_of_the_request_is_named_by_its_number(handle: str, number: int | None) -> None:
    assert upload_number(handle) == number


async def test_outside_the_mask_no_pixel_of_a_picture_just_sent_changes(talk: Talk) -> None:
    await talk.say("Look at this.", OTHER, plan=Text("I see."))
    chosen: dict[str, Any] = {"mask": mask_over("upload:2", AREA, 16), "editing": "upload:2"}
    turn = await talk.say("a red cup here", OTHER, PHOTO, plan=CUP, image=painted_inside(), **chosen)
    assert [upload.handle for upload in turn.record.uploads] == ["#2", "#3"]
    assert (turn.record.editing, turn.record.feather_px) == ("#3", 16)
    assert turn.record.mask is not None
    assert (turn.record.mask.width, turn.record.mask.height) == (640, 520)
    assert (await pixels(talk, "#3") == pixels_of(PHOTO)).all()
    await expect_changed_inside(talk, AREA, "#3b", "#3")
    edit = edit_of(turn.picture)
    assert (turn.picture.parents, edit.verdict, edit.changed_outside) == (("#3",), "good", 0)
    # The planner hears which of them is marked.
    planner = turn.requests[0]
    assert "[The person marked #3 as the picture to change.]" in planner.prompt
    assert "[The person painted a mask over #3.]" in planner.prompt
    assert len(planner.pictures) == 2


async def test_a_picture_just_sent_grows_on_the_sides_that_were_chosen(sketch: Talk) -> None:
    turn = await sketch.say("make it wider", PHOTO, expand=Expansion("upload:1", right=0.5, bottom=0.25))
    image = turn.picture.image
    assert (turn.record.editing, turn.record.margins) == ("#1", Margins(right=320, bottom=130))
    assert (image.width, image.height, turn.picture.parents) == (960, 650, ("#1",))


async def test_a_mask_fits_a_photo_as_it_stands_upright(sketch: Talk) -> None:
    lying, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(photo()).save(lying, "JPEG", exif=exif)
    upright = rectangle(10, 20, 30, 40, (52, 64))
    turn = await sketch.say("darker", lying.getvalue(), mask=mask_over("upload:1", upright))
    assert turn.record.mask is not None
    assert (turn.record.mask.width, turn.record.mask.height) == (520, 640)
    assert edit_of(turn.picture).changed_outside == 0


# ---- masks over several pictures in one message

FIRST, SECOND = AREA, np.ascontiguousarray(AREA[::-1])


def masks(first: str = "#1", second: str = "#2") -> list[Mask]:
    return [mask_over(first, FIRST, 16), mask_over(second, SECOND)]


def cups(*handles: str) -> Calls:
    """Return the planner's answer for several masks: a call for each."""
    return Calls([paint("a red cup", handles=[handle]) for handle in handles])


@pytest.mark.parametrize("are_sent", [False, True])
async def test_without_a_key_each_picture_is_changed_inside_its_own_mask(sketch: Talk, are_sent: bool) -> None:
    if are_sent:
        turn = await sketch.say("make it much darker", PHOTO, FLIPPED, mask=masks("upload:1", "upload:2"))
    else:
        await sketch.say("What are these?", PHOTO, FLIPPED)
        turn = await sketch.say("make it much darker", mask=masks(), review="on")
    assert [(one.handle, one.parents) for one in turn.pictures] == [("#1b", ("#1",)), ("#2b", ("#2",))]
    assert of_type(turn.events, PictureReviewed) == []
    for picture, area in zip(turn.pictures, (FIRST, SECOND), strict=True):
        [base] = picture.parents
        await expect_changed_inside(sketch, area, picture.handle, base)
        before, after = await pixels(sketch, base), await pixels(sketch, picture.handle)
        assert after[area > 0].mean() < before[area > 0].mean() - 10
        edit = edit_of(picture)
        assert (edit.verdict, edit.changed_outside, edit.outside) == ("good", 0, int((area == 0).sum()))


async def test_the_planner_hears_of_every_mask_and_each_call_gets_that_of_its_picture_and_so_does_one_painted_again(
    shown: Talk,
) -> None:
    def inside(picture: Any) -> Bytes:
        mask = pixels_of(read_now(shown.studio.settings, edit_of(picture).mask))[..., 0]
        return np.where(mask > 127, 255, 0).astype(np.uint8)

    await shown.say("And this.", FLIPPED, plan=Text("I see."))
    plan = cups("1", "#2")
    turn = await shown.say("put a cup here", plan=plan, image=painted_inside(), mask=masks(), editing="#2")
    told = turn.requests[0].prompt
    assert "[The person marked #2 as the picture to change.]" in told
    assert told.index("a mask over #2.]") < told.index("a mask over #1.]"), "the marked one comes first"
    assert [(one.handle, one.feather_px) for one in turn.record.masked] == [("#2", None), ("#1", 16)]
    made = {one.parents[0]: one for one in turn.pictures}
    assert {handle: edit_of(one).changed_outside for handle, one in made.items()} == {"#1": 0, "#2": 0}
    assert ((inside(made["#1"]) == FIRST).all(), (inside(made["#2"]) == SECOND).all()) == (True, True)
    request = await shown.studio.turns.repeated(shown.id, made["#2"].handle, shown.owner)
    assert request is not None
    assert [one.handle for one in request.masks] == ["#2"]
    again = (await shown.send(request)).picture
    assert (again.parents, (inside(again) == SECOND).all()) == (("#2",), True)


async def test_a_turn_that_failed_or_was_answered_is_sent_again_with_all_its_masks(shown: Talk) -> None:
    first = await shown.say("a cup", plan=Text("Which colour?"), mask=mask_over("#1", AREA, 4))
    await shown.say("And this.", FLIPPED, plan=Text("And then?"))
    shown.models.on_image(painted_inside())
    again = await shown.retry(first, plan=CUP)
    assert (edit_of(again.picture).verdict, again.id != first.id) == ("good", True)
    assert (again.record.mask, again.record.feather_px) == (first.record.mask, 4)
    assert first.record.mask is not None
    failed = await shown.say("put a cup here", plan=HttpError(500), mask=masks())
    assert failed.failure.code is ErrorCode.PROVIDER_ERROR
    # The conversation has gone on: it cannot go on where it failed.
    await shown.say("hello", plan=Text("Hello."))
    again = await shown.retry(failed, plan=cups("#1", "#2"))
    assert {one.parents[0] for one in again.pictures} == {"#1", "#2"}


# ---- what comes later: judged, grown, cut off, stopped


async def test_too_little_to_align_by_is_asked_about_first_and_the_person_judges_the_result(talk: Talk) -> None:
    await talk.say("Look.", stored(sky(640, 520)), plan=Text("I see."))
    dropped = await talk.say("a bird", plan=paint("a bird"), mask=MASK)
    turn = await talk.decide(dropped, run=False)
    assert (type(turn.events[-1]), turn.painted()) == (TurnDone, [])
    assert [one.state for one in turn.components if isinstance(one, PlanCard)] == ["dropped"]
    paused = await talk.say("one bird", plan=paint("a bird"), mask=MASK)
    assert (type(paused.events[-1]), paused.painted()) == (TurnPaused, [])
    assert paused.one(PlanReady).plans[0].notices == ("little_to_align_by",)
    talk.models.on_image(painted_inside(Redrawing()))
    judged = edit_of((await talk.decide(paused)).picture)
    assert (judged.verdict, judged.reason, judged.is_kept) == ("unsure", "little_to_align_by", None)
    assert judged.before is not None
    assert judged.after is not None
    home = talk.studio.settings
    assert read_now(home, judged.before) != read_now(home, judged.after)
    assert (changed(await pixels(talk, "#1"), await pixels(talk, "#1b"))[AREA == 0] == 0).all()
    discarded = await talk.studio.edits.keep(talk.id, "#1b", False, talk.owner)
    assert edit_of(discarded).is_kept is edit_of((await talk.kept()).picture("#1b")).is_kept is False
    later = await talk.say("darken it a lot at dusk", plan=DARKER, image=PLAIN)
    assert later.picture.parents == ("#1",)


async def test_what_went_beyond_the_mask_is_taken_in_without_a_request(shown: Talk) -> None:
    grow = shown.studio.edits.grow_mask
    spills = painted_inside(replace(DRIFTED, bleed_px=18))
    spilt = (await shown.say("a cup", plan=CUP, image=spills, mask=MASK)).picture
    asked = len(shown.models.requests)
    grown = await grow(shown.id, "#1b", shown.owner)
    assert len(shown.models.requests) == asked
    edit, before, wider = edit_of(grown), edit_of(spilt), await shown.picture(grown.handle)
    assert (before.spill_px > 6, before.grown_mask is not None) == (True, True)
    assert any(notice.code == "spills" for notice in before.notices)
    assert (grown.handle, grown.parents, grown.turn_id) == ("#1c", ("#1",), spilt.turn_id)
    assert (edit.grown_from, edit.verdict, edit.mask) == ("#1b", "good", before.grown_mask)
    assert wider.receipt is not None
    assert (wider.receipt.price_usd, wider.receipt.usage.total_tokens) == (0, 0)
    area = pixels_of(read_now(shown.studio.settings, edit.mask))[..., 0]
    differs = changed(await pixels(shown, "#1"), pixels_of(wider.data))
    assert (differs[area == 0] == 0).all()
    assert (differs[(area > 0) & (AREA == 0)] > 0).mean() > 0.5
    assert (await shown.kept()).turns[-1].components[-1] == SmartCanvas(handles=("#1c",))
    assert await refusal(grow(shown.id, "#1", shown.owner)) is ErrorCode.NOT_A_PART_EDIT
    assert await refusal(grow(shown.id, "#1b", "bob")) is ErrorCode.CONVERSATION_NOT_FOUND
    # What the person made of it stands for it from now on.
    evening = paint("darker", reference_mode="LAST_GENERATED")
    later = await shown.say("let it be evening", plan=evening, image=PLAIN)
    assert later.picture.parents == ("#1c",)
    # A change within its mask has nothing to grow.
    inner = await shown.say("a cup", plan=CUP, image=painted_inside(), mask=MASK)
    assert await refusal(grow(shown.id, inner.picture.handle, shown.owner)) is ErrorCode.NOTHING_TO_GROW


async def test_after_a_restart_the_plan_is_made_anew_and_is_the_same(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        await talk.say("Look.", PHOTO, plan=Text("I see."))
        paused = await talk.say("a cup", plan=CUP, mask=MASK, confirm=True)
        before = await talk.kept()
    files = {path.stem for path in (talk.studio.settings.home / "pictures").rglob("*.png")}
    async with open_talk(talk) as talk:
        assert await talk.kept() == before
        talk.models.on_image(painted_inside())
        turn = await talk.decide(paused)
        kept = await talk.kept()
    assert {hashlib.sha256(data).hexdigest() for data in turn.painted()[0].pictures} <= files
    assert edit_of(turn.picture).verdict == "good"
    async with open_talk(talk) as talk:
        assert await talk.kept() == kept


async def test_an_answer_that_comes_after_stop_is_pasted_and_kept(shown: Talk) -> None:
    late = painted_inside()
    shown.models.on_image(lambda request: Hold(late(request)))
    turn = await shown.stop_at(PaintingStarted, "a cup", plan=CUP, mask=MASK)
    assert isinstance(turn.events[-1], TurnStopped)
    await until(lambda: shown.models.held)
    shown.models.release()

    async def kept() -> bool:
        return len((await shown.kept()).pictures) == 2

    await until(kept)
    picture = (await shown.picture("#1b")).picture
    assert (picture.after_stop, edit_of(picture).verdict, edit_of(picture).changed_outside) == (True, "good", 0)
