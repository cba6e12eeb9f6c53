"""What the page asks Python for."""

from __future__ import annotations

from webui.features.all import FEATURES

__all__ = ["actions"]


def actions() -> list[str]:
    """Return the names of all actions but those that anybody may ask for, also without our cookie."""
    every = ((f"{of.name}.{name}", action) for of in FEATURES for name, action in of.actions.items())
    return [name for name, action in every if not action.is_for_anybody]
