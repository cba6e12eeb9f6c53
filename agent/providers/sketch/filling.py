"""Fill a hole in a picture with blocks from its surroundings, so that the removed content leaves no trace.

On a small copy, each block at the border gets its unknown pixels from the place that is most similar in its known ones
(Criminisi et al., Region Filling and Object Removal, 2004); the full picture then uses the same sources, so its grain
is kept. The same picture and hole always give the same pixels.
"""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.pixels import Flags, Floats

Places: TypeAlias = NDArray[np.intp]

# The limits for the hole, and for the whole copy on which blocks are matched, in pixels: one hole of this size takes
# about 0.2 s, many small ones up to 2 s.
_HOLE_PIXELS, _SEARCHED_PIXELS = 4000, 60_000
_BLOCK_PX = 15
_CONTEXT = 0.9
_LEAST_CONTEXT_PX = 48
_MOST_TONE = 28.0


def filled(pixels: Floats, hole: Flags) -> Floats:
    """Return the pixels (height, width, channels; 0 to 255) with the hole (height, width) filled from its surroundings.

    Pixels outside the hole stay. When no whole block is known, the colours of the border are interpolated into the
    hole; with nothing outside the hole, it gets the median colour.
    """
    if not hole.any():
        return pixels.copy()
    if hole.all():
        return np.broadcast_to(np.median(pixels, axis=(0, 1)), pixels.shape).copy()
    top, bottom, left, right = _surroundings(hole)
    place = np.s_[top:bottom, left:right]
    part, hole = np.ascontiguousarray(pixels[place]), np.ascontiguousarray(hole[place])
    factor = min(1.0, _HOLE_PIXELS / int(hole.sum()), _SEARCHED_PIXELS / hole.size) ** 0.5
    size = (max(1, round(hole.shape[0] * factor)), max(1, round(hole.shape[1] * factor)))
    source = _sources(*_shrunk(part, hole, size))
    result = pixels.copy()
    result[place] = _carried_in(part, hole) if source is None else _taken_over(part, hole, source)
    return result


def _surroundings(hole: Flags) -> tuple[int, int, int, int]:
    """Return the rows and columns of the hole with a margin, each as first index and end index."""
    limits: list[int] = []
    for axis in (1, 0):
        taken = np.flatnonzero(hole.any(axis=axis))
        first, last = int(taken[0]), int(taken[-1]) + 1
        room = max(_LEAST_CONTEXT_PX, round((last - first) * _CONTEXT))
        limits += [max(0, first - room), min(hole.shape[1 - axis], last + room)]
    return limits[0], limits[1], limits[2], limits[3]


def _shrunk(pixels: Floats, hole: Flags, size: tuple[int, int]) -> tuple[Floats, Flags]:
    """Return both at a smaller size; a pixel that is partly hole is hole, and no colour leaks out of the hole."""
    across = (size[1], size[0])
    share = cv2.resize(hole.astype(np.float32), across, interpolation=cv2.INTER_AREA)
    known = pixels * (~hole)[..., None]
    summed = cv2.resize(known, across, interpolation=cv2.INTER_AREA).reshape(*size, -1)
    mean = summed / np.maximum(1e-3, 1 - share)[..., None]
    return np.asarray(mean, np.float32), np.asarray(share > 1e-4, np.bool_)


def _sources(pixels: Floats, hole: Flags) -> Places | None:
    """Return each pixel's source as a flat index; None where no whole block is known."""
    side = min(_BLOCK_PX, *hole.shape)
    is_broken = cv2.matchTemplate(hole.astype(np.float32), np.ones((side, side), np.float32), cv2.TM_CCORR) > 0.5
    if is_broken.all():
        return None
    height, width = hole.shape
    pixels, known = pixels.copy(), ~hole
    source = np.arange(hole.size).reshape(hole.shape)
    while not known.all():
        share = cv2.blur(known.astype(np.float32), (side, side))
        first = int(np.argmax(np.where(known, -1, share)))
        top = min(max(0, first // width - side // 2), height - side)
        left = min(max(0, first % width - side // 2), width - side)
        block = np.s_[top : top + side, left : left + side]
        mask = np.repeat(known[block][..., None], pixels.shape[2], axis=2).astype(np.float32)
        unlike = cv2.matchTemplate(pixels, pixels[block], cv2.TM_SQDIFF, mask=mask)
        row, column = divmod(int(np.argmin(np.where(is_broken, np.inf, unlike))), unlike.shape[1])
        there, missing = np.s_[row : row + side, column : column + side], ~known[block]
        pixels[block][missing], source[block][missing] = pixels[there][missing], source[there][missing]
        known[block] = True
    return source


def _spread(source: Places, size: tuple[int, int]) -> Places:
    """Return the sources at a larger size; each pixel keeps its offset within the enlarged one."""
    (rows, columns), (height, width) = source.shape, size
    row, column = np.arange(height) * rows // height, np.arange(width) * columns // width
    coarse = source[row[:, None], column[None, :]]
    down = np.rint((coarse // columns - row[:, None]) * (height / rows)).astype(np.intp)
    right = np.rint((coarse % columns - column[None, :]) * (width / columns)).astype(np.intp)
    there = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
    return np.asarray(there * width + np.clip(np.arange(width)[None, :] + right, 0, width - 1), np.intp)


def _taken_over(pixels: Floats, hole: Flags, small: Places) -> Floats:
    """Return the full picture with the hole filled from the small copy's sources, seams crossfaded and toned."""
    height, width = hole.shape
    source = _spread(small, (height, width))
    down = (source // width - np.arange(height)[:, None]).astype(np.float32)
    right = (source % width - np.arange(width)[None, :]).astype(np.float32)
    scale = max(1, round(height / small.shape[0]))
    known = _carried_in(pixels, hole)
    rows, columns = np.nonzero(hole)
    total = np.zeros((rows.size, pixels.shape[2]), np.float32)
    weights = np.zeros(rows.size, np.float32)
    for above in (-scale, 0, scale):
        for before in (-scale, 0, scale):
            near = np.clip(rows + above, 0, height - 1), np.clip(columns + before, 0, width - 1)
            there = (rows + down[near]).astype(np.intp), (columns + right[near]).astype(np.intp)
            inside = (there[0] >= 0) & (there[0] < height) & (there[1] >= 0) & (there[1] < width)
            place = np.clip(there[0], 0, height - 1), np.clip(there[1], 0, width - 1)
            usable = inside & ~hole[place]
            weight = usable * np.float32(1.0 if above or before else 2.0)
            total += known[place] * weight[:, None]
            weights += weight
    painted = known.copy()
    sure = weights > 0
    painted[rows[sure], columns[sure]] = total[sure] / weights[sure][:, None]
    return _toned(pixels, hole, painted, source)


def _toned(pixels: Floats, hole: Flags, painted: Floats, source: Places) -> Floats:
    """Return the painted picture with the border's tones interpolated into it, so that no edge shows."""
    height, width = hole.shape
    reach = max(2, round(max(height, width) / 150))
    wide = cv2.dilate(hole.astype(np.uint8), np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)) > 0
    rim = wide & ~hole
    copied = pixels.reshape(height * width, -1)[source]
    difference = np.where(rim[..., None], pixels - copied, np.float32(0))
    np.clip(difference, -_MOST_TONE, _MOST_TONE, out=difference)
    tone = _membrane(difference, rim.astype(np.float32))
    return np.where(hole[..., None], np.clip(painted + tone, 0, 255), pixels)


def _membrane(values: Floats, weights: Floats) -> Floats:
    """Return the values smoothly interpolated to places without any, by halving the size and filling on the way up."""
    height, width = weights.shape
    if min(height, width) <= 2:
        mean = (values * weights[..., None]).sum((0, 1)) / max(1e-6, float(weights.sum()))
        return np.broadcast_to(mean, values.shape).astype(np.float32)
    half = ((width + 1) // 2, (height + 1) // 2)
    less = cv2.resize(weights, half, interpolation=cv2.INTER_AREA)
    summed = cv2.resize(values * weights[..., None], half, interpolation=cv2.INTER_AREA)
    small = summed.reshape(half[1], half[0], -1) / np.maximum(less, 1e-6)[..., None]
    coarse = _membrane(np.asarray(small, np.float32), np.minimum(1, less * 4).astype(np.float32))
    wide = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR).reshape(values.shape)
    share = np.minimum(1, weights)[..., None]
    return np.asarray(values * share + wide * (1 - share), np.float32)


def _carried_in(pixels: Floats, hole: Flags) -> Floats:
    """Return the picture with the colours of the border smoothly interpolated into the hole."""
    known = np.where(hole[..., None], np.float32(0), pixels)
    field = _membrane(known, (~hole).astype(np.float32))
    return np.where(hole[..., None], field, pixels)
