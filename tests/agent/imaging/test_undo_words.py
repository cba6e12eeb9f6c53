"""Words by which people go back to an earlier picture or forward again, and words that only look like it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.language import UndoWish, read_undo
from tests.support.tables import table

READ = table("undo")["read"]
LEFT_ALONE = table("undo")["left_alone"]


def test_going_back_or_forward_is_understood_with_what_else_is_asked_for_and_nothing_that_only_sounds_like_it() -> None:
    wishes = [(read_undo(text), (text, move, rest)) for text, move, rest in READ]
    assert [said for wish, said in wishes if wish is None or (wish.move, wish.rest) != said[1:]] == []
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
