"""Words for the full text: split alike when they go in and when they are looked for, and harmless whatever is asked."""

from __future__ import annotations

import contextlib
import sqlite3

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.storage.tables import FULL_TEXT
from agent.storage.word_index import excerpt_of, found_in, match_query, words_of
from tests.support.cases import each_case


def finds(text: str, query: str) -> bool:
    """Return whether SQLite itself finds the text."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(FULL_TEXT[0])
        database.execute("INSERT INTO conversation_words VALUES (?)", (words_of(text),))
        match = match_query(query)
        found = database.execute("SELECT 1 FROM conversation_words WHERE conversation_words MATCH ?", (match,))
        return match is not None and found.fetchone() is not None


@each_case(
    ("text", "query"),
    [
        ("A red fox in the snow", "fox"),
        ("A red fox in the snow", "SNOW red"),
        ("A red fox in the snow", "a sno"),
        ("Ein Füchslein", "fuchs"),
        ("Ein Fuchs", "füchs"),
        ("Straße", "STRASSE"),
        ("ｉＰｈｏｎｅ", "iphone"),
        ("一只红狐狸在雪里", "狐"),
        ("一只红狐狸在雪里", "狐狸"),
        ("一只红狐狸在雪里", "红狐狸"),
        ("一只红狐狸在雪里", "雪 狐狸"),
        ("画一张iPhone手机海报", "手机 iph"),
        ("ねこのイラスト", "イラスト"),
        ("picture #7b please", "#7b"),
    ],
)
def test_what_was_said_is_found(text: str, query: str) -> None:
    assert finds(text, query)
    assert found_in(text, query) >= 1


@each_case(
    ("text", "query"),
    [
        ("A red fox in the snow", "ox"),
        ("A red fox in the snow", "fo snow"),
        ("A red fox in the snow", "fox wolf"),
        ("红色的狐, 河狸", "狐狸"),
        ("红狐在这里，那里有狐狸", "红狐狸"),
        ("一只红狐狸", "狐红"),
    ],
)
def test_what_was_not_said_is_not_found(text: str, query: str) -> None:
    assert not finds(text, query)


@each_case("query", ["", "   ", "!?", "🦊", '"', "* OR", "()"])
def test_a_query_without_a_word_asks_for_nothing_or_only_for_words(query: str) -> None:
    assert match_query(query) in (None, '"or" *')


@settings(max_examples=300, deadline=None)
@given(query=st.text(max_size=60))
@example('fox" OR "snow')
@example("words:fox")
@example("fox NEAR/3 snow")
@example("-fox ^red {a b} : *")
@example("\0\ud7ff")
def test_whatever_a_person_asks_is_words_and_no_syntax(query: str) -> None:
    assert not finds("nothing of the kind is here", f"zebra {query}")
    assert finds(f"zebra {query}", f"zebra {query}")


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(alphabet="红狐狸雪 ab,é，ﬁ\n", min_size=1, max_size=300),
    query=st.sampled_from(["狐狸", "雪", "ab", "a b", "é"]),
)
def test_marks_stand_in_the_excerpt_and_say_what_was_looked_for(text: str, query: str) -> None:
    excerpt = excerpt_of(text, query)
    assert len(excerpt.text) <= 130
    for start, end in excerpt.marks:
        assert 0 <= start < end <= len(excerpt.text)
        assert any(found_in(excerpt.text[start:end], word) for word in query.split())
    assert bool(excerpt.marks) == bool(found_in(text, query))


def test_an_excerpt_is_cut_between_words_around_the_first_that_was_looked_for() -> None:
    text = "word " * 60 + "a Füchslein\nin the snow " + "word " * 60
    excerpt = excerpt_of(text, "fuchs")
    assert excerpt.text.startswith("…word")
    assert excerpt.text.endswith("word…")
    assert [excerpt.text[start:end] for start, end in excerpt.marks] == ["Füchs"]
    assert "\n" not in excerpt.text


def test_an_excerpt_of_what_does_not_hold_the_words_is_its_beginning() -> None:
    assert excerpt_of("A red fox", "wolf") == ("A red fox", ())
    assert excerpt_of("", "wolf") == ("", ())
