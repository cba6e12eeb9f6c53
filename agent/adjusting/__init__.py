"""Adjustments of a whole picture as exact pixel operations: light, colour, sharpness and frame, without any model.

What needs no pixels is here: the values, the reading and the naming of them. `applying` does the work and loads Pillow,
and numpy and OpenCV with the first tone.
"""

from __future__ import annotations

from agent.adjusting.adjustment import (
    Adjustment,
    AdjustmentChange,
    ChangeKind,
    CropBox,
    CropRatio,
    Flip,
    Resize,
    describe,
)
from agent.adjusting.reading import A_BIT, MUCH, PLAIN, FoundAdjustments, find_adjustments, read_adjustment

__all__ = [
    "A_BIT",
    "MUCH",
    "PLAIN",
    "Adjustment",
    "AdjustmentChange",
    "ChangeKind",
    "CropBox",
    "CropRatio",
    "Flip",
    "FoundAdjustments",
    "Resize",
    "describe",
    "find_adjustments",
    "read_adjustment",
]
