"""What a person wants inside a mask, in both languages."""

from __future__ import annotations

import pytest

from tests.adapters.language import Adjustment
from tests.adapters.sketch import (
    AddText,
    AskBack,
    Colour,
    Edit,
    Effect,
    EffectKind,
    Erase,
    Fill,
    Operation,
    PatternKind,
    Position,
    Reason,
    Recolour,
    Talk,
    Topic,
    find_colours,
    read_area_wish,
)
from tests.support.cases import each_case

RED, BLUE = (208, 34, 36), (36, 92, 204)
WHITE, BLACK = (246, 246, 244), (22, 22, 24)


def operations_of(wish: str) -> tuple[Operation, ...]:
    understood = read_area_wish(wish)
    assert isinstance(understood, Edit), understood
    assert understood.left_out == ()
    return understood.operations


@each_case(("wish", "colour"), [
        ("make it red", RED), ("Make it red.", RED), ("red", RED), ("the shirt should be red", RED),
        ("Could you paint the car red, please?", RED), ("#3: make it red", RED), ("dye the hair blue", BLUE),
        ("give it a red colour", RED), ("make it dark red", (125, 20, 22)), ("turn it into gold", (218, 170, 40)),
        ("make it #ff8800", (255, 136, 0)), ("make it white", WHITE), ("make it black", BLACK),
        ("改成蓝色", BLUE), ("能把它改成蓝色吗？", BLUE), ("把衣服换成红色", RED), ("变红", RED), ("染成红色吧", RED),
        ("红色", RED), ("请涂成白色", WHITE), ("变黑", BLACK),
    ])  # fmt: skip
def test_another_colour_is_understood(wish: str, colour: Colour) -> None:
    assert operations_of(wish) == (Recolour(colour),)


@each_case("wish", [
        "remove this", "erase it", "Erase the man on the left", "please get rid of the sign", "make it disappear",
        "take it away", "delete", "fill it with the background", "extend the scene", "擦掉", "去掉", "去掉这个人",
        "把它去掉", "请把电线杆删除", "用周围填充", "向外延伸",
    ])  # fmt: skip
def test_what_shall_be_gone_is_filled_from_around_it(wish: str) -> None:
    assert operations_of(wish) == (Erase(),)


@each_case(
    ("wish", "kind", "colours"),
    [
        ("fill it with blue stripes", PatternKind.STRIPES, (BLUE, None)),
        ("red and white stripes", PatternKind.STRIPES, (RED, WHITE)),
        ("horizontal red stripes", PatternKind.ACROSS, (RED, None)),
        ("vertical stripes", PatternKind.UPRIGHT, (None, None)),
        ("make the wall striped", PatternKind.STRIPES, (None, None)),
        ("polka dots", PatternKind.DOTS, (None, None)),
        ("black and white checks", PatternKind.CHECKS, (BLACK, WHITE)),
        ("fill it with solid red", PatternKind.PLAIN, (RED, RED)),
        ("填充波点", PatternKind.DOTS, (None, None)),
        ("填充红色波点", PatternKind.DOTS, (RED, None)),
        ("红色和白色的条纹", PatternKind.STRIPES, (RED, WHITE)),
        ("横条纹", PatternKind.ACROSS, (None, None)),
        ("黑白格子", PatternKind.CHECKS, (BLACK, WHITE)),
        ("填充蓝色", PatternKind.PLAIN, (BLUE, BLUE)),
    ],
)
def test_patterns_are_understood(wish: str, kind: PatternKind, colours: tuple[Colour | None, Colour | None]) -> None:
    (fill,) = operations_of(wish)

    assert isinstance(fill, Fill)
    assert fill.kind is kind
    assert fill.colour == (colours[0] or fill.colour)
    assert fill.ground == (colours[1] or fill.ground)
    assert (fill.colour == fill.ground) is (kind is PatternKind.PLAIN)


@each_case(
    ("wish", "operations"),
    [
        ("a bit brighter", (Adjustment(brightness=15),)),
        ("make the eyes brighter", (Adjustment(brightness=30),)),
        ("can you make it warmer?", (Adjustment(warmth=30),)),
        ("add some contrast", (Adjustment(contrast=30),)),
        ("调暗一点", (Adjustment(brightness=-15),)),
        ("black and white", (Adjustment(saturation=-100),)),
        ("remove the colour", (Adjustment(saturation=-100),)),
        ("黑白", (Adjustment(saturation=-100),)),
        ("blur it", (Effect(EffectKind.BLUR, 30),)),
        ("blur the face a lot", (Effect(EffectKind.BLUR, 60),)),
        ("模糊一点", (Effect(EffectKind.BLUR, 15),)),
        ("pixelate this", (Effect(EffectKind.PIXELATE, 30),)),
        ("打马赛克", (Effect(EffectKind.PIXELATE, 30),)),
        ("sepia", (Effect(EffectKind.SEPIA, 30),)),
        ("反色", (Effect(EffectKind.INVERT, 30),)),
        ("make it red and blur it", (Recolour(RED), Effect(EffectKind.BLUR, 30))),
        ("改成红色，然后模糊", (Recolour(RED), Effect(EffectKind.BLUR, 30))),
    ],
)
def test_light_colour_and_looks_are_understood_as_anywhere(wish: str, operations: tuple[Operation, ...]) -> None:
    assert operations_of(wish) == operations


@each_case(
    ("wish", "words", "ink"),
    [
        ("write HELLO here", "HELLO", None),
        ("Write Happy Birthday in the mask in red", "Happy Birthday", RED),
        ('write "a poem" in blue', "a poem", BLUE),
        ("add the text “Hi”", "Hi", None),
        ("写你好", "你好", None),
        ("在这里写上大减价", "大减价", None),
        ("写上“新年快乐”", "新年快乐", None),
    ],
)
def test_words_to_write_are_understood(wish: str, words: str, ink: Colour | None) -> None:
    assert operations_of(wish) == (AddText(words, Position.CENTER, ink),)


@pytest.mark.parametrize("wish", ["write here", "add some text", "写字"])
def test_writing_without_words_asks_which(wish: str) -> None:
    assert read_area_wish(wish) == AskBack(Reason.TEXT)


@each_case("wish", [
        "put a cat here", "a red hat", "add a dark hat", "turn it into a red car", "an orange", "replace it with a dog",
        "make him smile", "make it look like snow", "extend it with a beach", "remove the background", "rotate left",
        "make it half the size", "crop to square", "blur everything except this", "paint it again",
        "放一朵玫瑰", "画一顶帽子", "换成红色的帽子", "让她微笑", "向左旋转", "去掉背景",
    ])  # fmt: skip
def test_what_cannot_be_done_inside_a_mask_is_none_of_it(wish: str) -> None:
    assert read_area_wish(wish) == Talk(Topic.MASK)


@pytest.mark.parametrize(
    ("wish", "topic"),
    [
        ("hello", Topic.GREETING), ("谢谢", Topic.THANKS), ("why is it dark?", Topic.QUESTION),
        ("what can you do?", Topic.ABILITIES), ("搜索一下", Topic.SEARCH),
    ],
)  # fmt: skip
def test_small_talk_stays_small_talk(wish: str, topic: Topic) -> None:
    assert read_area_wish(wish) == Talk(topic)


def test_no_words_ask_what_to_change() -> None:
    assert read_area_wish(" ?! ") == AskBack(Reason.PICTURE_ONLY)


def test_a_thing_beside_what_can_be_done_is_left_out_and_named() -> None:
    assert read_area_wish("remove the hat and add a cap") == Edit((Erase(),), left_out=("add a cap",))


@each_case(
    ("words", "count"),
    [("deep red and pale blue", 2), ("深红", 1), ("黑白", 2), ("#abc", 0), ("bored", 0), ("#0a0b0c", 1)],
)
def test_colours_are_found_by_name_and_code(words: str, count: int) -> None:
    assert len(find_colours(words)) == count


def test_light_and_dark_of_a_colour_differ_from_it() -> None:
    light, plain, dark = (sum(find_colours(words)[0]) for words in ("light green", "green", "深绿"))

    assert light > plain > dark
