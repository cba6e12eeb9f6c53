"""The style library of a home, and what it says of a match."""

from __future__ import annotations

from agent import MatchKind, StyleLibrary, StyleMatch
from agent.storage.curated_styles import curated_descriptions, curated_styles
