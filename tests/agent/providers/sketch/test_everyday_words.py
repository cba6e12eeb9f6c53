"""Everyday wishes without a key, and words that only look like one."""

from __future__ import annotations

from tests.adapters.language import Adjustment, Flip
from tests.adapters.sketch import FIGURES, PLACES, AddText, Draw, Edit, ResizeBy, ResizeTo, find, understand
from tests.bench import adjustments as bench
from tests.support.cases import each_case


@each_case(
    ("text", "operation"),
    [
        ("enlarge to 2048 wide", ResizeTo(2048, None)),
        ("enlarge it to 2048 px wide", ResizeTo(2048, None)),
        ("放大到2048宽", ResizeTo(2048, None)),
        ("放大到宽2048", ResizeTo(2048, None)),
        ("scale it to 1080 high", ResizeTo(None, 1080)),
        ("make it twice as large", ResizeBy(2)),
        ("make it half as large", ResizeBy(0.5)),
        ("放大一倍", ResizeBy(2)),
        ("make it square for Instagram", Adjustment.model_validate({"crop": "1:1"})),
        ("底部加一行字:限时优惠", AddText("限时优惠")),
        ("底部加一行字：限时优惠", AddText("限时优惠")),
        ("turn 7 degrees", Adjustment(rotate=7)),
        ("flip it upside down", Adjustment(flip=Flip.VERTICAL)),
        ("mirror this picture left to right", Adjustment(flip=Flip.HORIZONTAL)),
        ("左右翻转一下", Adjustment(flip=Flip.HORIZONTAL)),
        ("a warmer look", Adjustment(warmth=30)),
        ("make a brighter version of this", Adjustment(brightness=30)),
    ],
)
def test_an_everyday_wish_is_done_as_it_is_said(text: str, operation: object) -> None:
    wish = understand(text, has_pictures=True)
    assert isinstance(wish, Edit)
    assert (wish.operations, wish.left_out) == ((operation,), ())


@each_case(
    "text",
    [
        *("turn 7", "turn it 7", "make the red car warmer", "她的笑容再温暖一点", "调一下亮度"),
        *("flip the car", "mirror the left tree", "mirror on the wall", "翻转的瓶子", "翻转课堂海报"),
        *("a brighter tomorrow, sunrise over hills", "a softer, kinder world"),
        *("cool jazz club, neon, saxophone", "bright kitchen, marble table, plants", "高对比度的街头摄影，雨夜"),
    ],
)
def test_what_is_no_wish_for_the_whole_picture_changes_none(text: str) -> None:
    assert not isinstance(understand(text, has_pictures=True), Edit)


def test_several_logos_are_several_pictures() -> None:
    wish = understand("3 logos for a bakery", has_pictures=False)
    assert isinstance(wish, Draw)
    assert wish.number_of_images == 3


@each_case(
    ("text", "figure", "place"),
    [
        ("中秋节的海报", None, "abstract"),
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


def test_nearly_all_phrases_of_the_benchmark_are_understood_and_none_exactly_wrong() -> None:
    outcomes = bench.measured()
    for way, most_wrong in (("exactly", 0), ("without a key", 0)):
        assert sum(one.is_wrong for one in outcomes[way]) <= most_wrong, way
        wishes = [one for one in outcomes[way] if not one.phrase.is_trap]
        assert sum(one.is_understood for one in wishes) >= 0.95 * len(wishes), way
