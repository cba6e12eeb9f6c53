"""Two texts held against each other word by word, or sign by sign where a language writes no spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import escape
from typing import Literal

from markupsafe import Markup

Kind = Literal["same", "added", "removed"]
Piece = tuple[Kind, str]
# Texts that repeat themselves take the comparison seconds beyond it; such long ones are shown as wholly new.
_MOST_PAIRS = 400_000

# A word, a sign of Chinese or a mark, each with the space before it.
_TOKEN = re.compile(r"\s*(?:[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_]+(?:['’_-][^\W_]+)*|\S)")


def word_diff(before: str, after: str) -> list[Piece]:
    """Return the pieces in reading order, what was removed before what stands in its place.

    All but the removed, joined, are `after`; all but the added are `before`, save for its spaces.
    """
    old, new = _TOKEN.findall(before.strip()), _TOKEN.findall(after.strip())
    pieces: list[Piece] = []
    for removed, added, same in _changes(old, new):
        told: list[Piece] = [("removed", "".join(removed)), ("added", "".join(added)), ("same", "".join(same))]
        pieces += [(kind, text) for kind, text in told if text]
    return pieces


def diff_html(pieces: Sequence[Piece]) -> Markup:
    """Return the pieces as HTML: what was added as <ins>, what was removed as <del>."""
    marks = {"added": "ins", "removed": "del"}
    told = []
    for kind, text in pieces:
        # The space before a word belongs to no mark, which would underline it.
        space, words = text[: len(text) - len(text.lstrip())], escape(text.lstrip())
        told.append(space + (f"<{marks[kind]}>{words}</{marks[kind]}>" if kind in marks else words))
    return Markup("".join(told))  # noqa: S704  its texts are escaped


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Yield what was removed, what was added, and what is the same after it.

    A short word that two changes happen to share is changed with them: torn apart, a phrase cannot be read.
    """
    plain = [token.strip() for token in old], [token.strip() for token in new]
    if len(old) * len(new) > _MOST_PAIRS:
        yield old, new, []
        return
    steps = SequenceMatcher(None, *plain, autojunk=False).get_opcodes()
    removed: list[str] = []
    added: list[str] = []
    for at, (kind, first, last, start, end) in enumerate(steps):
        around = {step[0] for step in (*steps[max(0, at - 1) : at], *steps[at + 1 : at + 2])}
        is_torn = 0 < at < len(steps) - 1 and around != {"insert"} and _is_scrap(new[start:end])
        if kind == "equal" and not is_torn:
            yield removed, added, new[start:end]
            removed, added = [], []
        else:
            removed, added = removed + old[first:last], added + new[start:end]
    yield removed, added, []


def _is_scrap(tokens: Sequence[str]) -> bool:
    words = [token for token in tokens if token.strip().isalnum()]
    return len(tokens) <= 2 and len(words) <= 1 and sum(len(word.strip()) for word in words) <= 3
