"""Uploads at their own size and bit depth through whole turns: what is kept, edited, shown to models, and told."""

from __future__ import annotations

import io
import stat
from collections.abc import Iterator

import cv2
import numpy as np
import pytest
from PIL import Image, ImageColor
from pydantic import JsonValue

from agent.errors import ErrorCode, RequestRefused
from agent.events import PictureReady, TurnDone, TurnFailed
from agent.pictures import Picture, PixelSize, Receipt, Reduction, ReductionKind
from agent.requests import Mask
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.adapters.masks import packed
from tests.adapters.pixels import Raster, encode_png, open_picture
from tests.adapters.records import ImageStore
from tests.adapters.scripted import Asked, Line, Painting, calls, says
from tests.support.cases import each_case
from tests.support.gemini import on_gemini, paint
from tests.support.icc import rgb_profile
from tests.support.masked_turns import edit_of, mask_over, painter, pixels_of, planned, uploaded
from tests.support.masking_scenes import photo, rectangle
from tests.support.scenes import Scene, generate, only, picture, png, run
from tests.support.turns import newest, send
from tests.wire_server import GeminiServer, PictureAnswer, Text

AREA = rectangle(260, 180, 400, 320)
PROFILE = rgb_profile()


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


def deep(width: int = 640, height: int = 520) -> np.ndarray[tuple[int, ...], np.dtype[np.uint16]]:
    """Return a photograph with 16 bits, of which the lower ones hold something of their own."""
    fine = np.random.default_rng(4).integers(0, 256, (height, width, 3)).astype(np.uint16)
    return np.asarray(photo(width=width, height=height) * np.uint16(256) + fine, np.uint16)


SCAN = encode_png(Raster(deep(), PROFILE))


def receipt_of(picture: Picture) -> Receipt:
    assert picture.receipt is not None
    return picture.receipt


async def test_an_upload_is_kept_once_to_the_bit_and_the_file_it_was_lies_where_only_its_user_reads(
    settings: Settings,
) -> None:
    async with Scene(settings, text=[says("I see."), says("I see it again.")]).studio() as studio:
        conversation = await uploaded(studio, SCAN)
        kept = await studio.picture(conversation, "#1")
        request = await studio.request_of(conversation, (await newest(studio, conversation)).id)
        await send(studio, conversation, request)
        again = await studio.picture(conversation, "#2")
    assert np.array_equal(pixels_of(kept.data), deep())
    assert open_picture(kept.data).profile == PROFILE
    assert (kept.picture.image.bit_depth, kept.picture.image.width) == (16, 640)
    original = kept.picture.original
    assert original is not None
    assert (original.mime_type, original.size_bytes, original.bit_depth) == ("image/png", len(SCAN), 16)
    path = settings.home / "originals" / original.digest[:2] / original.digest
    assert path.read_bytes() == SCAN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    # Sent again it is the very same.
    assert (again.picture.image.digest, again.picture.original) == (kept.picture.image.digest, original)
    assert [one for one in (settings.home / "originals").rglob("*") if one.is_file()] == [path]


async def test_a_masked_edit_of_16_bits_and_a_wide_profile_changes_nothing_outside(settings: Settings) -> None:
    scene = Scene(settings, text=planned(), pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await uploaded(studio, SCAN)
        events = await run(studio, conversation, "a red cup here", mask=mask_over("#1", AREA))
        after = await studio.picture(conversation, "#1b")
    made = only(events, PictureReady).picture
    result = open_picture(after.data)
    assert (result.bit_depth, result.profile, made.image.bit_depth) == (16, PROFILE, 16)
    differs = (result.pixels != deep()).any(axis=2)
    assert not differs[AREA == 0].any()
    assert differs[AREA > 0].mean() > 0.5
    assert (edit_of(made).changed_outside, edit_of(made).outside) == (0, int((AREA == 0).sum()))
    [told] = receipt_of(made).reductions
    assert (told.kind, told.handle, told.full.bit_depth, told.used.bit_depth) == (ReductionKind.PART, "#1", 16, 8)


async def test_a_kept_part_has_the_originals_size_and_bits(settings: Settings) -> None:
    scene = Scene(settings, text=planned(handles=["#1"], action="edit_image"), pictures=redraw_whole)
    async with scene.studio() as studio:
        conversation = await uploaded(studio, SCAN)
        await run(studio, conversation, "a red cup on the table")
        kept = await studio.keep_only(conversation, "#1b", mask=Mask(packed(AREA).data, "#1"))
        whole = await studio.picture(conversation, "#1b")
        data = (await studio.picture(conversation, kept.handle)).data
    [told] = [one for one in receipt_of(whole.picture).reductions if one.kind is ReductionKind.RESULT]
    assert told.used == PixelSize(width=320, height=260, bit_depth=8)
    result = open_picture(data)
    assert (result.width, result.height, result.bit_depth, kept.image.bit_depth) == (640, 520, 16, 16)
    assert not (result.pixels != deep()).any(axis=2)[AREA == 0].any()
    [part] = receipt_of(kept).reductions
    assert (part.kind, part.full.bit_depth) == (ReductionKind.PART, 16)
    assert (part.used.width, part.used.bit_depth) == (320, 8)


def redraw_whole(_asked: Asked) -> Line:
    """Return the photograph at half the size, as a model that edits whole pictures delivers it."""
    small = Image.fromarray(photo()).resize((320, 260), Image.Resampling.LANCZOS)
    sink = io.BytesIO()
    small.save(sink, "PNG")
    return Line((Painting(sink.getvalue()),))


@each_case("words", ["crop to a square", "裁成方形"])
async def test_an_exact_adjustment_keeps_16_bits(settings: Settings, words: str) -> None:
    async with Scene(settings, text=[says("I see.")]).studio() as studio:
        conversation = await uploaded(studio, SCAN)
        events = await run(studio, conversation, words)
        data = (await studio.picture(conversation, "#1b")).data
    made = only(events, PictureReady).picture
    assert (made.image.bit_depth, receipt_of(made).bit_depth) == (16, 16)
    assert np.array_equal(pixels_of(data), deep()[:, 60:580])


async def sketched(
    settings: Settings, words: str, data: bytes, area: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None = None
) -> tuple[Picture, bytes]:
    """Return what the sketch model makes of an upload, inside a mask perhaps."""
    mask = None if area is None else Mask(packed(area).data, "upload:1", 2)
    async with Studio(settings) as studio:
        conversation = (await studio.new_conversation()).id
        made = only(await run(studio, conversation, words, data, mask=mask), PictureReady).picture
        assert receipt_of(made).reductions == ()
        return made, (await studio.picture(conversation, made.handle)).data


@each_case(("words", "scale"), [("sepia", 1), ("invert the colours", 1), ("scale it to 50%", 0.5)])
async def test_the_sketch_models_operations_keep_16_bits_and_the_size(
    settings: Settings, words: str, scale: float
) -> None:
    made, data = await sketched(settings, words, SCAN)
    assert (made.image.width, made.image.height, made.image.bit_depth) == (640 * scale, 520 * scale, 16)
    assert open_picture(data).bit_depth == 16


async def test_the_sketch_model_works_inside_a_mask_on_the_very_pixels(settings: Settings) -> None:
    large = np.asarray(Image.fromarray(photo()).resize((2400, 1950), Image.Resampling.LANCZOS))
    area = rectangle(300, 200, 1900, 1700, (2400, 1950))
    _, data = await sketched(settings, "invert the colours", encode_png(Raster(large)), area)
    after = pixels_of(data)
    assert not (after != large).any(axis=2)[area == 0].any()
    inner = (slice(240, 1660), slice(340, 1860))
    # Nothing was resampled, aligned or toned on the way.
    assert np.array_equal(after[inner], 255 - large[inner])


@each_case(
    "words",
    ["make it red", "erase it", "blur it", "pixelate it", "fill it with blue", "brighter", "invert the colours"],
)
async def test_the_sketch_model_works_inside_a_mask_with_all_bits_in_the_pictures_own_profile(
    settings: Settings, words: str
) -> None:
    before = deep()
    made, data = await sketched(settings, words, SCAN, AREA)
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


async def test_a_model_elsewhere_is_sent_a_small_copy_in_8_bits_and_the_receipt_says_so(
    server: GeminiServer, settings: Settings
) -> None:
    wide = encode_png(Raster(np.repeat(np.repeat(deep(600, 300), 8, axis=0), 8, axis=1), PROFILE))
    server.on_text(paint(handles=["#1"], action="edit_image"))
    server.on_image(PictureAnswer(width=1264, height=848))
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = (await studio.new_conversation()).id
        events = await run(studio, conversation, "make it a poster", wide)
        server.on_text(Text("It shows a cup of coffee."))
        assert isinstance((await run(studio, conversation, "and what was that?"))[-1], TurnDone)
    assert server.violations == []
    for request in server.requests:
        for sent in request.pictures:
            with Image.open(io.BytesIO(sent)) as image:
                assert max(image.size) <= 4096
                assert image.mode == "RGB"
                assert image.info == {} or image.format == "JPEG"
            assert sent[:8] != wide[:8] or sent[24] == 8
    shown, shape, result = receipt_of(only(events, PictureReady).picture).reductions
    assert shape.kind is ReductionKind.SHAPE
    full = PixelSize(width=4800, height=2400, bit_depth=16)
    assert shown == Reduction(
        kind=ReductionKind.SHOWN, handle="#1", full=full, used=PixelSize(width=4096, height=2048, bit_depth=8)
    )
    assert (result.kind, result.full, result.used.width) == (ReductionKind.RESULT, full, 1264)


async def test_an_ordinary_picture_is_sent_as_it_is_kept_and_nothing_is_said(
    server: GeminiServer, settings: Settings
) -> None:
    server.on_text(paint(handles=["#1"], action="edit_image"))
    server.on_image(PictureAnswer(width=1152, height=928))
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = (await studio.new_conversation()).id
        events = await run(studio, conversation, "make it a poster", encode_png(Raster(photo())))
        kept = (await studio.picture(conversation, "#1")).data
    assert server.requests[0].pictures == [kept]
    assert receipt_of(only(events, PictureReady).picture).reductions == ()
    assert not list(settings.home.rglob("*.4096.png"))


async def test_visitors_may_send_less_all_of_one_message_has_a_limit_and_what_is_refused_leaves_no_file(
    settings: Settings,
) -> None:
    heavy = b"\x89PNG\r\n\x1a\n" + bytes(21 << 20)
    async with Scene(settings).studio() as studio:
        visitors = (await studio.new_conversation("visitor")).id
        own = (await studio.new_conversation()).id
        [*_, refused] = await send(studio, visitors, TurnRequest(text="look", images=[heavy]), "visitor")
        assert isinstance(refused, TurnFailed)
        assert "at most 20 MB" in refused.error.message
        assert isinstance((await run(studio, own, "look", SCAN, b"no picture"))[-1], TurnFailed)
        [*_, refused] = await send(studio, own, TurnRequest(text="look", images=[heavy] * 16))
    assert isinstance(refused, TurnFailed)
    assert refused.error.code is ErrorCode.PICTURES_TOO_LARGE
    assert "337 MB together; at most 320 MB" in refused.error.message
    folders = (settings.home / "pictures", settings.home / "originals")
    assert [path for folder in folders for path in folder.rglob("*") if path.is_file()] == []


async def test_a_copy_is_made_once_and_looks_like_the_picture(settings: Settings) -> None:
    async with Scene(settings, text=[says("I see.")]).studio() as studio:
        conversation = await uploaded(studio, encode_png(Raster(deep())))
        image = (await studio.picture(conversation, "#1")).picture.image
    images = ImageStore(settings.home)
    copy = await images.model_copy(image)
    [path] = settings.home.rglob("*.4096.png")
    path.write_bytes(b"the kept one")
    assert await images.model_copy(image) == b"the kept one"
    assert np.abs(open_picture(copy).pixels.astype(int) - photo()).max() <= 1


SCREENSHOT = (1179, 2556)


@each_case(
    ("size", "answer", "asked", "kinds"),
    [
        (SCREENSHOT, (768, 1376), {}, [ReductionKind.SHAPE]),
        ((1376, 768), (1376, 768), {}, []),
        (SCREENSHOT, (1024, 1024), {"aspect_ratio": "1:1"}, [ReductionKind.RESULT]),
    ],
)
async def test_a_shape_that_the_model_does_not_keep_is_told_unless_another_was_asked_for(
    settings: Settings,
    size: tuple[int, int],
    answer: tuple[int, int],
    asked: dict[str, JsonValue],
    kinds: list[ReductionKind],
) -> None:
    sky = generate("make the sky pink", handles=["#1"], action="edit_image", **asked)
    scene = Scene(settings, text=[calls(sky)], pictures=[picture(*answer, colour="pink")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "make the sky pink", png(*size))
    told = [
        one for one in receipt_of(only(events, PictureReady).picture).reductions if one.kind is not ReductionKind.SHOWN
    ]
    assert [one.kind for one in told] == kinds
    if ReductionKind.SHAPE in kinds:
        assert ((told[0].full.width, told[0].full.height), (told[0].used.width, told[0].used.height)) == (size, answer)


async def test_transparency_that_is_lost_is_told(settings: Settings) -> None:
    logo = Image.new("RGBA", (1024, 1024), (0, 0, 0, 0))
    logo.paste((200, 30, 30, 255), (200, 200, 800, 800))
    file = io.BytesIO()
    logo.save(file, "PNG")
    gold = generate("make it gold", handles=["#1"], action="edit_image")
    scene = Scene(settings, text=[calls(gold), calls(gold)], pictures=[picture(1024, 1024, "gold")] * 2)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "make it gold", file.getvalue())
        back = await studio.keep_transparency(conversation.id, only(events, PictureReady).picture.handle)
        stored = await studio.picture(conversation.id, back.handle)
        with pytest.raises(RequestRefused) as refused:
            await studio.keep_transparency(conversation.id, back.handle)
        opaque = await run(studio, (await studio.new_conversation()).id, "make it gold", png(1024, 1024))
    kinds = [[one.kind for one in receipt_of(only(one, PictureReady).picture).reductions] for one in (events, opaque)]
    assert kinds == [[ReductionKind.TRANSPARENCY], []]
    assert refused.value.code is ErrorCode.NO_TRANSPARENCY_LOST
    with Image.open(io.BytesIO(stored.data)) as shown:
        assert (shown.mode, shown.size) == ("RGBA", (1024, 1024))
        assert shown.getchannel("A").getpixel((10, 10)) == 0
        assert shown.getpixel((500, 500)) == (*ImageColor.getrgb("gold"), 255)
    assert (receipt_of(back).price_usd, receipt_of(back).reductions, back.edit) == (0, (), None)
