"""Every operation, seen in the pixels it leaves, and the letters that are written into a picture."""

from __future__ import annotations

import cv2
import numpy as np
from PIL import Image, ImageChops, ImageFilter, ImageStat

from tests.adapters.language import Adjustment, Flip
from tests.adapters.pixels import Raster, image_of, pixels_of
from tests.adapters.sketch import (
    MAX_SIDE_PIXELS,
    AddText,
    Effect,
    EffectKind,
    Operation,
    Position,
    ResizeBy,
    ResizeTo,
    drawable,
    find_font,
    fit,
    wrap,
)
from tests.adapters.sketch import apply as applied
from tests.support.cases import each_case


def _photo(size: tuple[int, int] = (120, 80), mode: str = "RGB") -> Image.Image:
    """A picture with light, colour and edges, different in every corner."""
    across = Image.linear_gradient("L").rotate(90).resize(size)
    down = Image.linear_gradient("L").resize(size)
    photo = Image.merge("RGB", (across, down, ImageChops.multiply(across, down)))
    photo.paste((230, 40, 60), (10, 10, 40, 30))
    if mode == "RGBA":
        photo.putalpha(down)
    return photo.convert(mode)


def apply(image: Image.Image, operations: tuple[Operation, ...]) -> Image.Image:
    return image_of(applied(Raster(pixels_of(image)), operations))


def _means(image: Image.Image) -> list[float]:
    return ImageStat.Stat(image.convert("RGB")).mean


def _edges(image: Image.Image) -> float:
    return ImageStat.Stat(image.convert("L").filter(ImageFilter.FIND_EDGES)).mean[0]


def _cropped(ratio: str) -> Adjustment:
    return Adjustment.model_validate({"crop": ratio})


def test_each_effect_shows() -> None:
    red, green, blue = _means(apply(_photo(), (Effect(EffectKind.SEPIA),)))
    assert red > green > blue
    once = apply(_photo(), (Effect(EffectKind.INVERT),))
    assert once.getpixel((20, 20)) == (25, 215, 195)
    assert apply(once, (Effect(EffectKind.INVERT),)).tobytes() == _photo().tobytes()
    blurred, sharp = (apply(_photo(), (one,)) for one in (Effect(EffectKind.BLUR), Adjustment(sharpness=60)))
    assert _edges(blurred) < _edges(_photo()) < _edges(sharp)


def test_a_blur_asked_for_is_seen_where_a_little_less_sharpness_is_not() -> None:
    large = _photo((1200, 800))
    blurred, softer = (apply(large, (one,)) for one in (Effect(EffectKind.BLUR, 15), Adjustment(sharpness=-15)))
    assert _edges(large) - _edges(blurred) > 3 * (_edges(large) - _edges(softer)) > 0


def test_a_crop_keeps_the_middle_and_of_a_tiny_picture_some_pixels() -> None:
    assert apply(_photo(), (_cropped("1:1"),)).tobytes() == _photo().crop((20, 0, 100, 80)).tobytes()
    assert apply(_photo((5, 3)), (_cropped("16:9"),)).size == (5, 3)


@each_case(
    ("operation", "size"),
    [
        (ResizeTo(60, 60), (60, 60)),
        (ResizeTo(60, None), (60, 40)),
        (ResizeTo(None, 160), (240, 160)),
        (ResizeBy(0.5), (60, 40)),
        (ResizeBy(2), (240, 160)),
        (ResizeBy(0.0001), (1, 1)),
    ],
)
def test_a_resize_ends_with_the_asked_pixels(operation: Operation, size: tuple[int, int]) -> None:
    assert apply(_photo(), (operation,)).size == size


def test_a_giant_resize_stays_within_what_a_machine_can_hold() -> None:
    resized = apply(_photo((30, 20)), (ResizeTo(99_999, None),))
    assert max(resized.size) <= MAX_SIDE_PIXELS


@each_case(
    ("position", "top", "bottom"), [(Position.TOP, 0, 150), (Position.CENTER, 140, 270), (Position.BOTTOM, 250, 400)]
)
def test_added_words_stand_where_they_were_asked_for(position: Position, top: int, bottom: int) -> None:
    plain = Image.new("RGB", (600, 400), (90, 120, 150))
    box = ImageChops.difference(plain, apply(plain, (AddText("Hello", position),))).getbbox()
    assert box is not None
    assert top <= box[1]
    assert box[3] <= bottom


TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness")


@each_case(
    "operation",
    [*map(Effect, (EffectKind.SEPIA, EffectKind.INVERT)), *(Adjustment.model_validate({tone: 30}) for tone in TONES)],
)
def test_transparency_outlives_a_change_of_tone(operation: Operation) -> None:
    photo = _photo(mode="RGBA")
    assert apply(photo, (operation,)).getchannel("A").tobytes() == photo.getchannel("A").tobytes()


@each_case(
    "operation",
    [Adjustment(rotate=90), Adjustment(flip=Flip.VERTICAL), _cropped("1:1"), ResizeBy(0.5), Effect(EffectKind.BLUR)],
)
def test_transparency_goes_along_with_the_pixels(operation: Operation) -> None:
    changed = apply(_photo(mode="RGBA"), (operation,))
    assert changed.mode == "RGBA"
    assert changed.getchannel("A").getextrema() != (255, 255)


@each_case("mode", ["L", "LA", "P", "1", "CMYK", "RGBA", "I;16"])
def test_a_picture_of_any_mode_can_be_changed(mode: str) -> None:
    changed = apply(_photo(mode=mode), (Adjustment(brightness=30), Effect(EffectKind.BLUR), Adjustment(rotate=90)))
    assert changed.mode == ("RGBA" if "A" in mode else "RGB")
    assert changed.size == (80, 120)


def test_operations_are_applied_in_their_order_and_leave_the_original() -> None:
    photo = _photo()
    assert apply(photo, (_cropped("1:1"), ResizeBy(0.5))).size == (40, 40)
    assert photo.tobytes() == _photo().tobytes()


EVERY = (
    Adjustment(brightness=20, saturation=10, warmth=15),
    Adjustment(rotate=90),
    Adjustment(rotate=7),
    _cropped("1:1"),
    ResizeBy(0.5),
    ResizeTo(50, 70),
    AddText("Hi"),
    *(Effect(kind) for kind in EffectKind),
)


@each_case("operation", EVERY)
@each_case("channels", [1, 3, 4])
def test_every_operation_keeps_sixteen_bits_and_looks_as_it_does_on_eight(operation: Operation, channels: int) -> None:
    deep = np.random.default_rng(channels).integers(0, 65536, (80, 120, channels)).astype(np.uint16)
    deep = np.asarray(cv2.GaussianBlur(deep, (0, 0), 6), np.uint16).reshape(deep.shape)
    flat = (deep // 257).astype(np.uint8)
    result, beside = applied(Raster(deep), (operation,)), applied(Raster(flat), (operation,))
    assert result.bit_depth == 16
    assert result.pixels.shape == beside.pixels.shape
    assert np.abs(result.pixels / 257.0 - beside.pixels).mean() < 2
    is_fine = len(np.unique(result.pixels)) > 600
    assert is_fine or operation == Effect(EffectKind.PIXELATE)


# Fonts, lines and letters.


def test_letters_without_a_glyph_are_left_out() -> None:
    font = find_font("Hello \U0010fffd world", 24)
    assert font is not None
    assert drawable("Hello \U0010fffd world", font) == "Hello world"
    assert apply(_photo(), (AddText("\U0010fffd"),)).tobytes() == _photo().tobytes()


def test_lines_fit_into_the_width() -> None:
    font, words = find_font("words", 20), "some words that do not fit into one line of this width"
    assert font is not None
    lines = wrap(words, font, 150)
    assert len(lines) > 2
    assert all(font.getlength(line) <= 150 for line in lines)
    assert " ".join(lines) == words


def test_chinese_lines_break_anywhere_but_before_a_closing_mark() -> None:
    font = find_font("字", 20) or find_font("a", 20)
    assert font is not None
    lines = wrap("一二三四五六七八，九十", font, font.getlength("一二三四五六七八") + 1)
    assert "".join(lines) == "一二三四五六七八，九十"
    assert not any(line.startswith("，") for line in lines)


def test_what_is_too_long_shrinks_first_and_then_ends_in_an_ellipsis() -> None:
    short, long = (fit(text, 300, 30, max_lines=1) for text in ("Hello", "Hello " * 40))
    assert short is not None
    assert long is not None
    assert short[0].size == 30
    assert long[0].size < 30
    assert long[1][0].endswith("…")
    assert long[0].getlength(long[1][0]) <= 300
