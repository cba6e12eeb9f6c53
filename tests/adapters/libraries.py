"""The style library of a home, and what it says of a match."""

from __future__ import annotations

from agent.storage.curated_styles import curated_descriptions, curated_styles
from agent.storage.style_values import MatchKind, StyleMatch
from agent.storage.styles import StyleLibrary

__all__ = ["MatchKind", "StyleLibrary", "StyleMatch", "curated_descriptions", "curated_styles"]
