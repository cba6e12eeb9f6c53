"""Reads which words a sentence wants written into the picture, and where."""

from __future__ import annotations

import re

from agent.providers.sketch.operations import AddText, Position
from agent.providers.sketch.phrases import blank_quoted, find_quoted, fold

_LETTERING = re.compile(
    r"^\s*(?:text|caption|title|文字|标题|字幕)\s*:|"
    r"\b(?:add|write|put|place|insert|include|overlay|type|print|append)\b[^§]*?\b(?:text|words?|caption|title|letters?"
    r"|lettering|heading|headline|slogan|label|watermark|line|quote)\b|\b(?:add|write|put|caption|title|label"
    r"|overlay|type)\b[^§]{0,30}§"
    r"|\bwith the (?:text|words?|caption|title)\s*§"
    r"|(?:加上?|添加|写上?|放上?|配上?|印上?|标上?|打上|题上?)[^§]{0,12}?(?:文字|字样|标题|字幕|几个字|大字|字"
    r"|标语|水印|§)|(?:文字|标题|字幕)\s*[:为是]?\s*§"
)
_BARE_TEXT = re.compile(
    r"(?:\b(?:text|words?|caption|title|headline|slogan)\b|文字|字样|标题|字幕|标语|[一两几][行句排]大?字"
    r"|写上?)\s*(?:that (?:says"
    r"|reads))?\s*[:：]?\s*([^§]+)$",
    re.IGNORECASE,
)
_PLACE_WORDS = (
    (Position.TOP, re.compile(r"\b(?:top|above|upper|header)\b|顶部|上方|上面|顶端|顶上|上部")),
    (Position.CENTER, re.compile(r"\b(?:cent(?:er|re)|middle|central)\b|中间|中央|正中|居中|中部")),
    (Position.BOTTOM, re.compile(r"\b(?:bottom|below|lower|footer)\b|底部|下方|下面|底端|底下|下部")),
)
_PLACE_TAIL = re.compile(
    r"\s*(?:,\s*)?(?:\b(?:at|in|on|to|near)\s+(?:the\s+)?(?:very\s+)?(?:top|bottom|cent(?:er|re)|middle)\b.*"
    r"|(?:在|到)?(?:顶部|底部|中间|上方|下方).*)$",
    re.IGNORECASE,
)


def read_inscription(text: str) -> tuple[AddText | str, str]:
    """Return the words to add (or `missing`, or nothing) and the folded rest, where a lone `§` stands for them."""
    quoted = find_quoted(text)
    marked = fold(blank_quoted(text))
    match = _LETTERING.search(marked)
    if not match:
        return "", marked.replace("§", " ")
    if quoted:
        clause = _clause_around(marked, match)
        rest = marked.replace(clause, ",§,", 1)
        return AddText(quoted[0], _position(_opening(marked, match) + clause)), rest
    return _bare_lettering(text, marked, match)


def _bare_lettering(text: str, marked: str, match: re.Match[str]) -> tuple[AddText | str, str]:
    """Return lettering that stands without quotation marks: everything after the word for it."""
    bare = _BARE_TEXT.search(text)
    before = marked[: match.start()]
    if not bare:
        return "missing", before
    words = _PLACE_TAIL.sub("", bare.group(1)).strip(" :：,，。.")
    if not words or words in {"字", "to it", "on it", "here", "to the picture", "to this"}:
        return "missing", before
    return AddText(words, _position(fold(text[bare.start() :]))), before + ",§,"


def _opening(marked: str, match: re.Match[str]) -> str:
    """Return what stands before the verb in its own clause ("在顶部" of "在顶部加上…")."""
    return re.split(r"[,;。!?\n]|\b(?:and|then)\b|然后|并", marked[: match.start()])[-1]


def _clause_around(marked: str, match: re.Match[str]) -> str:
    """Return the clause of the lettering, from its verb to the next break after the quoted words."""
    start = match.start()
    quote = marked.find("§", start)
    quote = match.end() if quote < 0 else quote
    stop = re.search(r"[,;。!?\n]|\b(?:and|then)\b|然后|并|再", marked[quote:])
    after = marked[quote + stop.end() :] if stop else ""
    end = quote + stop.start() if stop else len(marked)
    tail = (
        re.match(r"\s*(?:at|in|on|to|near|在|放在|位置|居)[^,;。]*", after) if stop and stop.group(0) in ",;" else None
    )
    return marked[start : end + 1 + tail.end()] if tail and _named_position(tail.group(0)) else marked[start:end]


def _named_position(words: str) -> Position | None:
    return next((position for position, pattern in _PLACE_WORDS if pattern.search(words)), None)


def _position(words: str) -> Position:
    return _named_position(words) or Position.BOTTOM
