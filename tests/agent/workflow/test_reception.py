"""What is asked back before any model is called, and what never is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.components import AskBack
from agent.imaging.part_wish import names_a_picture
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Role, TextPart
from agent.pictures import Picture
from agent.plans import Question
from agent.workflow.reception import after_unsure, asked_back, question_before


def picture(number: int) -> Picture:
    image = ImagePart(
        digest=f"{number:064x}",
        md5=f"{number:032x}",
        mime_type="image/png",
        size_bytes=1,
        origin=ImageOrigin.GENERATED,
    )
    return Picture(handle=f"#{number}", image=image, turn_id="before", created_at=datetime(2026, 1, 1, tzinfo=UTC))


ONE = (picture(1),)
SEVERAL = (picture(1), picture(2), picture(3))


def asked(
    text: str,
    pictures: tuple[Picture, ...] = SEVERAL,
    *,
    has_uploads: bool = False,
    editing: str | None = None,
    references: tuple[str, ...] = (),
    has_area: bool = False,
) -> Question | None:
    return question_before(
        text,
        has_uploads=has_uploads,
        editing=editing,
        references=references,
        has_area=has_area,
        pictures=pictures,
    )


def wrongly_asked(expected: Question | None, texts: Iterable[str], **more: Any) -> dict[str, Question | None]:
    """Return the texts for which something else is asked back, and what is."""
    return {text: question for text in texts if (question := asked(text, **more)) != expected}


BLANK = ["", " \n\t", "🦊", "🦊❤️", "👩‍👩‍👧 🇨🇳", "3️⃣", "ℹ️", "…?!", "。。。", "---", "\u3164"]

POINTING = [
    "change this part",
    "Change this part!",
    "change this part please",
    "Please change this part to red.",
    "can you change that part?",
    "could you please fix this area",
    "fix this area",
    "Fix this area 🙏",
    "I want to change this part",
    "I'd like you to repaint this section",
    "make it here red",
    "make it red here",
    "make here red",
    "make this part red",
    "make this area a bit brighter",
    "turn this area into a lake",
    "turn this part blue",
    "paint this area green",
    "colour this bit dark blue",
    "recolor this region",
    "remove this part",
    "erase this area and leave the rest",
    "change this part of the picture",
    "change this part of it to red",
    "replace this part with a tree",
    "get rid of this bit",
    "change the colour of this part",
    "make the colours here warmer",
    "change the colour here",
    "change it here",
    "fix it right here",
    "fix here please",
    "this part should be red",
    "this area needs to be brighter",
    "I want this part red",
    "this part looks wrong, fix it",
    "make this area look nicer",
    "fix this part, change it to blue",
    "add a bird in this spot",
    "put a lamp right here",
    "change this part to red, keep everything else",
    "Hi! Please change this part. Thanks!",
    "fix the area",
    "把这里改成红色",
    "把这里改成红色，其他不变",
    "把这里调得亮一点",
    "把这里改成红色，其他别动",
    "请把这里改成蓝色",
    "这块换一下",
    "这个部分改一下",
    "这个部分换成一只猫",
    "这部分重画",
    "帮我改一下这里",
    "改一下这个部分",
    "改这里",
    "只改这里",
    "修一下这个地方",
    "把这块去掉",
    "去掉这块",
    "把那里调亮一点",
    "这里变红",
    "让这里更亮",
    "这里再亮一点",
    "这里要红色",
    "这里太暗了，调亮一点",
    "这里不好看，改一下",
    "这里颜色太深，改浅一点",
    "这个地方改一下，换成一棵树",
    "把这个区域变成蓝色",
    "麻烦把这一块涂成绿色，谢谢",
    "能不能把这边改成黄色？",
    "把图里的这个部分换掉",
    "画面这里的颜色改成红色",
    "这里的颜色改一下",
    "在这个位置加一棵树",
]

ORDINARY = [
    "a red fox in the snow",
    "Draw a fox here",
    "paint a parting of the red sea",
    "a part of a castle wall, watercolour",
    "make it red",
    "make it brighter",
    "change the sky to red",
    "change the red part of the sky",
    "remove the hat",
    "fix the colours",
    "fix the eyes",
    "fix everything",
    "here is my photo, make it brighter",
    "Here you go, change the background",
    "make the background darker here and there",
    "make it snow here",
    "make this area look like winter",
    "change this part at the top left to red",
    "fix the area around the eyes",
    "change the part on the left",
    "remove these spots on her skin",
    "make this place look older",
    "change this part of #3",
    "make this part of #2b red",
    "change this part of the last picture",
    "fix this area in the second image",
    "change this part in the fox picture",
    "change this part in my photo",
    "this part is lovely, thank you",
    "I like this part",
    "what is in this part?",
    "what happens here?",
    "where are we here",
    "I live here",
    "make this partially transparent",
    "make a part-time job poster",
    "design a header for this section of my site",
    "make that area rug red",
    "make this bit coin logo shiny",
    "color this area map by population",
    "make these parts of the engine chrome",
    "don't change this part",
    "this part should stay",
    "this area must not be changed",
    "this part should be called intro",
    "keep this area unchanged",
    "crop it to a square",
    "change this",
    "change it",
    "fix it",
    "another one please",
    'a sign that says "change this part"',
    "change this part: the sky",
    "change this part, the one with the tree",
    "change this part to red and add a hat to the fox. Also make the sky darker.",
    "add a cat here",
    "put the cat in the basket",
    "the area of a circle, as a diagram",
    "show which part of the engine is hot",
    "a map of this area: Tuscany in spring",
    "over here, a lighthouse; over there, a ship",
    "fill in the sky",
    "thanks",
    "hello",
    "12",
    "一只红狐在雪地里",
    "这里画一只狐狸",
    "在这里画一只狐狸",
    "这里有一只猫",
    "把天空改成红色",
    "把这里的天空改成红色",
    "这块石头换成金色",
    "把这块石头换成金色",
    "这片天空改成红色",
    "让这里下雪",
    "把这里变成冬天",
    "把这个地方变成夜晚",
    "把左上角改成红色",
    "把背景换掉",
    "把它调亮一点",
    "调亮一点",
    "改一下",
    "修一下这里的栏杆",
    "把上一张的这里改成红色",
    "把上一张这个部分改一下",
    "把#3这里改成红色",
    "把第二张的这个部分换掉",
    "最后一张的这里改成红色",
    "我喜欢这里",
    "这里很漂亮",
    "这个部分很好",
    "这里是哪里？",
    "那里修一座桥",
    "这里的栏杆去掉，天空调亮",
    "把这里改成红色，再给狐狸加一顶帽子",
    "画一幅这里的地图",
    "换一张",
    "再来一张",
    "这边走",
    "这里改得很好",
    "这里处理得很好，谢谢",
    "这里变好看了",
    "这里修好了吗",
    "那里变成了什么？",
    "这处改动我喜欢",
    "这里不用改",
    "别动这里",
    "这里别改，把天空改成红色",
    "谢谢",
]

OF_A_MASK = [
    "change only the masked area",
    "fill the mask",
    "fill the mask with flowers",
    "erase what I marked",
    "remove what I've painted over",
    "only change the area I painted",
    "edit just the selected region",
    "make the highlighted part red",
    "replace the marked area with a tree",
    "Inside the mask, put a blue door",
    "keep everything outside the mask",
    "paint a bird in the masked region",
    "make the circled part brighter",
    "use my mask",
    "please respect the mask I drew",
    "regenerate the masked part",
    "change the selection to grass",
    "recolor the part that I brushed over",
    "where I painted, add a window",
    "inpaint the mask",
    "erase the selected area please",
    "turn the area I selected into water",
    "only the mask please",
    "can you fill in the masked area with sky?",
    "delete everything I highlighted",
    "blur the spot I circled",
    "Remove the object in the masked area.",
    "remove the marked object",
    "erase the selected things",
    "make the object I marked red",
    "选中的区域改成红色",
    "把选中的区域换成草地",
    "蒙版里画一只猫",
    "填充蒙版",
    "只改蒙版区域",
    "涂抹的地方去掉",
    "把我涂抹的地方换成天空",
    "只修改我圈出来的部分",
    "擦除我标记的内容",
    "把涂过的地方改成蓝色",
    "在选区内加一朵花",
    "蒙版以外不要动",
    "把刚才选中的部分删掉",
    "标记的区域变亮一点",
    "遮罩部分换成木纹",
    "框选的地方模糊一下",
    "我涂红的地方都擦掉",
    "请把高亮的区域填成白色",
    "按我画的蒙版修改",
    "圈中的东西去掉",
    "把选区填充成绿色",
    "重画我选的区域",
    "只动我画的那块区域",
]

NOT_OF_A_MASK = [
    "draw a person with a mask",
    "a man wearing a mask",
    "remove the mask from his face",
    "paint a venetian mask",
    "the marked trail leads into the woods",
    "a marked trail in the mountains",
    "put a surgical mask on her",
    "make the mask on the wall red",
    "a selection of cheeses on a board",
    "the selection of fruits looks dull",
    "what is a mask?",
    "how do I paint a mask?",
    "a masked ball in Venice",
    "the masked singer on stage",
    "draw a masked hero",
    "unmask the villain",
    "natural selection, a diagram",
    "highlight the title",
    "change the selected works poster",
    "make it brighter",
    '"fill the mask" as a headline',
    "a mask of flowers",
    "the Mask of Zorro poster",
    "mark the trail with red dots",
    "paint the masked ball",
    "draw the painted objects of a potter",
    "paint the circled letters of a puzzle",
    "make the masked man taller",
    "戴面具的女孩",
    "戴口罩的医生",
    "画一个戴面具的人",
    "给他戴上口罩",
    "敷面膜的女人",
    "面具换成金色",
    "蒙面侠",
    "把口罩去掉",
    "涂抹果酱的面包",
    "标记过的小路",
    "画一张选区示意图",
    "被选中的孩子",
    "什么是蒙版？",
    "怎么画蒙版",
    "画一张蒙版效果的海报",
    "圈养的牛",
    "选举海报",
    "她画的画",
    "把天空涂成红色",
    "把背景换掉",
    "给墙刷上红漆",
]


def test_an_emoji_space_or_punctuation_alone_is_answered_with_a_friendly_question() -> None:
    assert wrongly_asked("empty", BLANK) == {}
    assert wrongly_asked("empty", BLANK, pictures=()) == {}


def assert_enough_is_said_beside(texts: Sequence[str]) -> None:
    """Check that a picture sent or marked, or an area painted over, leaves nothing to ask."""
    assert wrongly_asked(None, texts, has_uploads=True) == {}
    assert wrongly_asked(None, texts, editing="#1") == {}
    assert wrongly_asked(None, texts, references=("#1",)) == {}
    assert wrongly_asked(None, texts, has_area=True) == {}


def test_what_was_sent_or_marked_beside_an_emoji_is_said_enough() -> None:
    assert_enough_is_said_beside(["", "🦊", "…"])


def test_a_single_word_is_no_emptiness() -> None:
    assert wrongly_asked(None, ["🦊 fox", "狐", "3", "#3", "ok"]) == {}


def test_a_part_that_is_only_pointed_at_is_asked_for() -> None:
    assert wrongly_asked("which_part", POINTING) == {}
    assert wrongly_asked("which_part", map(str.upper, POINTING), pictures=ONE) == {}


def test_an_ordinary_wish_is_never_held_up() -> None:
    for pictures in (SEVERAL, ONE, ()):
        assert wrongly_asked(None, ORDINARY, pictures=pictures) == {}


def test_the_list_of_sentences_is_long_enough_in_both_languages() -> None:
    for sentences in (POINTING, ORDINARY):
        assert len(set(sentences)) == len(sentences)
        assert sum(any("\u4e00" <= sign <= "\u9fff" for sign in text) for text in sentences) >= 25
        assert sum(text.isascii() for text in sentences) >= 35
    assert len(POINTING) + len(ORDINARY) >= 80


def test_a_mask_a_marked_picture_or_an_upload_says_which_part_or_picture() -> None:
    assert_enough_is_said_beside(POINTING)


def test_a_part_of_something_named_is_clear_where_there_is_only_one_picture() -> None:
    texts = ["change this part of the sky to red", "fix that area of her dress", "把天空的这部分改成红色"]
    assert wrongly_asked(None, texts, pictures=ONE) == {}
    assert wrongly_asked("which_part", texts) == {}


def test_a_picture_is_named_by_its_handle_or_by_which_of_them_it_is() -> None:
    english = ["#3", "the last picture", "my photo", "picture 2", "the picture of the fox"]
    named = [*english, "把#3调亮", "上一张", "第二张图", "狐狸的那张"]
    not_named = ["this picture", "the picture", "a picture", "这张图", "最后把它调亮"]
    assert [text for text in named if not names_a_picture(text)] == []
    assert [text for text in not_named if names_a_picture(text)] == []


def test_words_of_a_mask_without_one_are_asked_about() -> None:
    assert wrongly_asked("no_mask", OF_A_MASK) == {}
    assert wrongly_asked("no_mask", OF_A_MASK, pictures=()) == {}
    assert wrongly_asked("no_mask", map(str.upper, OF_A_MASK), editing="#1", references=("#2",)) == {}


def test_an_upload_is_no_mask() -> None:
    assert wrongly_asked("no_mask", OF_A_MASK, has_uploads=True) == {}


def test_with_a_mask_or_an_expansion_its_words_need_no_question() -> None:
    assert wrongly_asked(None, OF_A_MASK, has_area=True) == {}


def test_a_mask_that_is_a_thing_and_a_mark_that_is_in_the_picture_hold_nothing_up() -> None:
    assert wrongly_asked(None, NOT_OF_A_MASK) == {}
    assert wrongly_asked(None, NOT_OF_A_MASK, has_uploads=True) == {}


def test_a_long_message_is_never_held_up() -> None:
    assert asked("change this part to red, please " * 10) is None


@given(st.text(max_size=400))
def test_whatever_is_written_gets_an_answer(text: str) -> None:
    assert asked(text) in {None, "empty", "which_part"}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("empty", "[The studio asked back: what shall be painted?]"),
        ("which_part", "[The studio asked back: which part of which picture shall change?]"),
        ("unsure", "[The studio asked back: what exactly is wanted?]"),
    ],
)
def test_a_question_is_shown_to_the_person_and_told_to_the_model(question: Question, said: str) -> None:
    update = asked_back(question, "a fox")
    assert update["components"] == [AskBack(question=question, subject="a fox")]
    assert update["messages"] == [PromptMessage(role=Role.MODEL, parts=(TextPart(text=said),))]


@pytest.mark.parametrize(
    ("calls_so_far", "said_something", "target"),
    [(0, False, "planner"), (1, False, "ask"), (2, False, "ask"), (0, True, "presenter"), (1, True, "presenter")],
)
def test_an_unsure_call_goes_back_once_then_the_page_asks_and_words_of_its_own_end_the_turn(
    calls_so_far: int, said_something: bool, target: str
) -> None:
    assert after_unsure(calls_so_far, said_something) == target
