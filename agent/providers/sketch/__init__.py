"""The built-in model without a key: it understands simple requests, edits pictures and paints sketches."""

from __future__ import annotations

from agent.providers.sketch.provider import SketchProvider

__all__ = ["SketchProvider"]
