from __future__ import annotations

from tests.adapters.language import requested_search_in_words
from tests.support.cases import each_case
from tests.support.tables import table


@each_case("text", table("search_wishes")["asked"])
def test_words_that_ask_for_search_and_verification_are_heard(text: str) -> None:
    assert requested_search_in_words(text)


@each_case("text", table("search_wishes")["not_asked"])
def test_other_words_are_not(text: str) -> None:
    assert not requested_search_in_words(text)
