"""What an answer changed: how far beyond the mask, and whether inside it at all. Told, never written unasked."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.pixels import Bytes, Floats, of_channels

_LEAST_LEVELS = 10.0
_FAR_PX = 24
_SEARCHED_PX = 96
# Resampling alone differs by so little along strong edges.
_LEAST_SPILL_PX = 6
_MORE_PX = 2
_TOUCHING_PX = 2
# A difference is judged beside the local contrast and so many levels more.
_USUAL_LEVELS = 6.0
_LEAST_SURPRISE = 0.6
_TIMES_FAR = 1.25
_LEAST_SPILL_AREA = 60
_UNCHANGED_SHARE = 0.005


@dataclass(frozen=True)
class Reach:
    """Where an answer changed something.

    `spill_px` is by how many pixels of the work frame the mask would have to grow to take in all that changed, 0 for
    none; `is_unchanged` says that nothing changed inside the mask, `keeps_clear` that nothing did near its border.
    """

    spill_px: int
    is_unchanged: bool
    keeps_clear: bool


def reach_of(sent: Bytes, shown: Floats, mask: Bytes, comparable: Bytes, clear_px: float) -> Reach:
    """Return where `shown`, the aligned answer in the original's colours, differs from what was sent.

    `mask` is 255 inside, `comparable` 255 where the two can be compared. Of what differs beyond the mask only what
    touches it counts, at most 96 pixels away; near its border means within `clear_px` inside it.
    """
    reach = cv2.distanceTransform(np.where(mask > 0, 0, 255).astype(np.uint8), cv2.DIST_L2, 5)
    difference = _difference(sent, shown)
    surprise = difference / (_activity(sent) + _USUAL_LEVELS)
    where = comparable > 0
    far = surprise[where & (reach > _FAR_PX)][::3]
    limit = max(_LEAST_SURPRISE, _TIMES_FAR * float(np.percentile(far, 97)) if far.size else 0.0)
    differs = (surprise > limit) & (difference > _LEAST_LEVELS)
    is_unchanged = bool(where.any() and differs[mask > 0].mean() < _UNCHANGED_SHARE)
    depth = cv2.distanceTransform(np.where(mask > 0, 255, 0).astype(np.uint8), cv2.DIST_L2, 5)
    rim = differs[(mask > 0) & (depth <= clear_px)]
    keeps_clear = bool(where.any() and rim.size and rim.mean() < _UNCHANGED_SHARE)
    beyond = _touching(differs & where & (reach <= _SEARCHED_PX), mask)
    distances = reach[beyond & (mask == 0)]
    if distances.size < _LEAST_SPILL_AREA:
        return Reach(0, is_unchanged, keeps_clear)
    spill = int(np.ceil(np.percentile(distances, 97))) + _MORE_PX
    return Reach(spill if spill > _LEAST_SPILL_PX else 0, is_unchanged, keeps_clear)


def changed_area(sent: Bytes, shown: Floats, comparable: Bytes) -> Bytes:
    """Return 255 where two aligned pictures differ by more than redrawing explains, small specks left out."""
    difference = _difference(sent, shown)
    where = comparable > 0
    if not where.any():
        return np.full(comparable.shape, 255, np.uint8)
    usual = float(np.median(difference[where]))
    spread = 1.4826 * float(np.median(np.abs(difference[where] - usual)))
    differs = np.where((difference > max(_LEAST_LEVELS, usual + 6 * spread)) & where, 255, 0).astype(np.uint8)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))
    clean = cv2.morphologyEx(differs, cv2.MORPH_OPEN, kernel)
    return np.asarray(cv2.morphologyEx(clean, cv2.MORPH_CLOSE, kernel, iterations=2), np.uint8)


def _difference(sent: Bytes, shown: Floats) -> Floats:
    apart = of_channels(np.maximum, np.abs(sent.astype(np.float32) - shown))
    return np.asarray(cv2.GaussianBlur(apart, (0, 0), 2), np.float32)


def _activity(sent: Bytes) -> Floats:
    """Return the local contrast: redrawing differs more where there is more to draw."""
    grey = np.asarray(cv2.cvtColor(sent, cv2.COLOR_RGB2GRAY), np.float32)
    detail = grey - cv2.GaussianBlur(grey, (0, 0), 4)
    return np.sqrt(cv2.GaussianBlur(np.asarray(detail * detail, np.float32), (0, 0), 4))


def _touching(differs: NDArray[np.bool_], mask: Bytes) -> NDArray[np.bool_]:
    """Return what differs and hangs together with the mask."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * _TOUCHING_PX + 1, 2 * _TOUCHING_PX + 1))
    # Thin chains along edges are redrawing; what spilled has some body.
    body = cv2.morphologyEx((differs | (mask > 0)).astype(np.uint8), cv2.MORPH_OPEN, kernel)
    _, labels = cv2.connectedComponents(np.bitwise_or(body, mask > 0), connectivity=8)
    own = np.unique(labels[mask > 0])
    return np.asarray((body > 0) & np.isin(labels, own[own > 0]))
