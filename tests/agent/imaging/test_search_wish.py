from __future__ import annotations

from tests.adapters.language import requested_search_in_words
from tests.support.cases import each_case


@each_case(
    "text",
    [
        "Search the web for the Eiffel Tower's height and verify it, then draw it",
        "please look it up and double-check the dates",
        "Google the flag of Bhutan, make sure it is right, and paint it",
        "look the numbers up online, fact-check them, make a poster",
        "I'm not sure about the year: search and confirm it",
        "画一张海报，先搜索资料并核实数据",
        "上网查一下今年的日期，确认无误后再画",
        "搜一下埃菲尔铁塔的高度，验证后画出来",
        "請上網搜尋並查證",
    ],
)
def test_words_that_ask_for_search_and_verification_are_heard(text: str) -> None:
    assert requested_search_in_words(text)


@each_case(
    "text",
    [
        "",
        "draw the Eiffel Tower",
        "search for pictures of foxes and draw one",
        "verify that the sign reads OPEN",
        "a man in a checked shirt on a search",
        "don't search, just verify the spelling",
        "search for it but do not verify",
        "no need to search or verify anything",
        "draw it without searching or checking",
        "搜索一下狐狸的样子",
        "确认一下颜色再画",
        "不要搜索，直接确认颜色",
        "不用上网查，也不用核实",
    ],
)
def test_other_words_are_not(text: str) -> None:
    assert not requested_search_in_words(text)
