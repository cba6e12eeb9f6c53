from __future__ import annotations

from tests.adapters.language import requested_search_in_words
from tests.support.tables import table


def test_words_that_ask_for_search_and_verification_are_heard_and_no_others() -> None:
    wishes = table("search_wishes")
    assert [text for text in wishes["asked"] if not requested_search_in_words(text)] == []
    assert [text for text in wishes["not_asked"] if requested_search_in_words(text)] == []
