"""Whether the person asks in words for both a search and a verification: the only case in which both parties search."""

from __future__ import annotations

import re

_SEARCH_EN = (
    r"search(?:es|ed|ing)?|look(?:ing)?(?: \w+){0,4} up|look(?:ing)? online|googl(?:e|ed|ing)|web[- ]search|"
    r"research(?:ed|ing)?|find out online|browse the (?:web|internet)"
)
_VERIFY_EN = (
    r"verif(?:y|ies|ied|ying|ication)|(?:double|cross|fact)[- ]?check(?:s|ed|ing)?|check(?:ing)?|"
    r"confirm(?:s|ed|ing)?|validat(?:e|ed|ing)|make sure|ensure"
)
_SEARCH_ZH = (
    "搜索|搜寻|搜尋|搜一下|搜一搜|搜搜|网上搜|查一下|查一查|查找|查询|查詢|检索|檢索|谷歌一下|百度一下|上网|上網"
)
_VERIFY_ZH = "核实|核實|验证|驗證|核对|核對|查证|查證|求证|求證|确认|確認|校验|核查|确保|確保"
_NOT_EN = r"(?:do not|don['’]?t|please don['’]?t|never|without|no need to|not|no|skip)"
_NOT_ZH = "(?:不要|不用|不必|无需|無需|别|別|不需要|勿|免)"

_SEARCH = re.compile(rf"\b(?:{_SEARCH_EN})\b|{_SEARCH_ZH}", re.IGNORECASE)
_VERIFY = re.compile(rf"\b(?:{_VERIFY_EN})\b|{_VERIFY_ZH}", re.IGNORECASE)
_REFUSED = re.compile(
    rf"\b{_NOT_EN}\s+(?:(?:the|any|to|a|web|or|and|{_SEARCH_EN})\s+){{0,4}}(?:{_SEARCH_EN}|{_VERIFY_EN})\b"
    rf"|{_NOT_ZH}[^，。,.；;！!？?]{{0,6}}?(?:{_SEARCH_ZH}|{_VERIFY_ZH})",
    re.IGNORECASE,
)


def requested_search_in_words(text: str) -> bool:
    """Return whether the words ask, in English or Chinese, for a search and for its verification."""
    wished = _REFUSED.sub(" ", text)
    return _SEARCH.search(wished) is not None and _VERIFY.search(wished) is not None
