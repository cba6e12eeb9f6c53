"""Adjustments: what they may be, how they are told, and what they do to the pixels."""

from __future__ import annotations

import functools
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageDraw, ImageFilter, PngImagePlugin
from pydantic import ValidationError

from agent import ErrorCode, RequestRefused
from tests.adapters.language import Adjustment, AdjustmentChange, ChangeKind, CropBox, CropRatio, Flip, describe
from tests.adapters.pixels import (
    Adjusted,
    Raster,
    apply_adjustment,
    eight_bits,
    encode_png,
    open_picture,
    preview_adjustment,
)
from tests.support.cases import each_case
from tests.support.pixels import encoded
from tests.support.tables import table


@each_case("wrong", table("adjustments")["without_meaning"])
def test_what_has_no_meaning_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Adjustment.model_validate(wrong)


def test_a_ratio_may_be_written_as_people_write_it_and_crops_without_end_are_refused() -> None:
    for written in ("16:9", " 16 : 9 ", "16x9", "16×9", "16：9"):
        crop = Adjustment.model_validate({"crop": written}).crop
        assert isinstance(crop, CropRatio)
        assert (crop, crop.text) == (CropRatio(width=16, height=9), "16:9")
    adjustment, narrower = Adjustment(), Adjustment(crop=CropBox(right=0.9))
    for _ in range(16):
        adjustment = adjustment.combine(narrower)
    with pytest.raises(ValueError, match="at most 16 crops"):
        adjustment.combine(narrower)


def test_every_part_is_told_in_a_fixed_order_and_of_several_crops_the_last() -> None:
    frame: dict[str, object] = {"crop": "16:9", "flip": "horizontal", "rotate": -90}
    tones = {"sharpness": -5, "warmth": 15, "saturation": -40, "contrast": 60, "brightness": -30}
    assert describe(Adjustment.model_validate({**frame, **tones})) == (
        AdjustmentChange(kind=ChangeKind.DARKER, amount=30),
        AdjustmentChange(kind=ChangeKind.MORE_CONTRAST, amount=60),
        AdjustmentChange(kind=ChangeKind.LESS_SATURATION, amount=40),
        AdjustmentChange(kind=ChangeKind.WARMER, amount=15),
        AdjustmentChange(kind=ChangeKind.SOFTER, amount=5),
        AdjustmentChange(kind=ChangeKind.TURNED_LEFT, amount=90),
        AdjustmentChange(kind=ChangeKind.FLIPPED_HORIZONTALLY),
        AdjustmentChange(kind=ChangeKind.CROPPED_TO_RATIO, ratio="16:9"),
    )
    assert describe(Adjustment()) == ()
    assert describe(Adjustment(saturation=-100)) == (AdjustmentChange(kind=ChangeKind.BLACK_AND_WHITE),)
    both = Adjustment.model_validate({"crop": "1:1"}).combine(Adjustment(crop=CropBox(right=0.5)))
    assert [change.kind for change in describe(both)] == [ChangeKind.CROPPED]


WEIGHTS = np.array((0.2126, 0.7152, 0.0722))
TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness")


def decoded(made: Adjusted) -> Image.Image:
    image = Image.open(io.BytesIO(made.data))
    image.load()
    assert (image.format, made.mime_type) == ("PNG", "image/png")
    assert image.size == (made.width, made.height)
    return image


def adjusted(data: bytes, **adjustment: object) -> Image.Image:
    return decoded(apply_adjustment(data, Adjustment.model_validate(adjustment)))


def pixels(image: Image.Image) -> NDArray[np.int64]:
    return np.asarray(image).astype(np.int64)


def result(image: Image.Image, **adjustment: object) -> NDArray[np.int64]:
    return pixels(adjusted(encoded(image), **adjustment))


def scene(width: int = 96, height: int = 64) -> Image.Image:
    """Return a landscape with a sky, a hill, a sun, a red roof and fine grain."""
    image = Image.linear_gradient("L").resize((width, height))
    sky = Image.merge("RGB", (image.point(lambda v: 60 + v // 3), image.point(lambda v: 110 + v // 3), image))
    draw = ImageDraw.Draw(sky)
    draw.ellipse((width * 0.7, height * 0.1, width * 0.85, height * 0.35), fill=(255, 240, 190))
    draw.polygon(((0, height), (0, height * 0.7), (width * 0.6, height * 0.55), (width, height)), fill=(52, 92, 38))
    draw.rectangle((width * 0.2, height * 0.6, width * 0.35, height * 0.8), fill=(176, 52, 40))
    grain = np.random.default_rng(3).integers(-6, 7, (height, width, 1))
    return Image.fromarray(
        (np.asarray(sky.filter(ImageFilter.GaussianBlur(0.7))) + grain).clip(0, 255).astype(np.uint8)
    )


def noise(width: int, height: int, channels: int = 3) -> Image.Image:
    values = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return Image.fromarray(values[..., 0] if channels == 1 else values)


def luminance(values: NDArray[np.int64]) -> NDArray[np.float64]:
    shares = values / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ WEIGHTS)


SOURCES: dict[str, tuple[bytes, str]] = {
    "PNG": (encoded(scene()), "RGB"),
    "JPEG": (encoded(scene(), "JPEG", quality=85), "RGB"),
    "WebP": (encoded(scene(), "WEBP", quality=80), "RGB"),
    "WebP with alpha": (encoded(noise(20, 10, 4), "WEBP", lossless=True, exact=True), "RGBA"),
    "GIF": (encoded(scene(), "GIF"), "RGB"),
    "grey": (encoded(scene().convert("L")), "L"),
    "grey JPEG": (encoded(scene().convert("L"), "JPEG"), "L"),
    "grey with alpha": (encoded(Image.merge("LA", noise(20, 10, 4).split()[:2])), "LA"),
    "black and white": (encoded(scene().convert("1")), "L"),
    "palette": (encoded(scene().quantize(32)), "RGB"),
    "palette with a clear colour": (encoded(scene().quantize(32), transparency=3), "RGBA"),
    "RGBA": (encoded(noise(30, 20, 4)), "RGBA"),
    "16 bits": (encoded(Image.fromarray(np.arange(30 * 20, dtype=np.uint16).reshape(20, 30) * 109)), "I;16"),
    "CMYK": (encoded(scene().convert("CMYK"), "JPEG"), "RGB"),
}


@each_case("name", SOURCES)
@each_case("tone", TONES)
def test_every_kind_of_picture_can_be_adjusted_and_without_an_adjustment_no_pixel_of_it_changes(
    name: str, tone: str
) -> None:
    data, mode = SOURCES[name]
    source, before, image = Image.open(io.BytesIO(data)), adjusted(data), adjusted(data, **{tone: 40})
    assert before.mode == mode
    assert np.array_equal(pixels(before), pixels(source if mode == "I;16" else source.convert(mode)))
    becomes_colour = tone == "warmth" and mode in {"L", "LA", "I;16"}
    assert image.mode == (("RGBA" if mode == "LA" else "RGB") if becomes_colour else mode)
    if "A" in mode:
        assert np.array_equal(pixels(image.getchannel("A")), pixels(before.getchannel("A")))
    is_grey = mode in {"L", "LA", "I;16"}
    is_changed = image.mode != before.mode or not np.array_equal(pixels(image), pixels(before))
    # Grey has no saturation to change, and pure black and white nothing that could go further.
    assert is_changed or name == "black and white" or (tone == "saturation" and is_grey)


@given(st.tuples(st.integers(-100, 100), st.integers(-100, 100)).map(sorted))
def test_a_larger_brightness_is_never_darker_anywhere(pair: list[int]) -> None:
    less, more = (result(scene(), brightness=value) for value in pair)
    assert (more >= less).all()
    assert more.mean() > less.mean() or pair[0] == pair[1]


@given(st.tuples(st.integers(-100, 100), st.integers(-100, 100)).map(sorted))
def test_contrast_moves_away_from_mid_grey_or_towards_it(pair: list[int]) -> None:
    ramp = Image.linear_gradient("L")
    less, more = (abs(result(ramp, contrast=value) - 127.5) for value in pair)
    assert (more >= less - 0.5).all()
    assert list(result(ramp, contrast=pair[1])[:, 0]) == sorted(result(ramp, contrast=pair[1])[:, 0])


@given(st.integers(-100, 100))
def test_saturation_holds_luma_and_warmth_luminance(amount: int) -> None:
    before, grey = pixels(noise(24, 24)), result(noise(24, 24), saturation=amount)
    assert abs(grey @ WEIGHTS - before @ WEIGHTS).max() < 0.75
    assert abs(luminance(result(noise(24, 24), warmth=amount)) - luminance(before)).max() < 0.006


def test_warmth_goes_from_blue_to_amber_and_sharpness_raises_the_differences_between_neighbours() -> None:
    warmer = [result(scene(), warmth=warmth) for warmth in range(-90, 91, 30)]
    shifts = [(values[..., 0] - values[..., 2]).mean() for values in warmer]
    assert shifts == sorted(set(shifts))
    red, green, blue = result(Image.new("RGB", (1, 1), (128, 128, 128)), warmth=60)[0, 0]
    assert red > green > blue
    edges = [abs(np.diff(result(scene(480, 320), sharpness=value), axis=1)).mean() for value in (-60, -30, 0, 30, 60)]
    assert edges == sorted(set(edges))


@pytest.mark.parametrize("amount", [-100, 100])
def test_the_colour_of_clear_pixels_does_not_bleed_into_their_neighbours(amount: int) -> None:
    values = np.zeros((40, 40, 4), dtype=np.uint8)
    values[:, :20] = (200, 200, 200, 255)
    values[:, 20:] = (255, 0, 0, 0)
    after = result(Image.fromarray(values).resize((400, 400), Image.Resampling.NEAREST), sharpness=amount)
    assert (after[:, :200, :3] == 200).all()


def test_strips_leave_no_seam() -> None:
    from tests.adapters.pixels import toned

    source = np.asarray(noise(37, 301))
    for adjustment in (Adjustment(sharpness=70), Adjustment(sharpness=-80, warmth=20), Adjustment(saturation=30)):
        in_strips = toned(source, None, adjustment, strip_pixels=37)
        assert np.array_equal(in_strips, toned(source, None, adjustment, strip_pixels=1 << 20))


def test_a_clear_grey_of_16_bits_stays_clear() -> None:
    values = np.full((4, 6), 30000, dtype=np.uint16)
    values[0] = 500
    after = open_picture(apply_adjustment(encoded(Image.fromarray(values), transparency=500), Adjustment()).data)
    assert after.pixels[..., 3].tolist() == [[0] * 6, *[[65535] * 6] * 3]
    assert (after.pixels[1:, :, :3] == 30000).all()


@each_case("channels", [3, 4])
@each_case("tone", TONES)
def test_colour_of_16_bits_keeps_them(channels: int, tone: str) -> None:
    values = np.random.default_rng(5).integers(0, 65536, (60, 90, channels)).astype(np.uint16)
    source = encode_png(Raster(values))
    assert np.array_equal(open_picture(apply_adjustment(source, Adjustment()).data).pixels, values)
    after = open_picture(apply_adjustment(source, Adjustment.model_validate({tone: 40})).data).pixels
    beside = pixels(adjusted(encode_png(Raster(eight_bits(values))), **{tone: 40}))
    assert after.dtype == np.uint16
    assert abs(after / 257 - beside).mean() < 1
    assert channels == 3 or np.array_equal(after[..., 3], values[..., 3])


@each_case(
    ("adjustment", "method"),
    [
        ({"rotate": 90}, Image.Transpose.ROTATE_270),
        ({"rotate": -90}, Image.Transpose.ROTATE_90),
        ({"rotate": 180}, Image.Transpose.ROTATE_180),
        ({"flip": "horizontal"}, Image.Transpose.FLIP_LEFT_RIGHT),
        ({"flip": "vertical"}, Image.Transpose.FLIP_TOP_BOTTOM),
    ],
)
@each_case("name", ["PNG", "RGBA", "16 bits", "grey with alpha"])
def test_quarter_turns_and_mirrors_move_pixels_and_change_none(
    name: str, adjustment: dict[str, object], method: Image.Transpose
) -> None:
    source = Image.open(io.BytesIO(SOURCES[name][0]))
    after = adjusted(SOURCES[name][0], **adjustment)
    assert np.array_equal(pixels(after), pixels(source.transpose(method)))


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 21), st.integers(1, 21))
def test_a_crop_to_a_ratio_is_as_large_as_it_can_be_and_cuts_nothing_twice(
    width: int, height: int, across: int, down: int
) -> None:
    ratio = Adjustment(crop=CropRatio(width=across, height=down))
    cut = apply_adjustment(encoded(noise(width, height)), ratio)
    assert cut.width == width or cut.height == height
    assert abs(cut.width * down - cut.height * across) <= max(across, down) or 1 in {cut.width, cut.height}
    again = apply_adjustment(cut.data, ratio)
    assert (again.width, again.height) == (cut.width, cut.height)


@given(*(st.floats(0, 1),) * 4)
def test_a_box_keeps_every_pixel_it_touches(a: float, b: float, c: float, d: float) -> None:
    (left, right), (top, bottom) = sorted((a, b)), sorted((c, d))
    if min(right - left, bottom - top) < 1e-5:
        return
    box = CropBox(left=left, top=top, right=right, bottom=bottom)
    image = adjusted(encoded(noise(30, 20)), crop=box)
    for share, whole, kept in ((right - left, 30, image.width), (bottom - top, 20, image.height)):
        assert 1 <= kept <= whole
        assert share * whole - 0.001 <= kept < share * whole + 2


frames = st.builds(
    Adjustment,
    rotate=st.sampled_from([0, 90, 180, 270]),
    flip=st.none() | st.sampled_from(Flip),
    # Halves, thirds and the ratio of the test's own picture, so that no middle has to be rounded.
    crop=st.none()
    | st.sampled_from(
        [
            CropRatio(width=1, height=1),
            CropRatio(width=2, height=1, down=1),
            CropRatio(width=1, height=2, across=0),
            CropBox(left=0.25),
            CropBox(top=1 / 3, right=0.5),
            CropBox(bottom=2 / 3, left=1 / 3),
        ]
    ),
)


@given(frames, frames)
def test_a_frame_combined_is_one_frame_after_the_other(first: Adjustment, second: Adjustment) -> None:
    data = encoded(noise(144, 96))
    one_by_one = apply_adjustment(apply_adjustment(data, first).data, second)
    at_once = apply_adjustment(data, first.combine(second))
    assert (at_once.width, at_once.height) == (one_by_one.width, one_by_one.height)
    assert np.array_equal(pixels(decoded(at_once)), pixels(decoded(one_by_one)))


@given(st.integers(2, 80), st.integers(2, 80), st.floats(-180, 180))
def test_an_odd_turn_keeps_the_shape_and_shows_no_empty_corner(width: int, height: int, degrees: float) -> None:
    after = result(Image.new("RGB", (width, height), (200, 150, 100)), rotate=degrees)
    assert (abs(after - (200, 150, 100)) <= 1).all()
    high, wide = after.shape[:2]
    is_on_its_side = round(degrees / 90) % 2 == 1
    expected = height / width if is_on_its_side else width / height
    assert abs(wide - expected * high) <= 1 + expected


def test_a_small_turn_goes_clockwise() -> None:
    source = Image.new("L", (101, 101), "black")
    ImageDraw.Draw(source).line((50, 50, 100, 50), fill="white", width=5)
    rows, columns = np.nonzero(result(source, rotate=20) > 128)
    assert rows[columns.argmax()] > rows[columns.argmin()]


def test_a_profile_is_kept_as_long_as_it_fits_and_other_metadata_is_left_out() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for form in ("PNG", "JPEG", "WEBP"):
        assert adjusted(encoded(scene(), form, icc_profile=profile), contrast=20).info["icc_profile"] == profile
    for mode in ("L", "CMYK"):
        assert "icc_profile" not in adjusted(encoded(scene().convert(mode), "JPEG", icc_profile=profile)).info
    exif, notes = Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x0112], exif[0x010E] = 6, "at home"
    notes.add_text("Comment", "private")
    after = adjusted(encoded(scene(96, 64), exif=exif, pnginfo=notes), brightness=10)
    assert (after.size, dict(after.getexif()), "Comment" in after.info) == ((64, 96), {}, False)
    red, blue = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    first = adjusted(encoded(red, "GIF", save_all=True, append_images=[blue]))
    assert pixels(first.convert("RGB"))[0, 0].tolist() == [255, 0, 0]


@each_case(
    ("data", "code"),
    [
        (b"", ErrorCode.PICTURE_UNREADABLE),
        (b"no picture at all", ErrorCode.PICTURE_UNREADABLE),
        (encoded(noise(50, 50))[:-2000], ErrorCode.PICTURE_TRUNCATED),
        (encoded(noise(50, 50), "JPEG")[:-1000], ErrorCode.PICTURE_TRUNCATED),
        (encoded(Image.new("1", (9000, 9000))), ErrorCode.PICTURE_TOO_MANY_PIXELS),
        (encoded(Image.new("1", (16000, 16000))), ErrorCode.PICTURE_TOO_MANY_PIXELS),
    ],
)
def test_what_cannot_be_adjusted_is_refused_in_one_sentence(data: bytes, code: ErrorCode) -> None:
    for adjust in (apply_adjustment, functools.partial(preview_adjustment, edge_px=100)):
        with pytest.raises(RequestRefused) as caught:
            adjust(data, Adjustment())
        assert caught.value.code is code
        if code is ErrorCode.PICTURE_TOO_MANY_PIXELS:
            assert caught.value.info.parameters["megapixels"] in {81.0, 256.0}


def test_a_preview_looks_like_the_result_made_small_is_never_enlarged_and_needs_an_edge() -> None:
    data = encoded(scene(960, 640))
    adjustment = Adjustment(brightness=20, contrast=30, saturation=-40, warmth=50, sharpness=-60, rotate=5)
    small, whole = decoded(preview_adjustment(data, adjustment, 240)), decoded(apply_adjustment(data, adjustment))
    assert max(small.size) <= 240
    assert small.width / small.height == pytest.approx(whole.width / whole.height, rel=0.03)
    full = whole.resize(small.size, Image.Resampling.LANCZOS)
    assert abs(pixels(small) - pixels(full)).mean() < 3
    assert preview_adjustment(encoded(noise(30, 20)), Adjustment(brightness=5), 500).width == 30
    with pytest.raises(ValueError, match="at least 1 pixel"):
        preview_adjustment(encoded(noise(30, 20)), Adjustment(), 0)
