"""What was added and removed is marked word by word, and nothing of either text is lost."""

from __future__ import annotations

import re

from tests.adapters.webui import DiffKind, diff_html, word_diff
from tests.support.cases import each_case

CASES = [
    ("a red fox", "a red fox sits in fresh snow, watercolour"),
    ("a red fox in the snow", "A red fox sits at the edge of a pine forest in fresh snow"),
    ("画一只猫", "画一只橘猫，坐在窗边的房间里，黄昏时分"),
    ("Poster: “Slow mornings”", "A poster with the words “Slow mornings”, one cup, soft light"),
    ("keep #7b, drop the sky", "keep #7b exactly; the sky is gone"),
    ("", "everything is new"),
    ("it is all gone", ""),
    ("the same", "the same"),
    ("two\n\nparagraphs", "two\n\nlonger paragraphs"),
]


def joined(pieces: list[tuple[DiffKind, str]], without: DiffKind) -> str:
    return "".join(text for kind, text in pieces if kind != without)


@each_case(("before", "after"), CASES)
def test_both_texts_can_be_read_from_the_pieces_and_the_page_shows_what_is_sent(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert joined(pieces, "removed") == after
    assert re.sub(r"\s", "", joined(pieces, "added")) == re.sub(r"\s", "", before)
    kept = re.sub(r"<del>.*?</del>", "", diff_html(pieces), flags=re.DOTALL)
    assert re.sub(r"<[^>]*>", "", kept).split() == after.split()


@each_case(
    ("before", "after", "shown"),
    [
        ("Draw a red fox", "Draw a red fox, at golden hour", "Draw a red fox<ins>, at golden hour</ins>"),
        ("画一只猫", "画一只橘猫，窗边", "画一只<ins>橘</ins>猫<ins>，窗边</ins>"),
        # A phrase is not torn apart by a small word.
        ("a cat on a mat", "a dog under a table", "a <del>cat on a mat</del> <ins>dog under a table</ins>"),
    ],
)
def test_what_was_added_and_said_otherwise_is_marked(before: str, after: str, shown: str) -> None:
    assert diff_html(word_diff(before, after)) == shown


def test_nothing_in_a_wish_becomes_markup() -> None:
    assert "<b" not in diff_html(word_diff("<b>", '<b onload="x">')).replace("&lt;b", "")


def test_long_texts_that_repeat_themselves_are_shown_as_wholly_new() -> None:
    before, after = "a b " * 600, "a b " * 900
    assert {kind for kind, _ in word_diff(before, after)} == {"removed", "added"}
    assert joined(word_diff(before, after), "removed") == after.strip()
