"""Reads which words a sentence wants written inside a mask, in quotation marks or without."""

from __future__ import annotations

import re
from dataclasses import replace

from agent.providers.sketch.colours import COLOUR, find_colours
from agent.providers.sketch.inscription import read_inscription
from agent.providers.sketch.operations import AddText, Position
from agent.providers.sketch.palette import Colour
from agent.providers.sketch.phrases import blank_quoted, find_quoted, fold

MISSING = "missing"
_MAX_WORDS = 120

_ENGLISH = re.compile(
    r"^\s*(?:write|print|letter|type|(?:add|put) the (?:words?|text|letters|name))\s+"
    r"(?:the (?:words?|text|letters)\s+)?"
    r"(?P<words>[^,;\n]+?)\s*$",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"^\s*(?:在(?:这里|这儿|此处|里面|蒙版[里内中]|上面)?)?(?:[写题印](?:上|个|下|着)?)(?:文字|字样|几个字|大字)?\s*[:：]?\s*"
    r"(?P<words>[^,，;；。\n]+?)(?:[这几两三四]+个(?:大)?字)?\s*$"
)
_TAIL = re.compile(
    r"\s+(?:(?:in|inside|into|on|over|within|right)\s+)?"
    r"(?:here|there|it|this|the (?:mask|area|middle|cent(?:er|re)))\s*$"
    rf"|\s+in\s+{COLOUR}(?:\s+(?:letters|text|ink|colou?r))?\s*$",
    re.IGNORECASE,
)
_NO_WORDS = re.compile(
    r"(?:an?|some\w*|me|about|down|it|this|that|text|words?|letters?|here)\b|一[首段篇些点]|点|些|字$|诗|故事|文章"
)
_INKED = re.compile(rf"\bin ({COLOUR})|用?({COLOUR})的?[^,。]{{0,3}}[字写]|({COLOUR})\s+(?:letters|text|words|ink)")


def read_area_lettering(text: str) -> tuple[AddText | str, str]:
    """Return the words to write (or MISSING, or nothing) and the rest of the text.

    Where they stand does not count: the mask says it.
    """
    match = None if find_quoted(text) else _ENGLISH.match(text) or _CHINESE.match(text)
    if match is None:
        lettering, rest = read_inscription(text)
        if isinstance(lettering, AddText):
            ink = _ink(fold(blank_quoted(text)))
            return replace(lettering, position=Position.CENTER, ink=ink), rest.replace("§", " ")
        return lettering, rest
    words = match["words"]
    while (shorter := _TAIL.sub("", words)) != words:
        words = shorter
    if not words.strip() or _NO_WORDS.match(words):
        return MISSING, ""
    return AddText(words.strip()[:_MAX_WORDS], Position.CENTER, _ink(fold(text))), ""


def _ink(folded: str) -> Colour | None:
    match = _INKED.search(folded)
    colours = find_colours(next(group for group in match.groups() if group)) if match else ()
    return colours[0] if colours else None
