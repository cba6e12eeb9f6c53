"""What the planner understands, as a table in both languages."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.adapters.language import Adjustment
from tests.adapters.sketch import (
    AddText,
    AskBack,
    Draw,
    Edit,
    Effect,
    EffectKind,
    Operation,
    Position,
    Reason,
    ResizeBy,
    ResizeTo,
    Retake,
    RetakeKind,
    Talk,
    Topic,
    understand,
)
from tests.support.tables import table

LITTLE, NORMAL, MUCH = 15, 30, 60
K = EffectKind


def adjust(**amounts: object) -> Adjustment:
    return Adjustment.model_validate(amounts)


DRAWN = table("sketch_wishes")["drawn"]

EDITED: list[tuple[str, tuple[Operation, ...]]] = [
    ("make it brighter", (adjust(brightness=NORMAL),)),
    ("make it a bit darker", (adjust(brightness=-LITTLE),)),
    ("a bit brighter", (adjust(brightness=LITTLE),)),
    ("much warmer please", (adjust(warmth=MUCH),)),
    ("slightly cooler", (adjust(warmth=-LITTLE),)),
    ("20% brighter", (adjust(brightness=20),)),
    ("too dark", (adjust(brightness=NORMAL),)),
    ("how do I make it brighter?", (adjust(brightness=NORMAL),)),
    ("make it brighter but not too bright", (adjust(brightness=NORMAL),)),
    (
        "make it warmer and a bit brighter, then crop to square",
        (adjust(warmth=NORMAL, brightness=LITTLE, crop="1:1"),),
    ),
    ("increase the contrast", (adjust(contrast=NORMAL),)),
    ("less contrast and saturation", (adjust(contrast=-NORMAL), adjust(saturation=-NORMAL))),
    ("more vivid", (adjust(saturation=NORMAL),)),
    ("make it less saturated", (adjust(saturation=-NORMAL),)),
    ("turn it black and white", (adjust(saturation=-100),)),
    ("create a sepia version of this photo", (Effect(K.SEPIA, NORMAL),)),
    ("blur it slightly", (Effect(K.BLUR, LITTLE),)),
    ("sharpen the photo", (adjust(sharpness=NORMAL),)),
    ("invert the colours", (Effect(K.INVERT, NORMAL),)),
    ("rotate left", (adjust(rotate=-90),)),
    ("rotate it right", (adjust(rotate=90),)),
    ("rotate it 180 degrees", (adjust(rotate=180),)),
    ("rotate 45°", (adjust(rotate=45),)),
    ("flip it", (adjust(flip="horizontal"),)),
    ("flip vertically", (adjust(flip="vertical"),)),
    ("mirror it horizontally", (adjust(flip="horizontal"),)),
    ("crop to 16:9", (adjust(crop="16:9"),)),
    ("make it portrait", (adjust(crop="3:4"),)),
    ("less blur", (adjust(sharpness=NORMAL),)),
    ("cool it down", (adjust(warmth=-NORMAL),)),
    ("文字：你好", (AddText("你好", Position.BOTTOM),)),
    ("make it square", (adjust(crop="1:1"),)),
    ("resize to 800x600", (ResizeTo(800, 600),)),
    ("scale it down to 50%", (ResizeBy(0.5),)),
    ("make it half the size", (ResizeBy(0.5),)),
    ('add the text "Hello World" at the top', (AddText("Hello World", Position.TOP),)),
    ("write the words 'Grand Opening' at the bottom", (AddText("Grand Opening", Position.BOTTOM),)),
    ('add "Sale" in the center and make it warmer', (AddText("Sale", Position.CENTER), adjust(warmth=NORMAL))),
    ("add text hello", (AddText("hello", Position.BOTTOM),)),
    (
        "crop it to 4:5 and add the caption “Hi, there and then”",
        (adjust(crop="4:5"), AddText("Hi, there and then", Position.BOTTOM)),
    ),
    ("再亮一点", (adjust(brightness=LITTLE),)),
    ("太亮了", (adjust(brightness=-NORMAL),)),
    ("不要太暗，再亮一点", (adjust(brightness=LITTLE),)),
    ("把这幅画变冷一点", (adjust(warmth=-LITTLE),)),
    ("暖一点，对比度高一点", (adjust(warmth=LITTLE, contrast=LITTLE),)),
    ("降低饱和度", (adjust(saturation=-NORMAL),)),
    ("饱和度提高20%", (adjust(saturation=20),)),
    ("改成黑白", (adjust(saturation=-100),)),
    ("复古风格", (Effect(K.SEPIA, NORMAL),)),
    ("模糊一点", (Effect(K.BLUR, LITTLE),)),
    ("锐化", (adjust(sharpness=NORMAL),)),
    ("反色", (Effect(K.INVERT, NORMAL),)),
    ("向左旋转", (adjust(rotate=-90),)),
    ("顺时针旋转90度", (adjust(rotate=90),)),
    ("左右翻转", (adjust(flip="horizontal"),)),
    ("上下翻转", (adjust(flip="vertical"),)),
    ("裁剪成正方形", (adjust(crop="1:1"),)),
    ("裁成 16:9 方形画幅", (adjust(crop="16:9"),)),
    ("缩小一半", (ResizeBy(0.5),)),
    ("放大两倍", (ResizeBy(2),)),
    ("改成 800×600", (ResizeTo(800, 600),)),
    ("把刚才那张再亮一点，加上文字“你好”", (adjust(brightness=LITTLE), AddText("你好", Position.BOTTOM))),
    ("在顶部加上文字「新年快乐」", (AddText("新年快乐", Position.TOP),)),
    ("写上《春天》两个字，放在中间", (AddText("春天", Position.CENTER),)),
    ("亮度提高一些，然后裁成方形", (adjust(brightness=NORMAL, crop="1:1"),)),
]

# A sentence that is more than an adjustment is read clause by clause, and what stands there by number counts.
MIXED: list[tuple[str, tuple[Operation, ...]]] = [
    (
        "Brightness +20, contrast -10, and add the text “Hi”",
        (adjust(brightness=20), adjust(contrast=-10), AddText("Hi", Position.BOTTOM)),
    ),
    ("亮度 +20，对比度 -10，再加上文字“你好”", (adjust(brightness=20), adjust(contrast=-10), AddText("你好"))),
    ("brightness +150", (adjust(brightness=100),)),
    ("contrast −25 and sepia", (adjust(contrast=-25), Effect(K.SEPIA))),
    ("make it 40% brighter and blur it a lot", (adjust(brightness=40), Effect(K.BLUR, MUCH))),
    ("crop to 16:9, rotate right and make it half the size", (adjust(crop="16:9"), adjust(rotate=90), ResizeBy(0.5))),
]

AGAIN = table("sketch_wishes")["again"]
VARIATIONS = [
    "Make a variation of this picture: the same subject, seen another way.",
    "give me another version",
    "vary it",
    "a different version of this picture",
    "variations please",
    "给这张图做一个变体：同样的主体，换一种画面。",
    "再来一个变体",
    "换一种画面",
    "换一张",
]
NEITHER_AGAIN_NOR_VARIATION = [
    "paint a fox again in the snow",
    "paint it again with a hat",
    "another cat",
    "a sepia version of this photo",
    "a variation of a fugue by Bach",
    "再来一张猫",
    "再画一只狗",
    "换一张桌子",
    "make it brighter again",
]

ANSWERED: list[tuple[str, AskBack | Talk]] = [
    ("", AskBack(Reason.PICTURE_ONLY)),
    ("🎉🎉", AskBack(Reason.EMPTY)),
    ("?!…", AskBack(Reason.EMPTY)),
    ("hmm", AskBack(Reason.UNCLEAR)),
    ("asdf", AskBack(Reason.UNCLEAR)),
    ("make it better", AskBack(Reason.UNCLEAR)),
    ("I am sad", AskBack(Reason.UNCLEAR)),
    ("draw", AskBack(Reason.NO_SUBJECT)),
    ("draw something", AskBack(Reason.NO_SUBJECT)),
    ("画点什么", AskBack(Reason.NO_SUBJECT)),
    ("crop it", AskBack(Reason.SHAPE)),
    ("resize it", AskBack(Reason.SIZE)),
    ("add text", AskBack(Reason.TEXT)),
    ("hello", Talk(Topic.GREETING)),
    ("你好！", Talk(Topic.GREETING)),
    ("thanks!", Talk(Topic.THANKS)),
    ("谢谢", Talk(Topic.THANKS)),
    ("What can you do?", Talk(Topic.ABILITIES)),
    ("你能做什么", Talk(Topic.ABILITIES)),
    ("why is the sky blue?", Talk(Topic.QUESTION)),
    ("这张图里有什么？", Talk(Topic.QUESTION)),
    ("search the web for the Eiffel tower", Talk(Topic.SEARCH)),
    ("搜索一下最新的手机", Talk(Topic.SEARCH)),
    ("Can you make it look like a painting?", Talk(Topic.BEYOND)),
    ("remove the background", Talk(Topic.BEYOND)),
    ("make the sky brighter", Talk(Topic.BEYOND)),
    ("把它画成水彩", Talk(Topic.BEYOND)),
    ("Repaint this in the style “Watercolour”", Talk(Topic.BEYOND)),
    ("把这张图改成“水彩”风格", Talk(Topic.BEYOND)),
]


def test_a_wish_for_a_picture_is_drawn() -> None:
    wrong = []
    for wish, *expected in DRAWN:
        draw = understand(wish, has_pictures=False)
        read = isinstance(draw, Draw) and [
            draw.subject,
            draw.aspect_ratio or "",
            draw.number_of_images or 0,
            draw.style,
        ]
        if read != expected:
            wrong.append((wish, draw))
    assert wrong == []


def misunderstood(expected: Iterable[tuple[str, object]], *, has_pictures: bool = True) -> dict[str, object]:
    """Return the wishes that are not understood as expected, and how they are; of an edit its operations count."""
    understood = ((wish, understand(wish, has_pictures=has_pictures), meant) for wish, meant in expected)
    return {
        wish: found
        for wish, found, meant in understood
        if (found.operations if isinstance(found, Edit) else found) != meant
    }


def test_a_wish_for_a_change_gives_its_operations_in_order() -> None:
    assert misunderstood(EDITED) == {}


def test_what_is_neither_is_answered_in_words() -> None:
    assert misunderstood(ANSWERED) == {}


def test_a_change_without_any_picture_asks_for_one() -> None:
    wishes = ("make it brighter", "再亮一点", "crop it", "remove the background")
    assert misunderstood(((wish, AskBack(Reason.NO_PICTURE)) for wish in wishes), has_pictures=False) == {}


@pytest.mark.parametrize(
    ("wish", "handles"),
    [
        ("make #3 darker", ("#3",)),
        ("把 #2b 变暗一些", ("#2b",)),
        ("把＃4变暗一些", ("#4",)),
        ("make #3 and #1 darker, #3 first", ("#3", "#1")),
        ("make it brighter", ()),
    ],
)
def test_handles_named_in_words_are_found(wish: str, handles: tuple[str, ...]) -> None:
    understood = understand(wish, has_pictures=True)

    assert isinstance(understood, Edit)
    assert understood.handles == handles


def test_a_colour_code_is_not_a_handle() -> None:
    understood = understand("draw a circle in #ff0000 and #123456", has_pictures=False)

    assert isinstance(understood, Draw)
    assert understood.handles == ()


def test_what_needs_eyes_is_left_out_of_an_edit_and_named() -> None:
    understood = understand("make the photo brighter, blur the background", has_pictures=True)

    assert understood == Edit((adjust(brightness=NORMAL),), left_out=("blur the background",))


@pytest.mark.parametrize(("wish", "count"), [("draw nine pictures of a cat", None), ("draw 9 pictures of a cat", 4)])
def test_more_than_four_pictures_are_four(wish: str, count: int | None) -> None:
    understood = understand(wish, has_pictures=False)

    assert isinstance(understood, Draw)
    assert understood.number_of_images == count


def test_a_very_long_wish_keeps_a_short_subject() -> None:
    understood = understand("draw a cat " + "with a very long tail " * 9000, has_pictures=False)

    assert isinstance(understood, Draw)
    assert len(understood.subject) <= 160


def test_amounts_count_also_beside_other_wishes() -> None:
    assert misunderstood(MIXED) == {}


def test_a_turn_leaves_no_ratio_to_ask_for() -> None:
    turned = understand("crop to 16:9 and rotate right", has_pictures=True)

    assert turned == Edit((adjust(rotate=90, crop="9:16"),))


def retakes(wishes: Iterable[str]) -> dict[str, Retake | None]:
    """Return each wish with the retake it is understood as, or none."""
    understood = {wish: understand(wish, has_pictures=True) for wish in wishes}
    return {wish: found if isinstance(found, Retake) else None for wish, found in understood.items()}


def test_the_same_wish_once_more_is_understood() -> None:
    expected = {wish: (RetakeKind.AGAIN, ("#3",) if "3" in wish else ()) for wish in AGAIN}
    assert {wish: (found.kind, found.handles) for wish, found in retakes(AGAIN).items() if found} == expected


def test_a_wish_for_a_variation_is_understood() -> None:
    found = retakes(VARIATIONS)
    assert {wish: one for wish, one in found.items() if one is None or one.kind is not RetakeKind.VARIATION} == {}


def test_a_wish_for_more_than_once_more_is_no_retake() -> None:
    assert {wish: found for wish, found in retakes(NEITHER_AGAIN_NOR_VARIATION).items() if found} == {}


def test_a_retake_says_how_many() -> None:
    counts = {"make three variations of this picture": 3, "再画两张": 2, "another take": None}
    assert {wish: found.number_of_images for wish, found in retakes(counts).items() if found} == counts


def test_once_more_without_any_picture_asks_what_to_paint() -> None:
    wishes = ("再来一张", "paint it again", "vary it")
    assert misunderstood(((wish, AskBack(Reason.NO_SUBJECT)) for wish in wishes), has_pictures=False) == {}
