"""Patterns to fill an area with: plain, stripes, dots and checks, as large as suits the area."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent.providers.sketch.operations import Fill, PatternKind

Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]

_REPEATS = 9
_LEAST_PERIOD_PX = 6.0
_DOT = 0.3


def pattern(fill: Fill, width: int, height: int) -> Bytes:
    """Return a rectangle (height, width, 3) of the pattern, its edges smooth; it repeats about nine times across."""
    period = max(_LEAST_PERIOD_PX, (width * height) ** 0.5 / _REPEATS)
    down, right = np.mgrid[0:height, 0:width].astype(np.float32)
    share = _share(fill.kind, right + 0.5, down + 0.5, period)[..., None]
    first, second = np.array(fill.colour, np.float32), np.array(fill.ground, np.float32)
    return np.rint(second + (first - second) * share).astype(np.uint8)


def _share(kind: PatternKind, right: Floats, down: Floats, period: float) -> Floats:
    """Return how much of the first colour each pixel takes, 0 to 1."""
    match kind:
        case PatternKind.STRIPES:
            return _band((right + down) / 2**0.5, period)
        case PatternKind.ACROSS:
            return _band(down, period)
        case PatternKind.UPRIGHT:
            return _band(right, period)
        case PatternKind.CHECKS:
            across, along = _band(right, 2 * period), _band(down, 2 * period)
            return np.asarray(across * along + (1 - across) * (1 - along), np.float32)
        case PatternKind.DOTS:
            return _dots(right, down, period)
        case PatternKind.PLAIN:
            return np.ones_like(right)


def _band(along: Floats, period: float) -> Floats:
    """Return 1 in one half of each period and 0 in the other, with one pixel between."""
    place = np.mod(along, period)
    edge = np.minimum(np.minimum(place, np.abs(period / 2 - place)), period - place)
    inside = place < period / 2
    return np.asarray(np.clip(np.where(inside, 0.5 + edge, 0.5 - edge), 0, 1), np.float32)


def _dots(right: Floats, down: Floats, period: float) -> Floats:
    """Return 1 in dots, every other row shifted by half a period."""
    row = np.floor(down / period)
    across = np.mod(right + np.mod(row, 2) * period / 2, period) - period / 2
    distance = np.hypot(across, np.mod(down, period) - period / 2)
    return np.asarray(np.clip(period * _DOT - distance + 0.5, 0, 1), np.float32)
