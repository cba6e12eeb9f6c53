"""Which wishes ask for words in the picture, which words, and what counts as reading them."""

from __future__ import annotations

from tests.adapters.language import asked_lettering, reads_as, wants_lettering
from tests.support.cases import each_case
from tests.support.tables import table

LETTERING = table("lettering")


def test_a_wish_for_words_in_the_picture_is_heard_and_no_other() -> None:
    assert [text for text in LETTERING["wanted"] if not wants_lettering(text)] == []
    assert [text for text in LETTERING["not_wanted"] if wants_lettering(text)] == []
    assert wants_lettering("a café poster", "A poster of a red cup. The headline reads “SLOW”.")
    assert not wants_lettering()
    facts = "a tower\n\n[FACTS]\n- The sign says “CLOSED” (a.example)\n[/FACTS]"
    assert (wants_lettering(facts), asked_lettering(facts)) == (False, ())


def test_the_words_asked_for_stand_beside_a_word_that_asks_and_are_read_whatever_their_case_and_width() -> None:
    asked = {text: tuple(words) for text, words in LETTERING["asked"]}
    assert {text: asked_lettering(text) for text in asked} == asked
    assert [(asked, read) for asked, read in LETTERING["same"] if not reads_as(asked, read)] == []
    assert [(asked, read) for asked, read in LETTERING["others"] if reads_as(asked, read)] == []


@each_case(
    "piece",
    ["no a, ", "no a and ", "“", "'a", "不要", 'replace "x" ', "write a ", "no text, ", "无", "a or ", "remove "],
)
def test_a_long_text_made_to_be_slow_is_read_to_its_end(piece: str) -> None:
    # A pattern that tries every way would not come back from this.
    text = f"the sign says “OPEN”. {piece * 20_000}"
    assert wants_lettering(text)
    assert asked_lettering(text)[0] == "OPEN"
