"""The answer's colours brought back to the original's, learnt outside the mask: line, curve, then what is left nearby.

Three steps, each robust against what the edit drew: a line per channel over everything outside, a smooth curve of 64
steps for gamma, and a membrane, the difference that remains in a narrow band round the mask carried inwards. The first
two are a table for the 256 levels, the last a coarse field; so the answer is resampled only once, at full size.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.pixels import Bytes, Floats, of_channels

_BAND_FROM_PX, _BAND_TO_PX = 2, 16
_SLOPES = (0.75, 1.35)
_CURVE_STEPS = 64
_MOST_LEVELS = 40.0
_LEAST_PIXELS = 500
_ALIKE_LEVELS = 6.0
_ENOUGH_PIXELS = 100_000
_FIELD_STEP = 4
_FINE_STEPS = 64


@dataclass(frozen=True)
class Correction:
    """A table (256 levels by 3 channels) and a field to add after it, a quarter of the work frame's size."""

    table: Floats
    field: Floats


def correction(sent: Bytes, shown: Floats, outside: Bytes, comparable: Bytes) -> Correction:
    """Return what makes `shown` (the aligned answer in the work frame) match `sent` outside the mask.

    `comparable` is 255 where the two can be compared: outside the mask and within the answer.
    """
    original = sent.astype(np.float32)
    alike = _alike(original, shown, comparable)
    table = np.repeat(np.arange(256, dtype=np.float32)[:, None], 3, axis=1)
    if (count := int(alike.sum())) >= _LEAST_PIXELS:
        # So many say as much as all.
        every = max(1, count // _ENOUGH_PIXELS)
        wanted, got = original[alike][::every], shown[alike][::every]
        table = np.stack([_table(wanted[:, channel], got[:, channel]) for channel in range(3)], axis=1)
    toned = applied(table, shown)
    return Correction(table, _membrane(original - toned, outside, comparable))


def applied(table: Floats, values: Floats) -> Floats:
    """Return float levels through the table, between its rows by a line."""
    fine = np.arange(255 * _FINE_STEPS + 1, dtype=np.float32) / _FINE_STEPS
    places = (np.clip(values, 0, 255) * _FINE_STEPS + 0.5).astype(np.uint16)
    toned = np.empty(values.shape, np.float32)
    for channel in range(3):
        levels = np.interp(fine, np.arange(256), table[:, channel]).astype(np.float32)
        np.take(levels, places[..., channel], out=toned[..., channel])
    return toned


def _alike(original: Floats, shown: Floats, comparable: Bytes) -> NDArray[np.bool_]:
    where = comparable > 0
    if not where.any():
        return where
    # Smoothed, so that invented grain does not flatten the line.
    difference = cv2.GaussianBlur(of_channels(np.add, np.abs(original - shown)) / 3, (0, 0), 3)
    some = difference[where][::7]
    usual = float(np.median(some))
    spread = float(np.median(np.abs(some - usual)))
    return np.asarray(where & (difference <= usual + 4 * max(spread, 1.0)))


def _table(wanted: Floats, got: Floats) -> Floats:
    slope, offset = _line(wanted, got)
    levels = np.arange(256, dtype=np.float32)
    straight = slope * levels + offset
    rest = wanted - (slope * got + offset)
    steps = np.clip((got / 256 * _CURVE_STEPS).astype(np.int32), 0, _CURVE_STEPS - 1)
    heights, counts = np.zeros(_CURVE_STEPS), np.zeros(_CURVE_STEPS)
    for step in range(_CURVE_STEPS):
        chosen = rest[steps == step]
        counts[step] = len(chosen)
        heights[step] = _trimmed_mean(chosen) if len(chosen) >= 50 else 0.0
    # Levels that hardly occur lean on their neighbours.
    trust = counts / (counts + 200.0)
    kernel = np.array([0.25, 1.0, 0.25])
    smooth = np.convolve(heights * trust, kernel, "same") / np.maximum(np.convolve(trust, kernel, "same"), 1e-6)
    smooth *= np.minimum(1, np.convolve(trust, kernel, "same"))
    centres = (np.arange(_CURVE_STEPS) + 0.5) * 256 / _CURVE_STEPS - 0.5
    curve = np.clip(np.interp(levels, centres, smooth), -_MOST_LEVELS, _MOST_LEVELS)
    return np.asarray(straight + curve, np.float32)


def _line(wanted: Floats, got: Floats) -> tuple[float, float]:
    slope, offset = 1.0, 0.0
    kept = np.ones(wanted.shape, np.bool_)
    for _ in range(3):
        one, other = wanted[kept].astype(np.float64), got[kept].astype(np.float64)
        # By the ratio of the spreads: noise in the answer would flatten a least-squares line.
        slope = float(np.clip(one.std() / max(float(other.std()), 1e-3), *_SLOPES)) if one.std() > 2 else 1.0
        offset = float(one.mean() - slope * other.mean())
        rest = np.abs(wanted - (slope * got + offset))
        limit = max(3.0, 3 * 1.4826 * float(np.median(rest[kept])))
        kept = rest <= limit
        if int(kept.sum()) < _LEAST_PIXELS:
            break
    return slope, offset


def _trimmed_mean(values: Floats) -> float:
    low, high = np.percentile(values, [10, 90])
    return float(values[(values >= low) & (values <= high)].mean())


def _membrane(difference: Floats, outside: Bytes, comparable: Bytes) -> Floats:
    height, width = outside.shape
    reach = cv2.distanceTransform(outside, cv2.DIST_L2, 5)
    band = (comparable > 0) & (reach >= _BAND_FROM_PX) & (reach <= _BAND_TO_PX)
    size = (max(1, width // _FIELD_STEP), max(1, height // _FIELD_STEP))
    if not band.any():
        return np.zeros((size[1], size[0], 3), np.float32)
    changed = cv2.GaussianBlur(of_channels(np.add, np.abs(difference)) / 3, (0, 0), 2)
    # By what is usual everywhere, not in the band: an edit that runs over its mask may fill the band.
    some = changed[comparable > 0][::7]
    usual = float(np.median(some))
    spread = 1.4826 * float(np.median(np.abs(some - usual)))
    weight = (band & (changed <= max(_ALIKE_LEVELS, usual + 3 * spread))).astype(np.float32)
    kept = np.clip(difference, -_MOST_LEVELS, _MOST_LEVELS) * weight[..., None]
    return _pulled_and_pushed(
        np.asarray(cv2.resize(kept, size, interpolation=cv2.INTER_AREA), np.float32),
        np.asarray(cv2.resize(weight, size, interpolation=cv2.INTER_AREA), np.float32),
    )


def _pulled_and_pushed(weighted: Floats, weight: Floats) -> Floats:
    """Return the weighted values spread smoothly over everything, finer where there are more of them."""
    height, width = weight.shape
    if min(height, width) <= 2:
        mean = weighted.sum(axis=(0, 1)) / max(float(weight.sum()), 1e-6)
        return np.broadcast_to(mean, weighted.shape).astype(np.float32)
    size = ((width + 1) // 2, (height + 1) // 2)
    coarse = _pulled_and_pushed(
        np.asarray(cv2.resize(weighted, size, interpolation=cv2.INTER_AREA), np.float32),
        np.asarray(cv2.resize(weight, size, interpolation=cv2.INTER_AREA), np.float32),
    )
    spread = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
    soft = cv2.GaussianBlur(weight, (0, 0), 1.5)
    near = cv2.GaussianBlur(weighted, (0, 0), 1.5)
    # Where little was measured the coarser level speaks.
    prior = 0.15
    return np.asarray((near + prior * spread) / (soft + prior)[..., None], np.float32)
