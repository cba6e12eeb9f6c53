"""Adjustments of a whole picture as exact pixel operations: light, colour, sharpness and frame, without any model.

This package exports everything that needs no pixels: the values, their parsing and their descriptions. The module
`applying` changes the pixels; it imports Pillow and numpy, and OpenCV only when it is needed.
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
