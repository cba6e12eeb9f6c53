"""The curated styles."""

from __future__ import annotations

from agent.storage.curated_styles import curated_styles

__all__ = ["curated_styles"]
