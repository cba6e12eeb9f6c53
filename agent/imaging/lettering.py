"""Whether a wish asks for words in the picture, which words exactly, and whether what a picture reads is them.

English and Chinese. Quoted words count as asked for only beside a word that says so ("a sign that reads “OPEN”"): a
name, a film or an ironic “look” in quotation marks is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, takewhile

from agent.imaging.final_prompt import without_facts
from agent.imaging.lettering_words import (
    CONTINUES,
    CUE,
    CUE_AFTER,
    CUE_BEFORE,
    DROPPED,
    NOT_LETTERING,
    QUOTED,
    REFERENCE_AFTER,
    REFERENCE_BEFORE,
    REFUSED,
    REPLACED,
    SENTENCE_END,
)

_MAX_CHARACTERS = 20_000
_NEAR_CHARACTERS = 60
_QUOTE = "\ue000"
_MARKS = (_QUOTE, DROPPED)
_TOKEN = re.compile(r"[\u2e80-\u2fff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W_]")
_IDEOGRAPH = re.compile(r"[\u2e80-\u2fff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def wants_lettering(*texts: str) -> bool:
    """Return whether any of the texts asks for words in the picture: quoted ones, a headline, a sign that says."""
    return any(_wants(text) for text in texts)


def asked_lettering(*texts: str) -> tuple[str, ...]:
    """Return the quoted words that shall stand in the picture, each once, in order."""
    found = [quote for text in texts for quote, _, is_asked in _quotes(_wish(text)) if is_asked]
    return tuple({"".join(_tokens(quote)): quote for quote in reversed(found) if _tokens(quote)}.values())[::-1]


def reads_as(asked: str, read: str) -> bool:
    """Return whether the words asked for stand in what was read.

    Case, width, punctuation, spaces and line breaks do not count; letters and accents do. Words that were read in
    another order are taken for a layout of several lines.
    """
    wanted, seen = _tokens(asked), _tokens(read)
    if not Counter(wanted) - Counter(seen):
        return True
    joined = "".join(wanted)

    def is_short(begun: str) -> bool:
        return len(begun) <= len(joined)

    return any(joined in takewhile(is_short, accumulate(seen[start:])) for start in range(len(seen)))


def _wants(text: str) -> bool:
    wish = _wish(text)
    if any(is_asked or _is_bare_lettering(quote, place, wish[0]) for quote, place, is_asked in _quotes(wish)):
        return True
    return CUE.search(NOT_LETTERING.sub(" ", wish[0])) is not None


def _wish(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with one sign for each quotation, without what is refused or replaced, and the quotations."""
    plain = without_facts(text[:_MAX_CHARACTERS].replace(_QUOTE, " ").replace(DROPPED, " "))
    quotes: list[str] = []

    def put(match: re.Match[str]) -> str:
        quotes.append(match.group(0))
        return f" {_QUOTE} "

    marked = QUOTED.sub(put, plain)
    marked = REPLACED.sub(lambda match: match.group(0).replace(_QUOTE, DROPPED), marked)
    refused = REFUSED.sub(lambda match: f" {DROPPED * sum(map(match.group(0).count, _MARKS))} ", marked)
    return refused, tuple(quotes)


def _quotes(wish: tuple[str, tuple[str, ...]]) -> Iterator[tuple[str, int, bool]]:
    """Yield each quotation that still stands: its words with their marks, its place, and whether it is asked for."""
    marked, quotes = wish
    places = [place for place, sign in enumerate(marked) if sign in _MARKS]
    is_asked, end = False, 0
    for quote, place in zip(quotes, places, strict=True):
        before = marked[max(0, place - _NEAR_CHARACTERS) : place]
        # In a list the word that asks stands before its first member only.
        is_next = bool(end) and CONTINUES.fullmatch(marked[end:place]) is not None
        is_asked = is_asked if is_next else _is_asked(before, marked[place + 1 :])
        end = place + 1
        if marked[place] == _QUOTE:
            yield quote[1:-1].strip(), place, is_asked


def _is_asked(before: str, after: str) -> bool:
    near = SENTENCE_END.split(before)[-1]
    then = SENTENCE_END.split(after[:_NEAR_CHARACTERS])[0].partition(_QUOTE)[0]
    if REFERENCE_AFTER.match(then):
        return False
    if CUE_AFTER.match(then):
        return True
    return REFERENCE_BEFORE.search(near) is None and CUE_BEFORE.search(near) is not None


def _is_bare_lettering(quote: str, place: int, marked: str) -> bool:
    """Return whether a quotation without any word for lettering still looks like it: a “Good Morning” mug."""
    before, after = marked[max(0, place - _NEAR_CHARACTERS) : place], marked[place + 1 : place + _NEAR_CHARACTERS]
    if REFERENCE_BEFORE.search(before) or REFERENCE_AFTER.match(after):
        return False
    is_ironic = quote.islower() and len(quote.split()) < 3
    return bool(_tokens(quote)) and not is_ironic


def _tokens(text: str) -> list[str]:
    """Return the words of the text in their plainest form; of a script without spaces each sign is one."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    tokens: list[str] = []
    end = -1
    for match in _TOKEN.finditer(plain):
        is_sign = _IDEOGRAPH.fullmatch(match.group(0)) is not None
        if is_sign or match.start() != end:
            tokens.append(match.group(0))
        else:
            tokens[-1] += match.group(0)
        end = -1 if is_sign else match.end()
    return tokens
