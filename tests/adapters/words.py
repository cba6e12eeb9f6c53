"""The words of the page, by the key that it has them under."""

from __future__ import annotations

from collections.abc import Mapping

from webui.words import load_words


def words_of(language: str) -> Mapping[str, str]:
    """Return what is said in a language by key, such as `plan.run`, with `{parameters}` to fill in."""
    return load_words(language).table
