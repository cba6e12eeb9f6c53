"""Which wishes ask for words in the picture, which words, and what counts as reading them."""

from __future__ import annotations

from tests.adapters.language import asked_lettering, reads_as, wants_lettering
from tests.support.cases import each_case
from tests.support.tables import table

WANTED = table("lettering")["wanted"]
NOT_WANTED = table("lettering")["not_wanted"]


def test_a_wish_for_words_in_the_picture_is_heard() -> None:
    assert [text for text in WANTED if not wants_lettering(text)] == []


def test_other_wishes_and_refusals_are_not() -> None:
    assert [text for text in NOT_WANTED if wants_lettering(text)] == []


def test_one_of_several_texts_is_enough() -> None:
    assert wants_lettering("a café poster", "A poster of a red cup. The headline reads “SLOW”.")
    assert not wants_lettering()


def test_the_words_asked_for_are_those_beside_a_word_that_asks() -> None:
    asked = table("lettering")["asked"]
    assert {text: read for text, words in asked if (read := asked_lettering(text)) != tuple(words)} == {}


def test_facts_in_a_prompt_ask_for_nothing() -> None:
    prompt = "a tower\n\n[FACTS]\n- The sign says “CLOSED” (a.example)\n[/FACTS]"
    assert not wants_lettering(prompt)
    assert asked_lettering(prompt) == ()


def test_words_are_read_whatever_their_case_width_and_lines() -> None:
    same = table("lettering")["same"]
    assert [(asked, read) for asked, read in same if not reads_as(asked, read)] == []


def test_other_letters_are_other_words() -> None:
    others = table("lettering")["others"]
    assert [(asked, read) for asked, read in others if reads_as(asked, read)] == []


@each_case(
    "piece",
    ["no a, ", "no a and ", "“", "'a", "不要", 'replace "x" ', "write a ", "no text, ", "无", "a or ", "remove "],
)
def test_a_long_text_made_to_be_slow_is_read_to_its_end(piece: str) -> None:
    # A pattern that tries every way would not come back from this.
    text = f"the sign says “OPEN”. {piece * 20_000}"
    assert wants_lettering(text)
    assert asked_lettering(text)[0] == "OPEN"
