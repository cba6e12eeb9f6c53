"""The looks of the style library as the sketch model asks for them: neither of the two knows the other."""

from __future__ import annotations

from agent.providers.sketch.restyling import FoundLook
from agent.storage.styles import curated_looks, find_curated


def find_look(text: str) -> FoundLook | None:
    """Return how the style that a request asks for is drawn, None when it asks for none. It blocks."""
    found = find_curated(text)
    if found is None:
        return None
    style, words = found
    return FoundLook(style.name.en, style.name.zh, curated_looks()[style.id], words)
