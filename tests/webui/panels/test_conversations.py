"""The rail lists conversations by day, shows where a search found its words, and writes nobody's HTML."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent.conversation import ConversationInfo
from webui.panels.conversations import (
    FoundRow,
    conversation_opener,
    foot_html,
    found_html,
    head_html,
    menus_html,
    rows_html,
    said_html,
)
from webui.words import LANGUAGES, load_words

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WORDS = load_words("en")


def info(title: str, days_ago: int, *, digest: str | None = None, is_pinned: bool = False) -> ConversationInfo:
    moment = NOW - timedelta(days=days_ago)
    return ConversationInfo(
        id=f"id-{title}",
        title=title,
        created_at=moment,
        updated_at=moment,
        is_pinned=is_pinned,
        thumbnail_digest=digest,
    )


def rows(*infos: ConversationInfo, current: str = "", has_more: bool = False) -> str:
    return rows_html(WORDS, infos, current, has_more=has_more, now=NOW)


def test_conversations_stand_under_their_day_and_the_pinned_ones_before_all() -> None:
    shown = rows(info("p", 40, is_pinned=True), info("a", 0), info("b", 1), info("c", 5), info("d", 40))
    order = ["Pinned", ">p<", "Today", ">a<", "Yesterday", ">b<", "Previous 7 days", ">c<", "Earlier", ">d<"]
    assert [shown.index(word) for word in order] == sorted(shown.index(word) for word in order)
    assert shown.count("<h3>") == 5


def test_the_open_one_is_marked() -> None:
    assert 'data-arg="id-b" aria-current="page"' in rows(info("a", 0), info("b", 1), current="id-b")
    assert "aria-current" not in rows(info("a", 0), current="id-z")


def test_without_any_the_rail_says_where_they_will_be() -> None:
    assert "will be listed here" in rows()


def test_more_rows_can_be_asked_for_when_there_are_more() -> None:
    assert 'data-rail="more"' in rows(info("a", 0), has_more=True)
    assert 'data-rail="more"' not in rows(info("a", 0))


def test_a_thumbnail_comes_small_from_our_own_route() -> None:
    assert f'src="media/id-a/{"0" * 64}?size=64"' in rows(info("a", 0, digest="0" * 64))


def test_a_title_is_never_html() -> None:
    assert "<script>" not in rows(info('<script>"', 0))
    assert "<script>" not in conversation_opener(WORDS, '"><script>', '"><script>', is_pinned=False)


def test_a_menu_knows_its_conversation_and_whether_it_is_pinned() -> None:
    shown = rows(info("a", 0, is_pinned=True))
    assert 'data-id="id-a" data-title="a" data-pinned="true"' in shown
    assert 'aria-label="More about “a”"' in shown


def test_what_was_found_is_shown_with_its_words_marked() -> None:
    found = FoundRow(info("a", 0), "draw a <red> fox, red", ((7, 12), (18, 21)), is_title=False)
    shown = found_html(WORDS, "red", [found], "")
    assert "<small>draw a <mark>&lt;red&gt;</mark> fox, <mark>red</mark></small>" in shown
    assert "1 conversation found" in shown


def test_words_found_in_a_title_are_marked_there() -> None:
    found = FoundRow(info("红狐狸", 0), "红狐狸", ((1, 3),), is_title=True)
    shown = found_html(load_words("zh-CN"), "狐狸", [found], "")
    assert '<span dir="auto">红<mark>狐狸</mark></span>' in shown
    assert "<small>" not in shown


def test_a_search_without_a_find_says_what_was_sought() -> None:
    assert "Nothing holds “&lt;b&gt;”." in found_html(WORDS, "<b>", [], "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_item_of_the_menus_is_there_in_both_languages(language: str) -> None:
    words = load_words(language)
    menus = menus_html(words)
    for act in ("rename", "pin", "duplicate", "delete", "import"):
        assert f'data-rail="{act}"' in menus
    for kind in ("zip", "md", "html"):
        assert f'data-kind="{kind}"' in menus
    assert words("kept.delete") in menus
    assert words("rail.search") in head_html(words)


def test_what_is_said_offers_the_way_back_and_a_problem_is_an_alert() -> None:
    said = said_html(WORDS, "“<b>” is deleted.", 7, undo="id-a", was_open=True)
    assert 'role="status" data-at="7"' in said
    assert 'data-rail="undo" data-id="id-a" data-open="true"' in said
    assert "<b>" not in said
    assert 'role="alert"' in said_html(WORDS, "No.", 8, is_problem=True)


def test_the_foot_shows_what_was_spent() -> None:
    assert '<div class="spend">$4.82</div>' in foot_html(WORDS, '<div class="spend">$4.82</div>')
