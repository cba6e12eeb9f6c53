"""The sketch model's pictures: what it paints, what each operation leaves, and what it does inside a mask."""

from __future__ import annotations

import colorsys
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageStat

from tests.adapters.language import Adjustment, CropRatio, Flip, Resize
from tests.adapters.pixels import MAX_SIDE_PIXELS, Raster, image_of, pixels_of
from tests.adapters.sketch import (
    FIGURES,
    MOODS,
    PLACES,
    AddText,
    Edit,
    Erase,
    Fill,
    Operation,
    PatternKind,
    Position,
    Recolour,
    compose,
    drawable,
    find,
    find_font,
    fit,
    names,
    paint,
    read_area_intent,
    wrap,
)
from tests.adapters.sketch import apply as applied
from tests.support.cases import each_case

_SMALL = (320, 200)


def sized(**size: Any) -> Adjustment:
    return Adjustment(resize=Resize(**size))


def test_every_figure_place_and_mood_shows_in_its_picture() -> None:
    words = {"person": "girl", "fruit": "apple", "star": "a star"}
    for figure in names(FIGURES):
        wish = words.get(figure, figure)
        assert compose(wish, "").figure == figure
        assert ImageStat.Stat(paint(wish, wish, "", _SMALL).convert("L")).stddev[0] > 5, figure
    others = [paint(name, "", "", _SMALL).tobytes() for name in (*names(PLACES), *names(MOODS))]
    assert paint("entropy", "", "", _SMALL).tobytes() not in others


@each_case(
    ("wish", "place", "figure", "mood"),
    [
        ("a red fox in the snow", "field", "fox", "snow"),
        ("雪中的红狐", "field", "fox", "snow"),
        ("the city skyline at night", "city", None, "night"),
        ("城市夜景", "city", None, "night"),
        ("夕阳下的大海", "sea", None, "sunset"),
        ("mountains in autumn", "mountains", None, "autumn"),
        ("秋天的森林", "forest", None, "autumn"),
        ("a cup of coffee", "room", "cup", None),
        ("a goldfish", "underwater", "fish", None),
        ("a portrait of an old man", "plain", "person", None),
        ("a rocket", "space", "rocket", None),
        ("entropy", "abstract", None, None),
        ("bauhaus poster", "abstract", None, None),
    ],
)
def test_the_words_choose_place_figure_and_mood(wish: str, place: str, figure: str | None, mood: str | None) -> None:
    plan = compose(wish, "")
    assert (plan.place, plan.figure) == (place, figure)
    assert (mood in plan.palette.moods) if mood else not plan.palette.moods


def test_night_is_darker_than_snow_and_a_colour_word_colours_the_figure() -> None:
    night, snow = (paint(f"mountains {when}", "", "", _SMALL).convert("L") for when in ("at night", "in the snow"))
    assert ImageStat.Stat(night).mean[0] < ImageStat.Stat(snow).mean[0] - 30
    assert compose("a red car", "").palette.subject != compose("a blue car", "").palette.subject
    assert compose("a car", "").palette.subject is None


LONG = "a very long description of everything that could possibly be seen " * 4


@each_case(
    ("wish", "caption", "right_end"),
    [("a lighthouse", "A lighthouse at sunset", 0.9), ("灯塔", "夕阳下的灯塔", 0.9), ("a lighthouse", LONG, 0.92)],
)
def test_the_subject_stands_below_the_picture_as_a_caption_and_ends_before_the_mark(
    wish: str, caption: str, right_end: float
) -> None:
    if find_font(caption, 20) is None:
        pytest.skip("no font of this machine has Chinese letters")
    bare, captioned = (paint(wish, words, "", (640, 400)) for words in ("", caption))
    box = ImageChops.difference(bare, captioned).getbbox()
    assert box is not None
    assert box[1] > 400 * 0.85
    assert box[2] < 640 * right_end


def test_a_caption_that_no_font_can_draw_is_left_out_and_quoted_words_are_lettered_into_the_painting() -> None:
    bare, undrawable = (paint("a lighthouse", words, "", (640, 400)) for words in ("", "\U0010fffd\U0010fffc"))
    assert undrawable.tobytes() == bare.tobytes()
    quoted, plain = (paint(f"a poster that says {word}", "", "", (640, 400)) for word in ('"OPEN"', "OPEN"))
    assert quoted.tobytes() != plain.tobytes()


def test_every_sketch_carries_its_mark() -> None:
    picture = paint("a lighthouse", "", "", (640, 400)).convert("L")
    band = picture.crop((0, round(picture.height * 0.885), *picture.size))
    right = band.crop((round(band.width * 0.85), 0, band.width, band.height))
    left = band.crop((round(band.width * 0.1), 0, round(band.width * 0.6), band.height))
    # Paper is pale everywhere; only the mark is dark.
    assert min(right.tobytes()) < min(left.tobytes()) - 40


@each_case(
    ("text", "figure", "place"),
    [
        ("中秋节的海报", None, "abstract"),
        ("一只橘猫", "cat", None),
        ("一个橘子", "fruit", None),
        ("一只猫头鹰", "bird", None),
        ("一只海豹", "fish", "sea"),
        ("一盘马卡龙", None, None),
        ("一张上海的海报", None, "city"),
        ("热狗", None, None),
        ("河南", None, None),
        ("一匹马在海边", "horse", "sea"),
        ("熊猫", "bear", None),
    ],
)
def test_a_character_inside_of_another_word_draws_nothing(text: str, figure: str | None, place: str | None) -> None:
    assert (find(FIGURES, text), find(PLACES, text)) == (figure, place)


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


def _edges(image: Image.Image) -> float:
    return ImageStat.Stat(image.convert("L").filter(ImageFilter.FIND_EDGES)).mean[0]


def test_each_effect_shows() -> None:
    red, green, blue = ImageStat.Stat(apply(_photo(), (Adjustment(sepia=True),))).mean
    assert red > green > blue
    once = apply(_photo(), (Adjustment(invert=True),))
    assert once.getpixel((20, 20)) == (25, 215, 195)
    assert apply(once, (Adjustment(invert=True),)).tobytes() == _photo().tobytes()
    blurred, sharp = (apply(_photo(), (one,)) for one in (Adjustment(blur=30), Adjustment(sharpness=60)))
    assert _edges(blurred) < _edges(_photo()) < _edges(sharp)


@each_case(
    ("operation", "size"),
    [
        (sized(width=60, height=60), (60, 60)),
        (sized(width=60), (60, 40)),
        (sized(height=160), (240, 160)),
        (sized(factor=0.5), (60, 40)),
        (sized(factor=2), (240, 160)),
        (sized(factor=0.0001), (1, 1)),
    ],
)
def test_a_resize_ends_with_the_asked_pixels(operation: Operation, size: tuple[int, int]) -> None:
    assert apply(_photo(), (operation,)).size == size


def test_a_giant_resize_stays_within_what_a_machine_can_hold() -> None:
    assert max(apply(_photo((30, 20)), (sized(width=99_999),)).size) <= MAX_SIDE_PIXELS


@each_case(
    ("position", "top", "bottom"), [(Position.TOP, 0, 150), (Position.CENTER, 140, 270), (Position.BOTTOM, 250, 400)]
)
def test_added_words_stand_where_they_were_asked_for(position: Position, top: int, bottom: int) -> None:
    plain = Image.new("RGB", (600, 400), (90, 120, 150))
    box = ImageChops.difference(plain, apply(plain, (AddText("Hello", position),))).getbbox()
    assert box is not None
    assert top <= box[1]
    assert box[3] <= bottom


def test_transparency_outlives_a_change_of_tone_and_goes_along_with_the_pixels() -> None:
    photo = _photo(mode="RGBA")
    tones = (Adjustment(sepia=True), Adjustment(invert=True), Adjustment(brightness=30, warmth=30, sharpness=30))
    for tone in tones:
        assert apply(photo, (tone,)).getchannel("A").tobytes() == photo.getchannel("A").tobytes()
    for frame in (Adjustment(rotate=90), Adjustment(flip=Flip.VERTICAL), sized(factor=0.5), Adjustment(blur=30)):
        changed = apply(photo, (frame,))
        assert (changed.mode, changed.getchannel("A").getextrema() == (255, 255)) == ("RGBA", False)


EFFECTS = tuple(
    Adjustment.model_validate(one) for one in ({"sepia": True}, {"invert": True}, {"blur": 30}, {"pixelate": 30})
)
EVERY = (
    Adjustment(brightness=20, saturation=10, warmth=15),
    Adjustment(rotate=90),
    Adjustment(rotate=7),
    Adjustment(crop=CropRatio(width=1, height=1)),
    sized(factor=0.5),
    sized(width=50, height=70),
    AddText("Hi"),
    *EFFECTS,
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
    assert is_fine or operation == Adjustment(pixelate=30)


# Fonts, lines and letters.


def test_letters_without_a_glyph_are_left_out() -> None:
    font = find_font("Hello \U0010fffd world", 24)
    assert font is not None
    assert drawable("Hello \U0010fffd world", font) == "Hello world"
    assert apply(_photo(), (AddText("\U0010fffd"),)).tobytes() == _photo().tobytes()


def test_lines_fit_into_the_width_and_chinese_ones_break_anywhere_but_before_a_closing_mark() -> None:
    words = "some words that do not fit into one line of this width"
    font, chinese = find_font("words", 20), find_font("字", 20) or find_font("a", 20)
    assert font is not None
    assert chinese is not None
    lines = wrap(words, font, 150)
    assert (len(lines) > 2, " ".join(lines)) == (True, words)
    assert all(font.getlength(line) <= 150 for line in lines)
    lines = wrap("一二三四五六七八，九十", chinese, chinese.getlength("一二三四五六七八") + 1)
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


SUIT, ROCKET = (60, 300, 250, 470), (300, 120, 350, 330)
INSIDE: tuple[Operation, ...] = (
    Recolour((36, 92, 204)),
    Erase(),
    Fill(PatternKind.CHECKS, (0, 0, 0), (255, 255, 255)),
    Adjustment(blur=30),
    Adjustment(pixelate=30),
    Adjustment(sepia=True),
    Adjustment(invert=True),
    Adjustment(brightness=40, contrast=20, saturation=-50, warmth=30, sharpness=40),
    AddText("HELLO", ink=(250, 0, 0)),
)


@cache
def photo(name: str) -> Image.Image:
    with Image.open(Path(__file__).parents[2] / "data" / "photos" / f"{name}.webp") as opened:
        return opened.convert("RGB")


def covering(image: Image.Image, box: tuple[int, int, int, int], *, is_round: bool = True) -> Image.Image:
    mask = Image.new("L", image.size, 0)
    draw = ImageDraw.Draw(mask)
    (draw.ellipse if is_round else draw.rectangle)(box, fill=255)
    return mask


def pixels_in(image: Image.Image, mask: Image.Image) -> NDArray[np.float64]:
    return np.asarray(image.convert("RGB"))[np.asarray(mask) > 0].astype(np.float64)


def light_of(image: Image.Image, mask: Image.Image) -> NDArray[np.float64]:
    return np.asarray(image.convert("L"))[np.asarray(mask) > 0].astype(np.float64)


def asked(wish: str, image: Image.Image, mask: Image.Image) -> Image.Image:
    understood = read_area_intent(wish)
    assert isinstance(understood, Edit)
    return changed(image, mask, understood.operations)


def changed(image: Image.Image, mask: Image.Image, operations: tuple[Operation, ...]) -> Image.Image:
    return image_of(applied(Raster(pixels_of(image)), operations, np.asarray(mask) > 0))


@each_case(("wish", "hue"), [("make it red", 0), ("make it blue", 220), ("改成绿色", 134), ("make it purple", 274)])
@each_case(("name", "box"), [("astronaut", SUIT), ("chelsea", (120, 60, 330, 260)), ("gravel", SUIT)])
def test_another_colour_has_the_hue_asked_for_and_the_texture_there_was(
    wish: str, hue: float, name: str, box: tuple[int, int, int, int]
) -> None:
    image = photo(name)
    mask = covering(image, box)
    result = asked(wish, image, mask)
    colour = np.median(pixels_in(result, mask), axis=0)
    found = 360 * colorsys.rgb_to_hsv(*(float(value) / 255 for value in colour))[0]
    assert abs((found - hue + 180) % 360 - 180) < 12
    assert np.ptp(colour) > 70
    assert np.corrcoef(light_of(image, mask), light_of(result, mask))[0, 1] > 0.9


def test_nothing_beside_the_mask_shines_into_a_blur() -> None:
    image = Image.new("RGB", (90, 60), (20, 60, 200))
    image.paste((250, 20, 20), (45, 0, 90, 60))
    mask = covering(image, (0, 0, 44, 59), is_round=False)
    assert (pixels_in(asked("blur a lot", image, mask), mask) == (20, 60, 200)).all()


def test_an_erased_thing_is_gone_and_the_sky_goes_on() -> None:
    image = photo("rocket")
    mask = covering(image, ROCKET, is_round=False)
    result = asked("erase the rocket", image, mask)
    beside = pixels_in(image, covering(image, (240, 120, 290, 300), is_round=False))
    assert light_of(image, mask).max() > 200
    upper = covering(image, (300, 120, 350, 290), is_round=False)
    assert light_of(result, upper).max() < beside.max() + 30
    assert np.abs(pixels_in(result, upper).mean(axis=0) - beside.mean(axis=0)).max() < 15


@each_case(
    ("wish", "share"),
    [("fill it with blue stripes", 0.5), ("填充蓝色波点", 0.28), ("blue checks", 0.5), ("填充蓝色", 1.0)],
)
def test_a_pattern_takes_its_share_of_the_area(wish: str, share: float) -> None:
    counter = covering(photo("coffee"), (50, 50, 449, 349), is_round=False)
    pixels = pixels_in(asked(wish, photo("coffee"), counter), counter)
    assert abs((pixels[:, 2] - pixels[:, 0] > 84).mean() - share) < 0.06


def test_letters_stand_within_the_mask_in_their_colour() -> None:
    image = Image.new("RGB", (400, 300), (120, 130, 140))
    mask = covering(image, (100, 100, 300, 200), is_round=False)
    result = np.asarray(asked("write HELLO here in yellow", image, mask)).astype(int)
    rows, columns = np.nonzero((result == (244, 208, 44)).all(axis=2))
    assert rows.size > 400
    assert columns.min() > 101
    assert columns.max() < 299
    assert np.ptp(columns) > 120
    assert abs((rows.min() + rows.max()) / 2 - 150) < 12


@each_case("mode", ["RGB", "RGBA", "L"])
@each_case("size", [(1, 1), (2, 3), (7, 5), (33, 17), (3, 200)])
def test_small_and_odd_pictures_keep_their_size(size: tuple[int, int], mode: str) -> None:
    image = photo("chelsea").resize(size).convert(mode)
    half = Image.new("L", size, 255)
    half.paste(0, (0, 0, size[0] // 2, size[1]))
    wrong = []
    for operation, mask in product(INSIDE, (Image.new("L", size, 0), half, Image.new("L", size, 255))):
        result = changed(image, mask, (operation,))
        before, after, kept = np.asarray(image.convert(result.mode)), np.asarray(result), np.asarray(mask) == 0
        if result.size != size or (after[kept] != before[kept]).any():
            wrong.append((operation, mask.getextrema()))
    assert wrong == []
