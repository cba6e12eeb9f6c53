"""A mask or an expansion of a picture that comes with the very message: `upload:N`."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from agent.errors import ErrorCode
from agent.events import PictureReady, TurnFailed
from agent.messages import PromptMessage, Role
from agent.pictures import Margins
from agent.requests import Expansion, Mask, TurnRequest, upload_number
from agent.settings import Settings
from agent.studio import Studio
from tests.adapters.masks import packed
from tests.adapters.scripted import Asked, calls, says
from tests.support.cases import each_case
from tests.support.masked_turns import changed, edit_of, mask_over, painter, pixels_of
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.scenes import Scene, generate, only, run
from tests.support.turns import newest

PHOTO = stored(photo())
OTHER = stored(photo("chelsea"))
AREA = rectangle(260, 180, 400, 320)
FULL = packed(np.full((52, 64), 255, np.uint8)).data
SQUARE = packed(np.full((64, 64), 255, np.uint8)).data
ONE_CUP = [calls(generate("a red cup on the table"), text="A cup.")]


def told(asked: Asked) -> PromptMessage:
    return next(message for message in reversed(asked.messages) if message.role is Role.PROMPT)


def files_of(settings: Settings) -> set[str]:
    """Return every stored file of a picture."""
    folders = (settings.home / "pictures", settings.home / "blobs")
    return {str(path) for folder in folders for path in folder.rglob("*") if path.is_file()}


@each_case(
    ("handle", "number"),
    [("upload:1", 1), ("upload:16", 16), ("upload:0", 0), ("#1", None), ("upload:", None), ("upload:1\n", None)],
)
def test_a_picture_of_the_request_is_named_by_its_number(handle: str, number: int | None) -> None:
    assert upload_number(handle) == number


async def test_outside_the_mask_no_pixel_of_a_picture_just_sent_changes(settings: Settings) -> None:
    scene = Scene(settings, text=[says("I see."), *ONE_CUP], pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = (await studio.new_conversation()).id
        await run(studio, conversation, "Look at this.", OTHER)
        mask = mask_over("upload:2", AREA, 16)
        events = await run(studio, conversation, "a red cup here", OTHER, PHOTO, mask=mask, editing="upload:2")
        turn = await newest(studio, conversation)
        before, after = await studio.picture(conversation, "#3"), await studio.picture(conversation, "#3b")
    assert [upload.handle for upload in turn.uploads] == ["#2", "#3"]
    assert (turn.editing, turn.feather_px) == ("#3", 16)
    assert turn.mask is not None
    assert (turn.mask.width, turn.mask.height) == (640, 520)
    assert pixels_of(before.data).tolist() == pixels_of(PHOTO).tolist()
    differs = changed(pixels_of(before.data), pixels_of(after.data))
    assert (differs[AREA == 0] == 0).all()
    assert (differs[AREA > 0] > 0).mean() > 0.5
    picture = only(events, PictureReady).picture
    assert (picture.handle, picture.parents) == ("#3b", ("#3",))
    assert (edit_of(picture).verdict, edit_of(picture).changed_outside) == ("good", 0)
    # The planner hears which of them is marked.
    planner = told(scene.provider.asked[1])
    assert "[The person marked #3 as the picture to change.]" in planner.text
    assert "[The person painted a mask over #3.]" in planner.text
    assert [image.handle for image in planner.images] == ["#2", "#3"]


async def test_a_picture_just_sent_grows_on_the_sides_that_were_chosen(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = (await studio.new_conversation()).id
        grown = Expansion("upload:1", right=0.5, bottom=0.25)
        events = await run(studio, conversation, "make it wider", PHOTO, expand=grown)
        turn = await newest(studio, conversation)
    picture = only(events, PictureReady).picture
    assert (turn.editing, turn.margins) == ("#1", Margins(right=320, bottom=130))
    assert (picture.image.width, picture.image.height) == (960, 650)
    assert picture.parents == ("#1",)


async def test_a_mask_fits_a_photo_as_it_stands_upright(settings: Settings) -> None:
    lying, sink = Image.open(io.BytesIO(PHOTO)).convert("RGB"), io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    lying.save(sink, "JPEG", exif=exif)
    upright = np.zeros((64, 52), np.uint8)
    upright[20:40, 10:30] = 255
    async with Studio(settings) as studio:
        conversation = (await studio.new_conversation()).id
        events = await run(studio, conversation, "darker", sink.getvalue(), mask=mask_over("upload:1", upright))
        turn = await newest(studio, conversation)
    assert turn.mask is not None
    assert (turn.mask.width, turn.mask.height) == (520, 640)
    assert edit_of(only(events, PictureReady).picture).changed_outside == 0


@each_case(
    ("mask", "expand", "editing", "code", "sentence"),
    [
        (Mask(FULL, "upload:2"), None, None, ErrorCode.UPLOAD_MISSING, "Picture 2 of this message"),
        (Mask(FULL, "upload:0"), None, None, ErrorCode.UPLOAD_MISSING, "Picture 0 of this message"),
        (None, Expansion("upload:9", left=1), None, ErrorCode.UPLOAD_MISSING, "Picture 9 of this message"),
        (Mask(SQUARE, "upload:1"), None, None, ErrorCode.MASK_WRONG_SHAPE, "another shape than garden.png"),
        (Mask(b"no picture", "upload:1"), None, None, ErrorCode.MASK_UNREADABLE, "cannot be read|not a picture"),
        (Mask(FULL, "upload:1"), None, "#1", ErrorCode.MASK_OF_ANOTHER_PICTURE, "belongs to garden.png"),
        (Mask(FULL, "#1"), None, "upload:1", ErrorCode.MASK_OF_ANOTHER_PICTURE, "belongs to #1"),
        (Mask(FULL, "upload:1"), None, "#7", ErrorCode.PICTURE_NOT_FOUND, "#7"),
        (Mask(FULL, "upload:x"), None, None, ErrorCode.PICTURE_NOT_FOUND, "upload:x"),
        (Mask(FULL, "upload:1"), Expansion("upload:1", left=1), None, ErrorCode.MASK_AND_EXPANSION, "one at a time"),
        (None, Expansion("upload:1"), None, ErrorCode.EXPANSION_EMPTY, "garden.png"),
        (None, Expansion("upload:1", left=400), None, ErrorCode.EXPANSION_TOO_LARGE, "garden.png would grow"),
    ],
)
async def test_what_fits_no_picture_of_the_message_is_refused_and_nothing_is_stored(
    settings: Settings,
    mask: Mask | None,
    expand: Expansion | None,
    editing: str | None,
    code: ErrorCode,
    sentence: str,
) -> None:
    scene = Scene(settings, text=[says("One.")])
    request = TurnRequest("a cup", [("garden.png", OTHER)], mask=mask, expand=expand, editing=editing)
    async with scene.studio() as studio:
        conversation = (await studio.new_conversation()).id
        await run(studio, conversation, "Look.", PHOTO)
        stored_before = files_of(settings)
        events = [event async for event in studio.run_turn(conversation, request)]
        kept = await studio.conversation(conversation)
    failed = only(events, TurnFailed)
    assert (failed.error.code, failed.error.actor.value) == (code, "you")
    assert any(part in failed.error.message for part in sentence.split("|"))
    assert stored_before
    assert files_of(settings) == stored_before
    assert len(kept.turns) == 1
    assert len(scene.provider.asked) == 1


async def test_a_file_that_is_no_picture_is_refused_before_the_mask_is_stored(settings: Settings) -> None:
    request = TurnRequest("a cup", [PHOTO, ("notes.png", b"words")], mask=mask_over("upload:1", AREA))
    async with Studio(settings) as studio:
        conversation = (await studio.new_conversation()).id
        events = [event async for event in studio.run_turn(conversation, request)]
        kept = await studio.conversation(conversation)
    assert only(events, TurnFailed).error.code is ErrorCode.PICTURE_UNREADABLE
    assert files_of(settings) == set()
    assert kept.turns == ()
