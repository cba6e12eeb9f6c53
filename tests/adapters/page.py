"""What the page asks Python for."""

from __future__ import annotations

from webui.features.all import FEATURES

__all__ = ["actions"]


def actions() -> list[str]:
    """Return the names of all actions."""
    return [f"{feature.name}.{action}" for feature in FEATURES for action in feature.actions]
