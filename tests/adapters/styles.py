"""The curated styles, what the library of a home says of a match, and pictures drawn in a style."""

from __future__ import annotations

from agent import MatchKind, StyleLibrary, StyleMatch
from agent.storage.curated_styles import curated_descriptions, curated_looks, curated_styles
from agent.style_rendering import Border, StyleLook, Technique, render_in_style
