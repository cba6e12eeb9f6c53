"""Adjustments of a whole picture as exact pixel operations: light, colour, sharpness and frame, without any model."""

from __future__ import annotations

from agent.adjusting.adjustment import Adjustment, CropBox, CropRatio, Flip
from agent.adjusting.applying import Adjusted, adjusted, apply_adjustment, eight_bits, encoded, preview
from agent.adjusting.describing import Change, ChangeKind, describe
from agent.adjusting.opening import Opened, open_picture
from agent.adjusting.phrases import A_BIT, MUCH, PLAIN
from agent.adjusting.reading import read_adjustment

__all__ = [
    "A_BIT",
    "MUCH",
    "PLAIN",
    "Adjusted",
    "Adjustment",
    "Change",
    "ChangeKind",
    "CropBox",
    "CropRatio",
    "Flip",
    "Opened",
    "adjusted",
    "apply_adjustment",
    "describe",
    "eight_bits",
    "encoded",
    "open_picture",
    "preview",
    "read_adjustment",
]
