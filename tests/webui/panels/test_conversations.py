"""The rail lists conversations by day, shows where a search found its words, and writes nobody's HTML."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent.conversation import ConversationInfo
from webui.panels.conversations import (
    FoundRow,
    found_html,
    rows_html,
    said_html,
)
from webui.words import load_words

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


def test_what_is_said_offers_the_way_back_and_a_problem_is_an_alert() -> None:
    said = said_html(WORDS, "“<b>” is deleted.", 7, undo="id-a", was_open=True)
    assert 'role="status" data-at="7"' in said
    assert 'data-rail="undo" data-id="id-a" data-open="true"' in said
    assert "<b>" not in said
    assert 'role="alert"' in said_html(WORDS, "No.", 8, is_problem=True)
