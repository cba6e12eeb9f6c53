"""Whether a wish asks for text in the picture, which text exactly, and whether text read from a picture matches it.

English and Chinese. Quoted words count as requested only beside a cue ("a sign that reads “OPEN”"); a name, a film
title or an ironic “look” in quotation marks does not count.

Also the checklist of other things in a request that can be checked in a picture: each item must quote the user's own
text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile

from agent import wording
from agent.imaging.arguments import MAX_CHECKS
from agent.imaging.contract import without_facts
from agent.pictures import AskedItem, AskedKind

# The patterns match a text in which each quotation is replaced by \ue000, or by this character if it does not count.
_DROPPED = "\ue001"
# An inch sign after a digit does not open a quotation; an apostrophe inside a word does not close one.
_QUOTED = re.compile(
    r"“[^“”\n]{1,300}”|(?<![\d\w])\"[^\"\n]{1,300}\"|「[^「」\n]{1,300}」|『[^『』\n]{1,300}』|《[^《》\n]{1,300}》"
    r"|‘(?:[^‘’\n]|(?<=\w)’(?=\w)){1,300}’(?!\w)|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,300}'(?!\w)|«[^«»\n]{1,300}»"
)
_SENTENCE_END = re.compile(r"[.!?;](?:\s|$)|[。！？；\n]")
_MAX_CHARACTERS = 20_000
_NEAR_CHARACTERS = 60
_QUOTE = "\ue000"
_MARKS = (_QUOTE, _DROPPED)
# Between the letters of these blocks stand brackets, dashes and the middle dot, which are punctuation.
_SIGN = r"[\u2e80-\u2fff\u3005-\u3007\u3021-\u302f\u3031-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
_TOKEN = re.compile(rf"{_SIGN}|(?:(?!{_SIGN})[^\W_])+")


def wants_lettering(*texts: str) -> bool:
    """Return whether any of the texts asks for text in the picture: quoted words, a headline, a sign that says …"""
    return any(_wants(text) for text in texts)


def asked_lettering(*texts: str) -> tuple[str, ...]:
    """Return the quoted words that are requested in the picture, without duplicates, in order."""
    found = [quote for text in texts for quote, _, is_asked in _quotes(_wish(text)) if is_asked]
    return tuple({"".join(tokens): quote for quote in reversed(found) if (tokens := _tokens(quote))}.values())[::-1]


def reads_as(asked: str, read: str) -> bool:
    """Return whether the text read from a picture contains the requested words.

    Case, width, punctuation, spaces and line breaks are ignored; letters and accents count. Words in another order
    match too, because the text may be laid out on several lines.
    """
    wanted, seen = _tokens(asked), _tokens(read)
    if not Counter(wanted) - Counter(seen):
        return True
    joined = "".join(wanted)
    beginnings = (accumulate(seen[start:]) for start in range(len(seen)))
    return any(joined in takewhile(lambda begun: len(begun) <= len(joined), each) for each in beginnings)


def _words(name: str) -> re.Pattern[str]:
    return wording.pattern(f"lettering.{name}", flags=re.IGNORECASE)


def _wants(text: str) -> bool:
    parsed = _wish(text)
    if any(is_asked or _is_bare_lettering(quote, place, parsed[0]) for quote, place, is_asked in _quotes(parsed)):
        return True
    return _words("cue").search(_words("not_lettering").sub(" ", parsed[0])) is not None


def _wish(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the quotations, and the text with one character for each, after refused or replaced ones are dropped."""
    plain = without_facts(text[:_MAX_CHARACTERS].replace(_QUOTE, " ").replace(_DROPPED, " "))
    quotes: list[str] = []

    def put(match: re.Match[str]) -> str:
        quotes.append(match.group(0))
        return f" {_QUOTE} "

    marked = _QUOTED.sub(put, plain)
    marked = _words("replaced").sub(lambda match: match.group(0).replace(_QUOTE, _DROPPED), marked)
    refused = _words("refused").sub(lambda match: f" {_DROPPED * sum(map(match.group(0).count, _MARKS))} ", marked)
    return refused, tuple(quotes)


def _quotes(parsed: tuple[str, tuple[str, ...]]) -> Iterator[tuple[str, int, bool]]:
    """Yield each quotation that was not dropped: its words without marks, its place, and whether it is requested."""
    marked, quotes = parsed
    places = [place for place, sign in enumerate(marked) if sign in _MARKS]
    is_asked, end = False, 0
    for quote, place in zip(quotes, places, strict=True):
        before = marked[max(0, place - _NEAR_CHARACTERS) : place]
        # In a list, the cue word is only before the first member.
        is_next = bool(end) and _words("continues").fullmatch(marked[end:place]) is not None
        is_asked = is_asked if is_next else _is_asked(before, marked[place + 1 :])
        end = place + 1
        if marked[place] == _QUOTE:
            yield quote[1:-1].strip(), place, is_asked


def _is_asked(before: str, after: str) -> bool:
    near = _SENTENCE_END.split(before)[-1]
    then = _SENTENCE_END.split(after[:_NEAR_CHARACTERS])[0].partition(_QUOTE)[0]
    if _words("reference_after").match(then):
        return False
    if _words("cue_after").match(then):
        return True
    return _words("reference_before").search(near) is None and _words("cue_before").search(near) is not None


def _is_bare_lettering(quote: str, place: int, marked: str) -> bool:
    """Return whether a quotation without a cue word still looks like lettering: a “Good Morning” mug."""
    before, after = marked[max(0, place - _NEAR_CHARACTERS) : place], marked[place + 1 : place + _NEAR_CHARACTERS]
    if _words("reference_before").search(before) or _words("reference_after").match(after):
        return False
    is_ironic = quote.islower() and len(quote.split()) < 3
    return bool(_tokens(quote)) and not is_ironic


def _tokens(text: str) -> list[str]:
    """Return the normalised, case-folded words of the text; in a script without spaces each character is a word."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


_LONGEST_ITEM = 160
_SPACES = re.compile(r"\s+")
_EDGES = " \t\n.,;:!?…'\"“”‘’「」『』()[]，。；：！？、（）"


def traceable(quote: str, texts: Iterable[str]) -> bool:
    """Return whether one of the texts contains the quote; case, width, spaces and quotation marks are ignored."""
    wanted = _plain(quote)
    return bool(wanted) and any(wanted in _plain(text) for text in texts)


def checklist_of(claimed: Iterable[AskedItem], texts: Sequence[str]) -> tuple[AskedItem, ...]:
    """Return the checklist for a picture: the `claimed` items that the user's `texts` contain, without duplicates.

    `texts` are the user's messages, the newest first. Lettering that the newest one requests is always on the list.
    """
    items: dict[str, AskedItem] = {}
    lettering = {_plain(words): words for words in asked_lettering(texts[0])} if texts else {}
    for item in claimed:
        quote = _SPACES.sub(" ", item.quote).strip(_EDGES)
        plain = _plain(quote)
        if plain in lettering:
            continue
        if len(quote) <= _LONGEST_ITEM and traceable(quote, texts):
            items.setdefault(plain, AskedItem(quote=quote, kind=item.kind))
    texts_asked = [AskedItem(quote=words, kind=AskedKind.TEXT) for words in lettering.values()]
    return (*texts_asked, *items.values())[:MAX_CHECKS]


def matching(quote: str, items: Sequence[AskedItem]) -> int | None:
    """Return the index of the item that the quote matches, or None when it matches no item."""
    wanted, quotes = _plain(quote), [_plain(item.quote) for item in items]
    if wanted in quotes:
        return quotes.index(wanted)
    return next((place for place, one in enumerate(quotes) if one in wanted), None) if wanted else None


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", folded.translate(_NO_QUOTES)).strip(_EDGES)


_NO_QUOTES = str.maketrans("", "", '"“”‘’「」『』')
