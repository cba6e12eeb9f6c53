"""The composed sketch: its size, its sameness, its difference, its caption and its mark."""

from __future__ import annotations

import pytest
from PIL import Image, ImageChops, ImageStat

from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.sketch import FIGURES, MOODS, PLACES, compose, find, find_font, paint
from tests.support.cases import each_case

_SMALL = (320, 200)
_MODEL = load_catalogue().model(ModelRole.IMAGE_FLASH, "sketch")


def _band(image: Image.Image) -> Image.Image:
    """The strip of paper below the painting."""
    return image.crop((0, round(image.height * 0.885), image.width, image.height))


@each_case("ratio", _MODEL.aspect_ratios)
def test_a_sketch_has_exactly_the_catalogues_pixels(ratio: str) -> None:
    size = _MODEL.pixels(ratio, "1K")
    assert size is not None
    assert paint("a cat by the sea", "a cat by the sea", "", size).size == size


@each_case("figure", [name for name, _ in FIGURES])
def test_every_figure_shows_in_its_picture(figure: str) -> None:
    words = {"person": "girl", "fruit": "apple", "balloon": "balloon", "heart": "heart", "star": "a star"}
    wish = words.get(figure, figure)
    plan = compose(wish, "")
    assert plan.figure == figure
    assert ImageStat.Stat(paint(wish, wish, "", _SMALL).convert("L")).stddev[0] > 5


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


def _light(wish: str) -> float:
    return ImageStat.Stat(paint(wish, "", "", _SMALL).convert("L")).mean[0]


def test_night_is_darker_than_snow_and_a_colour_word_colours_the_figure() -> None:
    assert _light("mountains at night") < _light("mountains in the snow") - 30
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
    band = _band(paint("a lighthouse", "", "", (640, 400))).convert("L")
    right = band.crop((round(band.width * 0.85), 0, band.width, band.height))
    left = band.crop((round(band.width * 0.1), 0, round(band.width * 0.6), band.height))
    # Paper is pale everywhere; only the mark is dark.
    assert min(right.tobytes()) < min(left.tobytes()) - 40


@each_case("style", ["pencil", "ink wash", "line art"])
def test_drawn_styles_have_hardly_any_colour(style: str) -> None:
    coloured, drawn = (
        ImageStat.Stat(paint("mountains by the sea in summer", "", chosen, _SMALL).convert("HSV")).mean[1]
        for chosen in ("", style)
    )
    assert drawn < coloured / 2


def test_pixel_art_is_made_of_squares() -> None:
    art = paint("a robot", "", "pixel art", (640, 400)).crop((100, 100, 500, 300))
    colours = art.getcolors(maxcolors=200_000)
    assert colours is not None
    assert len(colours) <= 28


@each_case("name", [name for name, _ in PLACES] + [name for name, _ in MOODS])
def test_every_place_and_mood_has_a_picture_of_its_own(name: str) -> None:
    assert paint(name, "", "", _SMALL).tobytes() != paint("entropy", "", "", _SMALL).tobytes()


def test_each_take_of_the_same_wish_is_another_picture() -> None:
    size = (320, 180)
    first, again, second = (paint("a lighthouse", "a lighthouse", "", size, take) for take in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != second.tobytes()


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
