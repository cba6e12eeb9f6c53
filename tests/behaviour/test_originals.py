"""Uploads at their own size and bit depth through whole turns: what is kept, edited, shown to models, and told."""

from __future__ import annotations

import io
import stat

import cv2
import numpy as np
import pytest
from PIL import Image, ImageColor

from agent import ErrorCode, Mask, Picture, PixelSize, Receipt, Reduction, ReductionKind, RequestRefused
from tests.adapters.masks import packed
from tests.adapters.pixels import Raster, encode_png, open_picture
from tests.adapters.records import ImageStore
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk
from tests.bench.masking_simulator import Bytes
from tests.support.cases import each_case
from tests.support.gemini import paint
from tests.support.icc import rgb_profile
from tests.support.masked_turns import edit_of, mask_over, painted_inside, pixels_of
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.scenes import png
from tests.wire_server import PictureAnswer, Text

AREA = rectangle(260, 180, 400, 320)
PROFILE = rgb_profile()
I_SEE = Text("I see.")


def deep(width: int = 640, height: int = 520) -> np.ndarray[tuple[int, ...], np.dtype[np.uint16]]:
    """Return a photograph with 16 bits, of which the lower ones hold something of their own."""
    fine = np.random.default_rng(4).integers(0, 256, (height, width, 3)).astype(np.uint16)
    return np.asarray(photo(width=width, height=height) * np.uint16(256) + fine, np.uint16)


SCAN = encode_png(Raster(deep(), PROFILE))


def receipt_of(picture: Picture) -> Receipt:
    assert picture.receipt is not None
    return picture.receipt


def answer(data: bytes) -> PictureAnswer:
    return PictureAnswer(data=data, mime="image/png")


async def test_an_upload_is_kept_once_to_the_bit_and_the_file_it_was_lies_where_only_its_user_reads(
    open_talk: OpenTalk,
) -> None:
    async with open_talk() as talk:
        turn = await talk.say("Look.", SCAN, plan=I_SEE)
        kept = await talk.picture("#1")
        await talk.send(await talk.studio.turns.request_of(talk.id, turn.id, talk.owner), plan=I_SEE)
        again = await talk.picture("#2")
    assert np.array_equal(pixels_of(kept.data), deep())
    assert open_picture(kept.data).profile == PROFILE
    assert (kept.picture.image.bit_depth, kept.picture.image.width) == (16, 640)
    original = kept.picture.original
    assert original is not None
    assert (original.mime_type, original.size_bytes, original.bit_depth) == ("image/png", len(SCAN), 16)
    folder = talk.studio.settings.home / "originals"
    path = folder / original.digest[:2] / original.digest
    assert path.read_bytes() == SCAN
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    # Sent again it is the very same.
    assert (again.picture.image.digest, again.picture.original) == (kept.picture.image.digest, original)
    assert [one for one in folder.rglob("*") if one.is_file()] == [path]


async def test_a_masked_edit_of_16_bits_and_a_wide_profile_changes_nothing_outside(talk: Talk) -> None:
    await talk.say("Look.", SCAN, plan=I_SEE)
    turn = await talk.say("a red cup here", plan=paint(), image=painted_inside(), mask=mask_over("#1", AREA))
    result, edit = open_picture((await talk.picture("#1b")).data), edit_of(turn.picture)
    assert (result.bit_depth, result.profile, turn.picture.image.bit_depth) == (16, PROFILE, 16)
    differs = (result.pixels != deep()).any(axis=2)
    assert not differs[AREA == 0].any()
    assert differs[AREA > 0].mean() > 0.5
    assert (edit.changed_outside, edit.outside) == (0, int((AREA == 0).sum()))
    [told] = turn.receipt.reductions
    assert (told.kind, told.handle, told.full.bit_depth, told.used.bit_depth) == (ReductionKind.PART, "#1", 16, 8)


async def test_a_kept_part_has_the_originals_size_and_bits(talk: Talk) -> None:
    half = np.asarray(Image.fromarray(photo()).resize((320, 260), Image.Resampling.LANCZOS))
    plan = paint("a red cup", handles=["#1"], action="edit_image")
    await talk.say("Look.", SCAN, plan=I_SEE)
    await talk.say("a red cup on the table", plan=plan, image=answer(stored(half)))
    kept = await talk.studio.edits.keep_only(talk.id, "#1b", mask=Mask(packed(AREA).data, "#1"), owner=talk.owner)
    whole = (await talk.picture("#1b")).picture
    [told] = [one for one in receipt_of(whole).reductions if one.kind is ReductionKind.RESULT]
    assert told.used == PixelSize(width=320, height=260, bit_depth=8)
    result = open_picture((await talk.picture(kept.handle)).data)
    assert (result.width, result.height, result.bit_depth, kept.image.bit_depth) == (640, 520, 16, 16)
    assert not (result.pixels != deep()).any(axis=2)[AREA == 0].any()
    [part] = receipt_of(kept).reductions
    assert (part.kind, part.full.bit_depth) == (ReductionKind.PART, 16)
    assert (part.used.width, part.used.bit_depth) == (320, 8)


# ---- by the built-in models and exactly


async def sketched(sketch: Talk, words: str, data: bytes, area: Bytes | None = None) -> tuple[Picture, bytes]:
    """Return what the built-in models make of an upload, inside a mask perhaps."""
    mask = None if area is None else Mask(packed(area).data, "upload:1", 2)
    made = (await sketch.say(words, data, mask=mask)).picture
    assert receipt_of(made).reductions == ()
    return made, (await sketch.picture(made.handle)).data


@each_case("words", ["crop to a square", "裁成方形"])
async def test_an_exact_adjustment_keeps_16_bits(sketch: Talk, words: str) -> None:
    made, data = await sketched(sketch, words, SCAN)
    assert (made.image.bit_depth, receipt_of(made).bit_depth) == (16, 16)
    assert np.array_equal(pixels_of(data), deep()[:, 60:580])


@each_case(("words", "scale"), [("sepia", 1), ("invert the colours", 1), ("scale it to 50%", 0.5)])
async def test_the_sketch_models_operations_keep_16_bits_and_the_size(sketch: Talk, words: str, scale: float) -> None:
    made, data = await sketched(sketch, words, SCAN)
    assert (made.image.width, made.image.height, made.image.bit_depth) == (640 * scale, 520 * scale, 16)
    assert open_picture(data).bit_depth == 16


async def test_the_sketch_model_works_inside_a_mask_on_the_very_pixels(sketch: Talk) -> None:
    large = np.asarray(Image.fromarray(photo()).resize((2400, 1950), Image.Resampling.LANCZOS))
    area = rectangle(300, 200, 1900, 1700, (2400, 1950))
    _, data = await sketched(sketch, "invert the colours", encode_png(Raster(large)), area)
    after, inner = pixels_of(data), (slice(240, 1660), slice(340, 1860))
    assert not (after != large).any(axis=2)[area == 0].any()
    # Nothing was resampled, aligned or toned on the way.
    assert np.array_equal(after[inner], 255 - large[inner])


@each_case("words", ["make it red", "erase it", "fill it with blue", "invert the colours"])
async def test_the_sketch_model_works_inside_a_mask_with_all_bits_in_the_pictures_own_profile(
    sketch: Talk, words: str
) -> None:
    before = deep()
    made, data = await sketched(sketch, words, SCAN, AREA)
    result = open_picture(data)
    assert (result.bit_depth, result.profile, made.image.bit_depth) == (16, PROFILE, 16)
    assert not (result.pixels != before).any(axis=2)[AREA == 0].any()
    inner = result.pixels[AREA > 0]
    assert (inner != before[AREA > 0]).any(axis=1).mean() > 0.9
    # A picture of 8 bits that was made deeper has only every 257th level.
    assert words.startswith("fill") or (inner % 257 != 0).mean() > 0.8
    if words.startswith("invert"):
        well_inside = cv2.erode(AREA, np.ones((9, 9), np.uint8)) > 0
        assert np.array_equal(result.pixels[well_inside], 65535 - before[well_inside])


# ---- what models elsewhere are sent, and what is told of it

POSTER = paint(handles=["#1"], action="edit_image")


async def test_a_model_elsewhere_is_sent_a_small_copy_in_8_bits_and_the_receipt_says_so(talk: Talk) -> None:
    wide = encode_png(Raster(np.repeat(np.repeat(deep(600, 300), 8, axis=0), 8, axis=1), PROFILE))
    turn = await talk.say("make it a poster", wide, plan=POSTER, image=PictureAnswer(width=1264, height=848))
    await talk.say("and what was that?", plan=Text("It shows a cup of coffee."))
    for sent in (picture for request in talk.models.requests for picture in request.pictures):
        with Image.open(io.BytesIO(sent)) as image:
            assert max(image.size) <= 4096
            assert image.mode == "RGB"
            assert image.info == {} or image.format == "JPEG"
        assert sent[:8] != wide[:8] or sent[24] == 8
    shown, shape, result = turn.receipt.reductions
    full, used = (PixelSize(width=w, height=h, bit_depth=bits) for w, h, bits in ((4800, 2400, 16), (4096, 2048, 8)))
    assert shown == Reduction(kind=ReductionKind.SHOWN, handle="#1", full=full, used=used)
    assert shape.kind is ReductionKind.SHAPE
    assert (result.kind, result.full, result.used.width) == (ReductionKind.RESULT, full, 1264)


async def test_an_ordinary_picture_is_sent_as_it_is_kept_and_nothing_is_said(open_talk: OpenTalk) -> None:
    ordinary = encode_png(Raster(photo()))
    async with open_talk() as talk:
        turn = await talk.say("make it a poster", ordinary, plan=POSTER, image=PictureAnswer(width=1152, height=928))
        assert turn.requests[0].pictures == [(await talk.picture("#1")).data]
        assert turn.receipt.reductions == ()
        assert not list(talk.studio.settings.home.rglob("*.4096.png"))
        # Of a larger one the copy is made once, and looks like the picture.
        await talk.say("Look.", encode_png(Raster(deep())), plan=I_SEE)
        image = (await talk.picture("#2")).picture.image
        images = ImageStore(talk.studio.settings.home)
        copy = await images.model_copy(image)
        [path] = talk.studio.settings.home.rglob("*.4096.png")
        path.write_bytes(b"the kept one")
        assert await images.model_copy(image) == b"the kept one"
        assert np.abs(open_picture(copy).pixels.astype(int) - photo()).max() <= 1


async def test_visitors_may_send_less_all_of_one_message_has_a_limit_and_what_is_refused_leaves_no_file(
    open_talk: OpenTalk,
) -> None:
    heavy = b"\x89PNG\r\n\x1a\n" + bytes(21 << 20)
    async with open_talk() as talk:
        assert "at most 20 MB" in (await talk.say("look", heavy)).failure.message
        operators = Talk(talk.studio, talk.models, (await talk.studio.conversations.create()).id, "local")
        assert (await operators.say("look", SCAN, b"no picture")).failure.code is ErrorCode.PICTURE_UNREADABLE
        refused = (await operators.say("look", *[heavy] * 16)).failure
        assert refused.code is ErrorCode.PICTURES_TOO_LARGE
        assert "337 MB together; at most 320 MB" in refused.message
    folders = (talk.studio.settings.home / "pictures", talk.studio.settings.home / "originals")
    assert [path for folder in folders for path in folder.rglob("*") if path.is_file()] == []


SCREENSHOT = (1179, 2556)


@pytest.mark.parametrize(
    ("size", "came", "asked", "kinds"),
    [
        (SCREENSHOT, (768, 1376), {}, [ReductionKind.SHAPE]),
        ((1376, 768), (1376, 768), {}, []),
        (SCREENSHOT, (1024, 1024), {"aspect_ratio": "1:1"}, [ReductionKind.RESULT]),
    ],
)
async def test_a_shape_that_the_model_does_not_keep_is_told_unless_another_was_asked_for(
    talk: Talk, size: tuple[int, int], came: tuple[int, int], asked: dict[str, str], kinds: list[ReductionKind]
) -> None:
    sky = paint("make the sky pink", handles=["#1"], action="edit_image", **asked)
    turn = await talk.say("make the sky pink", png(*size), plan=sky, image=answer(png(*came, colour="pink")))
    told = [one for one in turn.receipt.reductions if one.kind is not ReductionKind.SHOWN]
    assert [one.kind for one in told] == kinds
    if ReductionKind.SHAPE in kinds:
        assert [(one.width, one.height) for one in (told[0].full, told[0].used)] == [size, came]


async def test_transparency_that_is_lost_is_told_and_can_be_had_back(talk: Talk) -> None:
    logo, file = Image.new("RGBA", (1024, 1024), (0, 0, 0, 0)), io.BytesIO()
    logo.paste((200, 30, 30, 255), (200, 200, 800, 800))
    logo.save(file, "PNG")
    gold, painted = paint("make it gold", handles=["#1"], action="edit_image"), answer(png(1024, 1024, "gold"))
    turn = await talk.say("make it gold", file.getvalue(), plan=gold, image=painted)
    back = await talk.studio.edits.keep_transparency(talk.id, turn.picture.handle, owner=talk.owner)
    with pytest.raises(RequestRefused) as refused:
        await talk.studio.edits.keep_transparency(talk.id, back.handle, owner=talk.owner)
    opaque = await (await talk.another()).say("make it gold", png(1024, 1024), plan=gold, image=painted)
    told = [[one.kind for one in one.receipt.reductions] for one in (turn, opaque)]
    assert told == [[ReductionKind.TRANSPARENCY], []]
    assert refused.value.code is ErrorCode.NO_TRANSPARENCY_LOST
    with Image.open(io.BytesIO((await talk.picture(back.handle)).data)) as shown:
        assert (shown.mode, shown.size) == ("RGBA", (1024, 1024))
        assert shown.getchannel("A").getpixel((10, 10)) == 0
        assert shown.getpixel((500, 500)) == (*ImageColor.getrgb("gold"), 255)
    assert (receipt_of(back).price_usd, receipt_of(back).reductions, back.edit) == (0, (), None)
