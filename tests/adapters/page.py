"""What the page asks Python for, and the sentences that its panel says for the person."""

from __future__ import annotations

from webui.features.all import FEATURES
from webui.features.viewer.actions import PanelAmounts, PanelPress, amounts_sentence, pressed_sentence


def actions() -> list[str]:
    """Return the names of all actions."""
    return [f"{feature.name}.{action}" for feature in FEATURES for action in feature.actions]
