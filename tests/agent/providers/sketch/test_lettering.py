"""Fonts, lines and letters."""

from __future__ import annotations

from tests.adapters.sketch import drawable, find_font, fit, wrap


def test_latin_words_have_a_font_on_every_machine() -> None:
    font = find_font("Hello", 24)

    assert font is not None
    assert drawable("Hello", font) == "Hello"


def test_letters_without_a_glyph_are_left_out() -> None:
    font = find_font("Hello \U0010fffd world", 24)

    assert font is not None
    assert drawable("Hello \U0010fffd world", font) == "Hello world"


def test_words_of_which_nothing_can_be_drawn_have_no_font() -> None:
    assert find_font("\U0010fffd", 24) is None
    assert fit("\U0010fffd", 200, 24, max_lines=2) is None


def test_lines_fit_into_the_width() -> None:
    font = find_font("words", 20)
    assert font is not None
    lines = wrap("some words that do not fit into one line of this width", font, 150)

    assert len(lines) > 2
    assert all(font.getlength(line) <= 150 for line in lines)
    assert " ".join(lines) == "some words that do not fit into one line of this width"


def test_chinese_lines_break_anywhere_but_before_a_closing_mark() -> None:
    font = find_font("字", 20) or find_font("a", 20)
    assert font is not None
    lines = wrap("一二三四五六七八，九十", font, font.getlength("一二三四五六七八") + 1)

    assert "".join(lines) == "一二三四五六七八，九十"
    assert not any(line.startswith("，") for line in lines)


def test_what_is_too_long_shrinks_first_and_then_ends_in_an_ellipsis() -> None:
    short = fit("Hello", 300, 30, max_lines=1)
    long = fit("Hello " * 40, 300, 30, max_lines=1)

    assert short is not None
    assert long is not None
    assert short[0].size == 30
    assert long[0].size < 30
    assert long[1][0].endswith("…")
    assert long[0].getlength(long[1][0]) <= 300
