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
    asked = [
        ("a café poster with the headline “Slow mornings”", ("Slow mornings",)),
        ('Bold serif lettering "SLOW MORNINGS" across the top, and a small line "since 1987"', ("SLOW MORNINGS",)),
        ("a banner, “GRAND OPENING” in gold letters", ("GRAND OPENING",)),
        ('three jars with the labels "Salt", "Pepper" and "Tea"', ("Salt", "Pepper", "Tea")),
        ("a sign that reads 'Don't feed the cats'", ("Don't feed the cats",)),
        ("change the word “SALE” to “SOLD OUT”", ("SOLD OUT",)),
        ("replace “Monday” with “Friday” on the sign", ("Friday",)),
        ("remove the word “SALE”", ()),
        ("the word “OPEN”, not “CLOSED”", ("OPEN",)),
        ('in the style of the film "Metropolis", with the title "DAWN"', ("DAWN",)),
        ("a cat named “Tom”", ()),
        ("a “steampunk” city", ()),
        ("a mug “Good Morning”", ()),
        ("the sign says “OPEN”. A second sign says “Open”.", ("OPEN",)),
        ("招牌上写着“老张面馆”", ("老张面馆",)),
        ("标题是「慢下来」，副标题『山居岁月』", ("慢下来", "山居岁月")),
        ("给杯子印上“早安”字样", ("早安",)),
        ("“恭喜发财”四个大字", ("恭喜发财",)),
        ("把“特价”改成“售罄”", ("售罄",)),
        ("“赛博朋克”风格的城市，招牌写着“夜”", ("夜",)),
        ("去掉文字“特价”", ()),
    ]
    assert {text: read for text, words in asked if (read := asked_lettering(text)) != words} == {}


def test_facts_in_a_prompt_ask_for_nothing() -> None:
    prompt = "a tower\n\n[FACTS]\n- The sign says “CLOSED” (a.example)\n[/FACTS]"
    assert not wants_lettering(prompt)
    assert asked_lettering(prompt) == ()


def test_words_are_read_whatever_their_case_width_and_lines() -> None:
    same = [
        ("Slow mornings", "SLOW\nMORNINGS"),
        ("SLOW MORNINGS", "Café Luna — slow mornings since 1987"),
        ("Slow mornings", "SLOW MOR-\nNINGS"),
        ("Slow mornings", "slowmornings"),
        ("Don't panic!", "DON’T PANIC"),
        ("Summer Sale 50% off", "SUMMER 50% OFF\nSALE"),
        ("ＯＰＥＮ", "open"),
        ("恭喜发财", "恭 喜\n发 财！"),
        ("老张面馆", "老张面馆 since 1990"),
        ("春风得意", "得意\n春风"),
        ("Café", "CAFÉ"),
        ("OPEN 24小时", "open24小时"),
    ]
    assert [(asked, read) for asked, read in same if not reads_as(asked, read)] == []


def test_other_letters_are_other_words() -> None:
    others = [
        ("Slow mornings", "SLOW MORNIGNS"),
        ("OPEN", "OPENN"),
        ("OPEN", "REOPEN"),
        ("OPEN", ""),
        ("夏日特卖", "夏日持卖"),
        ("恭喜发财", "恭喜發財"),
        ("Café", "CAFE"),
        ("very very good", "very good"),
        ("SALE 50%", "SALE 60%"),
    ]
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
