"""The words that the sketch model knows: figures, places and moods, as wording sections; and its own sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent import locales, wording

FIGURES = "figures"
PLACES = "places"
MOODS = "moods"


def names(table: str) -> tuple[str, ...]:
    """Return the names of a table's rows."""
    return tuple(wording.section("en", table))


def find(table: str, text: str) -> str | None:
    """Return the name of the row whose word comes first in the text, or None."""
    hits = ((match.start(), name) for name in names(table) if (match := _words(table, name).search(text)))
    return min(hits, default=(0, None), key=lambda hit: hit[0])[1]


def find_all(table: str, text: str) -> tuple[str, ...]:
    """Return the names of all rows that the text mentions, in the table's order."""
    return tuple(name for name in names(table) if _words(table, name).search(text))


def is_known(text: str) -> bool:
    """Whether the painter has a shape for anything in the text."""
    return any(find(table, text) for table in (FIGURES, PLACES, MOODS))


def sentences(section: str, *, in_chinese: bool) -> Mapping[str, str]:
    """Return a section of the model's sentences (`agent/locales/sketch.*.toml`), by key."""
    found: Mapping[str, str] = locales.sentences("sketch", "zh-CN" if in_chinese else "en")[section]
    return found


def _words(table: str, name: str) -> re.Pattern[str]:
    return wording.pattern(f"{table}.{name}", flags=re.IGNORECASE)
