"""Words that ask for more around a picture, and words that only sound like it."""

from __future__ import annotations

import pytest

from tests.adapters.language import read_expansion
from tests.support.cases import each_case

ALL = "bottom left right top"


@each_case(
    ("text", "ratio", "sides"),
    [
        ("outpaint to 16:9", 16 / 9, ALL),
        ("please extend the picture to 21:9", 21 / 9, ALL),
        ("Expand it to 4:3.", 4 / 3, ALL),
        ("uncrop", None, ALL),
        ("zoom out a bit", None, ALL),
        ("show more around it", None, ALL),
        ("show me more of the surroundings around it", None, ALL),
        ("extend it to the left", None, "left"),
        ("expand the canvas on the right side", None, "right"),
        ("outpaint the image upwards", None, "top"),
        ("show more on the left", None, "left"),
        ("show more to the right", None, "right"),
        ("can you extend the photo on all sides?", None, ALL),
        ("扩展画面到16:9", 16 / 9, ALL),
        ("把画面扩展成4:3", 4 / 3, ALL),
        ("扩图", None, ALL),
        ("把画面往左边扩一点", None, "left"),
        ("向右扩展", None, "right"),
        ("往四周扩展一些", None, ALL),
        ("左右扩展画面", None, "left right"),
        ("请把照片外扩到16：9", 16 / 9, ALL),
    ],
)
def test_more_around_a_picture_is_understood(text: str, ratio: float | None, sides: str) -> None:
    wish = read_expansion(text)
    assert wish is not None
    assert (wish.ratio, wish.rest) == (None if ratio is None else pytest.approx(ratio), "")
    assert " ".join(sorted(wish.sides)) == sides


@pytest.mark.parametrize(
    ("text", "rest"),
    [("outpaint to 16:9 with more forest", "more forest"), ("扩展画面到16:9，右边加一棵树", "右边加一棵树")],
)
def test_what_shall_be_there_is_told_apart(text: str, rest: str) -> None:
    wish = read_expansion(text)
    assert wish is not None
    assert wish.rest == rest


@each_case(
    "text",
    [
        *("crop to 16:9", "make it 16:9", "extend the fence", "expand the list of names", "zoom in"),
        *("extend the deadline to 5:30", "a cat that extends its paws", "draw more cats", "show more detail"),
        *("enlarge to 2048 wide", "add more contrast", "make it wider", "expanding universe, oil painting"),
        *("outpainting explained", "show the left hand", "裁剪到16:9", "放大一倍", "扩音器的海报", "延伸的铁轨"),
        *("扩散的墨水", "画一条延伸到远方的路", "更多对比度", ""),
    ],
)
def test_other_requests_are_left_alone(text: str) -> None:
    assert read_expansion(text) is None


def test_a_ratio_grows_two_sides_and_one_that_is_there_grows_none() -> None:
    wish = read_expansion("outpaint to 16:9")
    assert wish is not None
    assert wish.shares(480, 480) == pytest.approx((7 / 18, 0, 7 / 18, 0))
    assert wish.shares(1000, 300) == pytest.approx((0, 0.4375, 0, 0.4375))
    assert wish.shares(1600, 900) == (0, 0, 0, 0)
