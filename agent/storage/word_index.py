"""Prepare text for the full-text tables, and build queries to them. Pure functions.

SQLite's tokenizer finds words between spaces. Chinese and Japanese have none, so they are indexed as pairs of
neighbouring characters, in order, and again as single characters: that finds words of one or two characters, and longer
ones as a phrase of pairs, without false matches.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_MAX_QUERY_CHARACTERS = 200
_MAX_QUERY_WORDS = 16
_BEFORE, _AFTER = 30, 90


class Excerpt(NamedTuple):
    """A piece of a text, and the start and end of each matched word in it, in order."""

    text: str
    marks: tuple[tuple[int, int], ...]


def words_of(text: str) -> str:
    """Return the text as indexed in a full-text table: `folded` words, separated by spaces."""
    words: list[str] = []
    letters: dict[str, None] = {}
    for run in _RUN.findall(folded(text)):
        if _IS_UNSPACED.match(run):
            words += _pairs(run)
            letters.update(dict.fromkeys(run))
        else:
            words.append(run)
    return " ".join((*words, *letters))


def match_query(query: str) -> str | None:
    """Return the MATCH expression for a full-text table: every word of the query, the last one as a prefix.

    Query syntax in the user's text has no effect. None when there is no word to search for.
    """
    runs = _query_runs(query)
    return " AND ".join(_phrase(run, is_last=place == len(runs)) for place, run in enumerate(runs, 1)) or None


def folded(text: str) -> str:
    """Return the text in the form in which words are compared: NFKC and case-folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def found_in(text: str, query: str) -> int:
    """Return how many words of the query the text contains."""
    plain = _plain(text)
    return sum(bool(pattern.search(plain)) for pattern in _patterns(query))


def excerpt_of(text: str, query: str) -> Excerpt:
    """Return the piece of the text around the first match of the query, or its beginning without a match."""
    plain, places = _plain_with_places(text)
    spans = sorted(
        (places[match.start()], places[match.end() - 1] + 1)
        for pattern in _patterns(query)
        for match in pattern.finditer(plain)
    )
    start, end = _cut(text, spans[0][0] if spans else 0)
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    # Each replaced character keeps its width, so that the marks stay right.
    piece = re.sub(r"[\s\0]", " ", text[start:end])
    shift = len(head) - start
    return Excerpt(f"{head}{piece}{tail}", _joined([(at + shift, to + shift) for at, to in spans if to <= end]))


def _cut(text: str, first: int) -> tuple[int, int]:
    start = max(0, first - _BEFORE)
    if start:
        gap = text.find(" ", start, first)
        start = gap + 1 if gap >= 0 else start
    end = min(len(text), first + _AFTER)
    if end < len(text):
        gap = text.rfind(" ", first + _AFTER // 2, end)
        end = gap if gap >= 0 else end
    return start, end


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def _query_runs(query: str) -> list[str]:
    return _RUN.findall(folded(query[:_MAX_QUERY_CHARACTERS]))[:_MAX_QUERY_WORDS]


def _phrase(run: str, *, is_last: bool) -> str:
    if _IS_UNSPACED.match(run):
        return f'"{" ".join(_pairs(run) or [run])}"'
    return f'"{run}" *' if is_last else f'"{run}"'


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)]


@lru_cache(maxsize=64)
def _patterns(query: str) -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each word of the query in a plain text, as the tables' tokenizer would match it."""
    runs = _query_runs(query)
    patterns = []
    for place, run in enumerate(runs, 1):
        plain = re.escape(_plain(run))
        if not _IS_UNSPACED.match(run):
            plain = rf"(?<![^\W_{_UNSPACED}]){plain}"
            plain += "" if place == len(runs) else rf"(?![^\W_{_UNSPACED}])"
        patterns.append(re.compile(plain))
    return tuple(patterns)


def _plain(text: str) -> str:
    return text.lower() if text.isascii() else "".join(map(_plain_letter, text))


def _plain_with_places(text: str) -> tuple[str, list[int] | range]:
    """Return the plain text, and for each of its letters its position in the original text."""
    if text.isascii():
        return text.lower(), range(len(text))
    letters = [_plain_letter(letter) for letter in text]
    return "".join(letters), [place for place, letter in enumerate(letters) for _ in letter]


@lru_cache(maxsize=4096)
def _plain_letter(letter: str) -> str:
    """Return a letter in its compared form, without the marks that the tables' tokenizer removes too."""
    plain = folded(letter)
    if _LETTER_OR_DIGIT.match(plain) and not _IS_UNSPACED.match(plain):
        return "".join(one for one in unicodedata.normalize("NFD", plain) if not unicodedata.combining(one)) or plain
    return "" if unicodedata.combining(letter) else plain
