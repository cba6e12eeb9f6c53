"""The paste at full size: the answer is resampled once, the feather is inside the mask, and nothing outside changes.

All work is done in bands of rows within the mask's box, so the cost depends on the mask and not on the picture.

The answer's colours are matched to the original's outside the mask, in three steps, each robust against the edit's own
drawing: a line per channel over everything outside; a smooth curve of 64 steps for gamma; and a membrane, which
extends the remaining difference in a narrow band around the mask inwards. The first two form a table for the 256
levels, the last a coarse field, so the answer is resampled only once, at full size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.imaging.masking.alignment import Bends, Matrix, usual_and_spread
from agent.imaging.masking.masks import box_of, smoothstep
from agent.imaging.masking.values import Box
from agent.pixels import (
    BACKDROP,
    LUMA,
    Bytes,
    Floats,
    Pixels,
    Raster,
    from_srgb,
    of_channels,
    shown_rgb,
    unweighed,
    weighed,
)

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
    """A table (256 levels by 3 channels), and a field to add after it, at a quarter of the work frame's size."""

    table: Floats
    field: Floats


def colour_correction(sent: Bytes, shown: Floats, outside: Bytes, comparable: Bytes) -> Correction:
    """Return the correction that makes `shown` (the aligned answer in the work frame) match `sent` outside the mask.

    `comparable` is 255 where the two can be compared: outside the mask and within the answer.
    """
    original = sent.astype(np.float32)
    alike = _alike(original, shown, comparable)
    table = np.repeat(np.arange(256, dtype=np.float32)[:, None], 3, axis=1)
    if (count := int(alike.sum())) >= _LEAST_PIXELS:
        # A sample of this size is as good as all pixels.
        every = max(1, count // _ENOUGH_PIXELS)
        wanted, got = original[alike][::every], shown[alike][::every]
        table = np.stack([_table(wanted[:, channel], got[:, channel]) for channel in range(3)], axis=1)
    toned = applied(table, shown)
    return Correction(table, _membrane(original - toned, outside, comparable))


def applied(table: Floats, values: Floats) -> Floats:
    """Return float levels mapped by the table, with linear interpolation between its rows."""
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
    # Smoothed, so that grain added by the model does not flatten the line.
    difference = cv2.GaussianBlur(of_channels(np.add, np.abs(original - shown)) / 3, (0, 0), 3)
    some = difference[where][::7]
    usual, spread = usual_and_spread(some)
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
        if len(chosen) >= 50:
            low, high = np.percentile(chosen, [10, 90])
            heights[step] = chosen[(chosen >= low) & (chosen <= high)].mean()
    # Rare levels take most of their value from their neighbours.
    trust = counts / (counts + 200.0)
    kernel = np.array([0.25, 1.0, 0.25])
    near = np.convolve(trust, kernel, "same")
    smooth = np.convolve(heights * trust, kernel, "same") / np.maximum(near, 1e-6) * np.minimum(1, near)
    centres = (np.arange(_CURVE_STEPS) + 0.5) * 256 / _CURVE_STEPS - 0.5
    curve = np.clip(np.interp(levels, centres, smooth), -_MOST_LEVELS, _MOST_LEVELS)
    return np.asarray(straight + curve, np.float32)


def _line(wanted: Floats, got: Floats) -> tuple[float, float]:
    slope, offset = 1.0, 0.0
    kept = np.ones(wanted.shape, np.bool_)
    for _ in range(3):
        one, other = wanted[kept].astype(np.float64), got[kept].astype(np.float64)
        # The slope is the ratio of the standard deviations: noise in the answer would flatten a least-squares line.
        slope = float(np.clip(one.std() / max(float(other.std()), 1e-3), *_SLOPES)) if one.std() > 2 else 1.0
        offset = float(one.mean() - slope * other.mean())
        rest = np.abs(wanted - (slope * got + offset))
        limit = max(3.0, 3 * 1.4826 * float(np.median(rest[kept])))
        kept = rest <= limit
        if int(kept.sum()) < _LEAST_PIXELS:
            break
    return slope, offset


def _membrane(difference: Floats, outside: Bytes, comparable: Bytes) -> Floats:
    height, width = outside.shape
    reach = cv2.distanceTransform(outside, cv2.DIST_L2, 5)
    band = (comparable > 0) & (reach >= _BAND_FROM_PX) & (reach <= _BAND_TO_PX)
    size = (max(1, width // _FIELD_STEP), max(1, height // _FIELD_STEP))
    if not band.any():
        return np.zeros((size[1], size[0], 3), np.float32)
    changed = cv2.GaussianBlur(of_channels(np.add, np.abs(difference)) / 3, (0, 0), 2)
    # The limit uses all comparable pixels, not the band: an edit that spills over its mask may fill the band.
    some = changed[comparable > 0][::7]
    usual, spread = usual_and_spread(some)
    weight = (band & (changed <= max(_ALIKE_LEVELS, usual + 3 * (1.4826 * spread)))).astype(np.float32)
    kept = np.clip(difference, -_MOST_LEVELS, _MOST_LEVELS) * weight[..., None]
    return _pulled_and_pushed(
        np.asarray(cv2.resize(kept, size, interpolation=cv2.INTER_AREA), np.float32),
        np.asarray(cv2.resize(weight, size, interpolation=cv2.INTER_AREA), np.float32),
    )


def _pulled_and_pushed(weighted: Floats, weight: Floats) -> Floats:
    """Return the weighted values spread smoothly over the whole field, in more detail where weights are dense."""
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
    # Where little was measured, the coarser level dominates.
    prior = 0.15
    return np.asarray((near + prior * spread) / (soft + prior)[..., None], np.float32)


_BAND_ROWS = 256
_LEAST_FEATHER_PX = 1.5
_FEATHER_OF_INRADIUS = 0.35
_SMALL_SIDE_PX = 1024
_CUBIC_REACH_PX = 4
# An answer that is finer than the picture by more than this factor is blurred before it is sampled.
_FINER = 1.15
# In transparent areas, a difference from what was sent begins to count as drawn at the first level, and counts fully
# at the second.
_DRAWN_FROM, _DRAWN_TO = 8.0, 32.0


@dataclass(frozen=True)
class PlacedAnswer:
    """An answer (8-bit RGB as received) and its alignment with a box of the picture, expressed in the work frame.

    `work_size` is the size of the work frame, width first.
    """

    answer: Bytes
    box: Box
    work_size: tuple[int, int]
    matrix: Matrix
    bends: Bends | None
    correction: Correction


def pasted(picture: Raster, mask: Bytes, placed_answer: PlacedAnswer, feather_px: float) -> Raster:
    """Return the picture with the answer inside the mask; where the mask is 0, the values are identical.

    `feather_px` is in pixels of the work frame; the feather is narrower in thin parts of the mask, and there is none
    where the mask meets the picture's edge.
    """
    pixels = picture.pixels.copy()
    area = box_of(mask).within(placed_answer.box)
    fade = _Fade(mask, area, feather_px * placed_answer.box.width / placed_answer.work_size[0])
    for band in _bands(area):
        weight = fade.weight(band)
        rows, columns = slice(band.top, band.bottom), slice(band.left, band.right)
        part = picture.pixels[rows, columns]
        mixed = _mixed(part, _sampled(placed_answer, band), weight, picture)
        pixels[rows, columns] = np.where(weight[..., None] > 0, mixed, part)
    return Raster(pixels, picture.profile)


def replaced(picture: Raster, mask: Bytes, other: Raster, feather_px: float) -> Raster:
    """Return the picture with `other` (same size, bit depth and profile) inside the mask; outside nothing changes.

    `feather_px` is in pixels of the picture; the feather is narrower in thin parts of the mask, as in `pasted`. Colours
    become grey in a grey picture.
    """
    pixels, area = picture.pixels.copy(), box_of(mask)
    fade = _Fade(mask, area, feather_px)
    for band in _bands(area):
        share = fade.weight(band)[..., None]
        rows, columns = slice(band.top, band.bottom), slice(band.left, band.right)
        before, after = picture.pixels[rows, columns], other.pixels[rows, columns]
        if picture.colours < other.colours:
            grey = np.rint(after[..., :3] @ LUMA)[..., None].astype(before.dtype)
            after = np.concatenate([grey, after[..., 3:]], axis=2)
        if picture.has_alpha:
            mixed = unweighed(weighed(before) * (1 - share) + weighed(after) * share, before.dtype)
        else:
            mixed = _stored(before * (1 - share) + after * share, before)
        pixels[rows, columns] = np.where(share >= 1, after, np.where(share > 0, mixed, before))
    return Raster(pixels, picture.profile)


def changed_outside(original: Raster, result: Raster, mask: Bytes) -> int:
    """Return the number of pixels outside the mask in which any channel differs; all, if shape or type differs."""
    if original.pixels.shape != result.pixels.shape or original.pixels.dtype != result.pixels.dtype:
        return int((mask == 0).sum())
    count = 0
    for top in range(0, original.height, _BAND_ROWS):
        rows = slice(top, top + _BAND_ROWS)
        differs = of_channels(np.logical_or, original.pixels[rows] != result.pixels[rows])
        count += int((differs & (mask[rows] == 0)).sum())
    return count


class _Fade:
    """The weight of the answer in each pixel: the feathered mask."""

    def __init__(self, mask: Bytes, area: Box, feather_px: float) -> None:
        self._mask = mask
        self._area = area
        self._feather_px = feather_px
        self._inradius = _local_inradius(mask, area, feather_px)

    def weight(self, band: Box) -> Floats:
        height, width = self._mask.shape
        margin = int(np.ceil(self._feather_px)) + 3
        around = band.grown(margin, margin).within(Box(0, 0, width, height))
        seen = self._mask[around.top : around.bottom, around.left : around.right]
        # The edge of the cut-out does not count as a border: at the picture's edge there is no feather.
        reach = cv2.distanceTransform((seen > 0).astype(np.uint8), cv2.DIST_L2, 5)
        top, left = band.top - around.top, band.left - around.left
        own = (slice(top, top + band.height), slice(left, left + band.width))
        # The thickness of the mask at the band's pixels is looked up on its small grid.
        rows, columns = self._inradius.shape
        x = (np.arange(band.left, band.right) - self._area.left + 0.5) * columns / self._area.width
        y = (np.arange(band.top, band.bottom) - self._area.top + 0.5) * rows / self._area.height
        down, across = np.clip(y.astype(int), 0, rows - 1), np.clip(x.astype(int), 0, columns - 1)
        inradius = self._inradius[down][:, across]
        feather = np.clip(_FEATHER_OF_INRADIUS * inradius, _LEAST_FEATHER_PX, self._feather_px)
        fade = smoothstep(np.asarray(reach[own] / feather, np.float32))
        return np.asarray(fade * (seen[own].astype(np.float32) / 255), np.float32)


def _local_inradius(mask: Bytes, area: Box, feather_px: float) -> Floats:
    """Return, on a small grid over the area, the local thickness of the mask, in pixels of the picture."""
    part = (mask[area.top : area.bottom, area.left : area.right] > 0).astype(np.uint8)
    factor = min(1.0, _SMALL_SIDE_PX / max(area.width, area.height))
    size = (max(1, round(area.width * factor)), max(1, round(area.height * factor)))
    small = cv2.resize(part, size, interpolation=cv2.INTER_NEAREST) if factor < 1 else part
    # Where the mask meets the picture's edge, it is treated as continuing; elsewhere it ends.
    height, width = mask.shape
    framed = np.asarray(cv2.copyMakeBorder(small, 1, 1, 1, 1, cv2.BORDER_REPLICATE), np.uint8)
    framed[:1] *= area.top == 0
    framed[-1:] *= area.bottom == height
    framed[:, :1] *= area.left == 0
    framed[:, -1:] *= area.right == width
    thick = cv2.distanceTransform(np.ascontiguousarray(framed), cv2.DIST_L2, 5)[1:-1, 1:-1]
    reach = max(1, round(3 * feather_px * factor))
    kernel = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
    return np.asarray(np.minimum(cv2.dilate(np.ascontiguousarray(thick), kernel), 1e6) / factor, np.float32)


def _bands(area: Box) -> Iterator[Box]:
    for top in range(area.top, area.bottom, _BAND_ROWS):
        yield Box(area.left, top, area.width, min(_BAND_ROWS, area.bottom - top))


def _sampled(placed_answer: PlacedAnswer, band: Box) -> Floats:
    """Return the answer's corrected colours (0 to 255) at the band's pixels of the picture."""
    box, (work_width, work_height) = placed_answer.box, placed_answer.work_size
    x = (np.arange(band.left, band.right, dtype=np.float32) - box.left + 0.5) * (work_width / box.width) - 0.5
    y = (np.arange(band.top, band.bottom, dtype=np.float32) - box.top + 0.5) * (work_height / box.height) - 0.5
    columns, rows = (np.ascontiguousarray(axis, np.float32) for axis in np.meshgrid(x, y))
    tint = _looked_up(placed_answer.correction.field, columns, rows, placed_answer.work_size)
    if placed_answer.bends is not None:
        bend = _looked_up(placed_answer.bends, columns, rows, placed_answer.work_size, cv2.INTER_CUBIC)
        columns, rows = columns + bend[..., 0], rows + bend[..., 1]
    matrix = placed_answer.matrix
    across = matrix[0, 0] * columns + matrix[0, 1] * rows + matrix[0, 2]
    down = matrix[1, 0] * columns + matrix[1, 1] * rows + matrix[1, 2]
    height, width = placed_answer.answer.shape[:2]
    across, down = (across + 0.5) * (width / work_width) - 0.5, (down + 0.5) * (height / work_height) - 0.5
    finer = min(width / box.width, height / box.height)
    return np.asarray(_resampled(placed_answer, across, down, finer) + tint, np.float32)


def _resampled(
    placed_answer: PlacedAnswer, across: NDArray[np.floating], down: NDArray[np.floating], finer: float
) -> Floats:
    height = placed_answer.answer.shape[0]
    sigma = 0.45 * finer if finer > _FINER else 0.0
    margin = _CUBIC_REACH_PX + int(np.ceil(4 * sigma))
    low, high = float(down.min()) - margin, float(down.max()) + margin + 1
    # Positions outside the answer are reflected at its edge, so the rows that are reflected are needed too.
    low, high = min(low, 2 * (height - 1) - high), max(high, -low)
    first = int(np.clip(np.floor(low), 0, max(height - 2, 0)))
    last = int(np.clip(np.ceil(high), first + 2, max(height, first + 2)))
    table = np.ascontiguousarray(placed_answer.correction.table[None], np.float32)
    toned = cv2.LUT(np.ascontiguousarray(placed_answer.answer[first:last]), table)
    if sigma:
        toned = cv2.GaussianBlur(toned, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    shown = cv2.remap(
        toned,
        across.astype(np.float32),
        (down - first).astype(np.float32),
        interpolation=cv2.INTER_CUBIC,
        # Where the mask meets the picture's edge, drift may lead slightly outside the answer. OpenCV 5.0 hangs when
        # it reflects a single row or column.
        borderMode=cv2.BORDER_REFLECT_101 if min(toned.shape[:2]) > 1 else cv2.BORDER_REPLICATE,
    )
    return np.asarray(shown, np.float32)


def _looked_up(
    field: Floats, columns: Floats, rows: Floats, size: tuple[int, int], way: int = cv2.INTER_LINEAR
) -> Floats:
    """Return a coarse field's values at positions of the work frame (`size`, width first), interpolated."""
    x = (columns + 0.5) * (field.shape[1] / size[0]) - 0.5
    y = (rows + 0.5) * (field.shape[0] / size[1]) - 0.5
    found = cv2.remap(
        field, x.astype(np.float32), y.astype(np.float32), interpolation=way, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(found, np.float32)


def _mixed(part: Pixels, sampled: Floats, weight: Floats, picture: Raster) -> Pixels:
    """Return pixels of the picture, in its own profile, blended with the answer (sRGB, 0 to 255)."""
    unit = picture.peak / 255
    share, colours = weight[..., None], picture.colours
    answer = np.clip(sampled, 0, 255)
    original = part[..., :colours].astype(np.float32) / unit
    if not picture.has_alpha:
        own = from_srgb(answer, picture.profile, colours)
        return _stored(np.asarray((original * (1 - share) + own * share) * unit, np.float32), part)
    before = part[..., -1:].astype(np.float32) / picture.peak
    inside = np.maximum(before, _drawn(part, sampled, picture.profile))
    # The crop that was sent showed transparent parts over the backdrop: remove the backdrop's share.
    drawn = np.clip((answer - (1 - inside) * BACKDROP) / np.maximum(inside, 1e-6), 0, 255)
    own = from_srgb(np.asarray(drawn, np.float32), picture.profile, colours)
    alpha = before * (1 - share) + inside * share
    mixed = (original * before * (1 - share) + own * inside * share) / np.maximum(alpha, 1e-6)
    colour = np.where(alpha > 0, np.minimum(mixed, 255), original)
    return _stored(np.concatenate([colour * unit, alpha * picture.peak], axis=2).astype(np.float32), part)


def _drawn(part: Pixels, sampled: Floats, profile: bytes | None) -> Floats:
    """Return how certainly the answer drew something in each pixel, 0 to 1; only this may make a pixel opaque."""
    difference = of_channels(np.maximum, np.abs(sampled - shown_rgb(part, profile)))
    smooth = cv2.GaussianBlur(np.asarray(difference, np.float32), (0, 0), 1.2)
    return smoothstep(np.asarray((smooth - _DRAWN_FROM) / (_DRAWN_TO - _DRAWN_FROM), np.float32))[..., None]


def _stored(values: Floats, like: Pixels) -> Pixels:
    stored: Pixels = np.asarray(np.clip(np.rint(values), 0, np.iinfo(like.dtype).max), like.dtype)
    return stored
