"""Words by which people go back to an earlier picture or forward again, and words that only look like it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.language import UndoWish, read_undo

READ = [
    # what is said, where it leads, what is left of it
    ("undo that", "undo", ""),
    ("Undo", "undo", ""),
    ("undo it please", "undo", ""),
    ("put it back", "undo", ""),
    ("please put it back how it was", "undo", ""),
    ("No, undo the last change", "undo", ""),
    ("revert", "undo", ""),
    ("take that back", "undo", ""),
    ("go back", "undo", ""),
    ("go back one step", "undo", ""),
    ("undo the last two changes", "undo", ""),
    ("undo twice", "undo", ""),
    ("ctrl+z", "undo", ""),
    ("use the previous one again", "undo", ""),
    ("go back to the previous version", "undo", ""),
    ("I liked it better before", "undo", ""),
    ("change it back to how it was before", "undo", ""),
    ("can you undo that?", "undo", ""),
    ("hmm, go back", "undo", ""),
    ("roll it back", "undo", ""),
    ("redo", "redo", ""),
    ("undo the undo", "redo", ""),
    ("redo that", "redo", ""),
    ("step forward", "redo", ""),
    ("redo the last change", "redo", ""),
    ("go back to #1", "back_to", ""),
    ("back to #1", "back_to", ""),
    ("use the first one again", "back_to", ""),
    ("Go back to the original photo", "back_to", ""),
    ("restore the original", "back_to", ""),
    ("let's continue with #2b", "back_to", ""),
    ("use #1 again", "back_to", ""),
    ("revert to #3", "back_to", ""),
    ("go back to the second picture", "back_to", ""),
    ("undo everything", "back_to", ""),
    ("back to the original please", "back_to", ""),
    ("the first one was better", "back_to", ""),
    ("I liked #1 better", "back_to", ""),
    ("go back to picture 2", "back_to", ""),
    ("go back to my photo", "back_to", ""),
    ("undo that and make it darker", "undo", "make it darker"),
    ("undo that, then add a hat", "undo", "add a hat"),
    ("go back to #1 and add the text “Hi”", "back_to", "add the text “Hi”"),
    ("use #1 again but with more contrast", "back_to", "with more contrast"),
    ("No. Undo that. Make it a bit brighter instead", "undo", "Make it a bit brighter instead"),
    ("go back to the first one, warmer", "back_to", "warmer"),
    ("撤销", "undo", ""),
    ("撤销一下", "undo", ""),
    ("撤回", "undo", ""),
    ("恢复原来的", "back_to", ""),
    ("回到第一张", "back_to", ""),
    ("重做", "redo", ""),
    ("撤销刚才的修改", "undo", ""),
    ("取消上一步操作", "undo", ""),
    ("上一步", "undo", ""),
    ("返回上一步", "undo", ""),
    ("改回去", "undo", ""),
    ("变回原来的样子", "back_to", ""),
    ("恢复原图", "back_to", ""),
    ("还原", "undo", ""),
    ("请撤销", "undo", ""),
    ("撤销两步", "undo", ""),
    ("回到#1", "back_to", ""),
    ("用回第一张", "back_to", ""),
    ("还是用第一张吧", "back_to", ""),
    ("回到最初的版本", "back_to", ""),
    ("还是之前的好", "undo", ""),
    ("撤销，再亮一点", "undo", "再亮一点"),
    ("回到第一张，然后加一只鸟", "back_to", "加一只鸟"),
    ("回到#1再暖一点", "back_to", "再暖一点"),
    ("撤销刚才的撤销", "redo", ""),
    ("恢复到修改前", "undo", ""),
    ("回到原图", "back_to", ""),
    ("第一张更好", "back_to", ""),
    ("换回来", "undo", ""),
    ("退回到上一张", "undo", ""),
    ("不对，撤销", "undo", ""),
    ("恢复原来的样子", "back_to", ""),
    ("还是上一张好", "undo", ""),
    ("撤销所有修改", "back_to", ""),
    ("恢复原来的，亮一点", "back_to", "亮一点"),
    ("重做一下", "redo", ""),
    ("取消刚才的修改", "undo", ""),
]

LEFT_ALONE = [
    "put it back on the shelf",
    "redo the sky",
    "back to school poster",
    "back to the future poster",
    "go back to the castle theme",
    "undo her braids",
    "restore the old photo",
    "restore this photo",
    "a step back in time",
    "redo the background in blue",
    "draw an undo button",
    "paint it again",
    "paint this once more",
    "try again",
    "use #1 as the style",
    "use #2 and #3 together",
    "put the hat back on the fox",
    "put the fox back",
    "he goes back to school",
    "make it brighter",
    "the first one",
    "the original Mona Lisa",
    "original",
    "use the first one as a reference",
    "take the dog back to the house",
    "bring it back to life",
    "cancel culture poster",
    "undo the brightness",
    "make the second one warmer",
    "show me #1",
    "go back to bed",
    "restore the building to its original state",
    "恢复老照片",
    "还原古建筑",
    "恢复原来的颜色",
    "把帽子放回桌上",
    "重做这张图",
    "重做背景",
    "画一个撤销按钮",
    "上一张的风格",
    "第一张的背景换成蓝色",
    "用第一张的风格画一只猫",
    "取消背景虚化",
    "回到未来的海报",
    "回到童年",
    "返回地球的飞船",
    "还原真实色彩",
    "用#1做参考",
    "第一张",
    "原图放大",
]


def test_going_back_or_forward_is_understood_with_what_else_is_asked_for() -> None:
    wishes = [(read_undo(text), (text, move, rest)) for text, move, rest in READ]
    assert [said for wish, said in wishes if wish is None or (wish.move, wish.rest) != said[1:]] == []


def test_what_only_sounds_like_it_is_left_alone() -> None:
    assert [text for text in LEFT_ALONE if read_undo(text) is not None] == []


def test_how_far_and_where_to_is_understood() -> None:
    wishes = [
        ("undo the last two changes", UndoWish("undo", steps=2)),
        ("undo twice", UndoWish("undo", steps=2)),
        ("go back 3 steps", UndoWish("undo", steps=3)),
        ("撤销两步", UndoWish("undo", steps=2)),
        ("回退3步", UndoWish("undo", steps=3)),
        ("go back to #12b", UndoWish("back_to", handle="#12b")),
        ("回到＃１", UndoWish("back_to", handle="#1")),
        ("go back to picture 2", UndoWish("back_to", handle="#2")),
        ("use the third one again", UndoWish("back_to", place=3)),
        ("回到第二张", UndoWish("back_to", place=2)),
        ("back to the 2nd version", UndoWish("back_to", place=2)),
        ("restore the original", UndoWish("back_to")),
        ("redo it", UndoWish("redo", is_doubtful=True)),
        ("redo", UndoWish("redo")),
    ]
    assert {text: read for text, wish in wishes if (read := read_undo(text)) != wish} == {}


def test_the_lists_are_long_enough_in_both_languages() -> None:
    for sentences in ([text for text, _, _ in READ], LEFT_ALONE):
        assert len(set(sentences)) == len(sentences) >= 50
        assert sum(any("\u4e00" <= sign <= "\u9fff" for sign in text) for text in sentences) >= 18


@given(st.text(max_size=300))
def test_whatever_is_written_gets_an_answer(text: str) -> None:
    wish = read_undo(text)
    assert wish is None or wish.steps >= 1
