"""The curated styles."""

from __future__ import annotations

from agent.storage.curated_styles import curated_looks, curated_styles
from agent.style_rendering import Border, StyleLook, Technique, render_in_style
