"""The rail lists conversations by day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent.conversation import ConversationInfo
from webui.panels.conversations import rail_html
from webui.words import load_words

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WORDS = load_words("en")


def info(title: str, days_ago: int, price_usd: float = 0.0, digest: str | None = None) -> ConversationInfo:
    moment = NOW - timedelta(days=days_ago)
    return ConversationInfo(
        id=f"id-{title}",
        title=title,
        created_at=moment,
        updated_at=moment,
        price_usd=price_usd,
        thumbnail_digest=digest,
    )


def test_conversations_stand_under_their_day_newest_first() -> None:
    rail = rail_html(WORDS, [info("a", 0), info("b", 1), info("c", 5), info("d", 40)], "id-b", NOW)
    order = ["Today", ">a<", "Yesterday", ">b<", "Previous 7 days", ">c<", "Earlier", ">d<"]
    assert [rail.index(word) for word in order] == sorted(rail.index(word) for word in order)
    assert rail.count("aria-current") == 1


def test_an_empty_conversation_is_not_listed_and_the_first_page_says_where_they_will_be() -> None:
    rail = rail_html(WORDS, [info("", 0)], "", NOW)
    assert 'data-act="open"' not in rail
    assert "will be listed here" in rail
    assert "$0.00" in rail


def test_the_spend_is_the_sum_of_all() -> None:
    assert "$1.34" in rail_html(WORDS, [info("a", 0, 1.0), info("b", 9, 0.34)], "", NOW)


def test_a_title_cannot_become_html() -> None:
    assert "<script>" not in rail_html(WORDS, [info("<script>", 0)], "", NOW)


def test_a_thumbnail_comes_from_our_own_route() -> None:
    assert f'src="media/id-a/{"0" * 64}?size=64"' in rail_html(WORDS, [info("a", 0, digest="0" * 64)], "", NOW)
