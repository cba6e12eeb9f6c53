"""The built-in model that needs no key: it understands plain wishes, edits pictures and paints sketches."""

from __future__ import annotations

from agent.providers.sketch.provider import SketchProvider

__all__ = ["SketchProvider"]
