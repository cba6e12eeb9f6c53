"""Fills a hole in a picture with patches of what is around it, so that nothing tells that something was there.

Patches are matched from coarse to fine (Wexler et al., Space-Time Completion of Video, 2007; Barnes et al.,
PatchMatch, 2009), on a small copy; the full picture then takes over where each pixel comes from, so its own grain is
kept. The same picture and hole always give the same pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]

# Pixels of the hole in the copy on which patches are matched: more take longer than a second.
_WORK_PIXELS = 9000
_COARSEST_PIXELS = 60
# A level is no smaller: patches need room beside the hole.
_LEAST_SIDE_PX = 24
_REACH = 3
_ROUNDS = ((6, 5), (4, 4), (2, 3), (2, 2))
_CONTEXT = 0.9
_LEAST_CONTEXT_PX = 48
_TRUST = 1.2
_MOST_TONE = 28.0
_SEED = 20


@dataclass(frozen=True)
class _Level:
    """One size of the picture. `source` is for each pixel the flat place of the pixel it looks like."""

    pixels: Floats
    hole: Flags
    allowed: Flags
    source: Places


def filled(pixels: Floats, hole: Flags) -> Floats:
    """Return the pixels (height, width, channels; 0 to 255) with the hole (height, width) filled from around it.

    What is outside of the hole stays. With nothing outside, or a picture too small for patches, the colours of the
    border are carried in, or the middle colour of all is laid over it.
    """
    if not hole.any():
        return pixels.copy()
    if hole.all():
        return np.broadcast_to(np.median(pixels, axis=(0, 1)), pixels.shape).copy()
    top, bottom, left, right = _surroundings(hole)
    result = pixels.copy()
    result[top:bottom, left:right] = _filled_part(
        np.ascontiguousarray(pixels[top:bottom, left:right]), np.ascontiguousarray(hole[top:bottom, left:right])
    )
    return result


def _surroundings(hole: Flags) -> tuple[int, int, int, int]:
    """Return the rows and columns of the hole with room around them, each as its first and the one after its last."""
    limits: list[int] = []
    for axis in (1, 0):
        taken = np.flatnonzero(hole.any(axis=axis))
        first, last = int(taken[0]), int(taken[-1]) + 1
        room = max(_LEAST_CONTEXT_PX, round((last - first) * _CONTEXT))
        limits += [max(0, first - room), min(hole.shape[1 - axis], last + room)]
    return limits[0], limits[1], limits[2], limits[3]


def _filled_part(pixels: Floats, hole: Flags) -> Floats:
    chance = np.random.default_rng(_SEED)
    level: _Level | None = None
    for number, size in enumerate(_sizes(hole)):
        found = _begun(level, pixels, hole, size, chance)
        if found is None:
            continue
        level = found
        repeats, steps = _ROUNDS[min(number, len(_ROUNDS) - 1)]
        for _ in range(repeats):
            level = _voted(_matched(level, steps, chance))
    return _taken_over(pixels, hole, level) if level else _carried_in(pixels, hole)


def _sizes(hole: Flags) -> list[tuple[int, int]]:
    """Return the sizes (height, width) to work at, coarse to fine, each twice the one before."""
    height, width = hole.shape
    count = int(hole.sum())
    finest = min(1.0, (_WORK_PIXELS / count) ** 0.5)
    by_hole = math.log(count * finest**2 / _COARSEST_PIXELS, 4)
    by_side = math.log2(min(height, width) * finest / _LEAST_SIDE_PX)
    halvings = max(0, math.floor(min(by_hole, by_side)))
    factors = (finest / 2**step for step in range(halvings, -1, -1))
    return [(max(1, round(height * factor)), max(1, round(width * factor))) for factor in factors]


def _shrunk(pixels: Floats, hole: Flags, size: tuple[int, int]) -> tuple[Floats, Flags]:
    """Return both at a size; a pixel of which any part is hole is hole, and no colour of the hole reaches another."""
    across = (size[1], size[0])
    share = cv2.resize(hole.astype(np.float32), across, interpolation=cv2.INTER_AREA)
    known = pixels * (~hole)[..., None]
    summed = cv2.resize(known, across, interpolation=cv2.INTER_AREA).reshape(*size, -1)
    mean = summed / np.maximum(1e-3, 1 - share)[..., None]
    return np.asarray(mean, np.float32), np.asarray(share > 1e-4, np.bool_)


def _allowed(hole: Flags) -> Flags:
    """Return where a whole patch is known and within the picture."""
    side = 2 * _REACH + 1
    near = cv2.dilate(hole.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
    allowed = np.zeros_like(hole)
    inner = slice(_REACH, -_REACH)
    allowed[inner, inner] = ~near[inner, inner]
    return allowed


def _begun(
    above: _Level | None, pixels: Floats, hole: Flags, size: tuple[int, int], chance: np.random.Generator
) -> _Level | None:
    """Return a level: each pixel looks like what the pixel above it looked like; the first are chosen by chance.

    None where little is known, so that no whole patch of it is left at this size.
    """
    small, small_hole = _shrunk(pixels, hole, size)
    allowed = _allowed(small_hole)
    places = np.flatnonzero(allowed)
    if not places.size:
        return None
    if above is None:
        small = _carried_in(small, small_hole)
        return _Level(small, small_hole, allowed, chance.choice(places, small_hole.shape))
    source = _spread(above, size)
    # A rounded place may fall beside what is allowed: such a pixel begins anywhere.
    astray = ~allowed.ravel()[source]
    source[astray] = places[(np.flatnonzero(astray.ravel()) * 7919) % places.size]
    small[small_hole] = small.reshape(-1, small.shape[2])[source[small_hole]]
    return _Level(small, small_hole, allowed, source)


def _spread(level: _Level, size: tuple[int, int]) -> Places:
    """Return the sources of a level at a larger size, each pixel keeping its own place within the larger one."""
    (rows, columns), (height, width) = level.hole.shape, size
    row, column = np.arange(height) * rows // height, np.arange(width) * columns // width
    coarse = level.source[row[:, None], column[None, :]]
    down = np.rint((coarse // columns - row[:, None]) * (height / rows)).astype(np.intp)
    right = np.rint((coarse % columns - column[None, :]) * (width / columns)).astype(np.intp)
    there = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
    return np.asarray(there * width + np.clip(np.arange(width)[None, :] + right, 0, width - 1), np.intp)


def _patches(padded: Floats, rows: Places, columns: Places) -> Floats:
    """Return the patches round these places as rows of numbers; `padded` has a border of the reach."""
    side = 2 * _REACH + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(0, 1))
    return np.asarray(windows[rows, columns].reshape(rows.size, side * side * padded.shape[2]), np.float32)


def _matched(level: _Level, steps: int, chance: np.random.Generator) -> _Level:
    """Return the level with better sources: those of the neighbours, shifted, and others near the best so far."""
    height, width = level.hole.shape
    side = 2 * _REACH + 1
    wanted = cv2.dilate(level.hole.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
    rows, columns = np.nonzero(wanted)
    padded = np.pad(level.pixels, ((_REACH, _REACH), (_REACH, _REACH), (0, 0)), mode="edge")
    goal = _patches(padded, rows, columns)
    source = level.source.copy()
    allowed = level.allowed.ravel()

    def distance(places: Places, chosen: Places) -> Floats:
        there = _patches(padded, places // width, places % width)
        there -= goal[chosen]
        return np.asarray(np.einsum("ij,ij->i", there, there), np.float32)

    every = np.arange(rows.size)
    best = distance(source[rows, columns], every)

    def try_at(down: Places, right: Places) -> None:
        inside = (down >= 0) & (down < height) & (right >= 0) & (right < width)
        places = np.where(inside, down * width + right, 0)
        held = source[rows, columns]
        able = np.flatnonzero(inside & allowed[places] & (places != held))
        found = distance(places[able], able)
        better = found < best[able]
        chosen = able[better]
        best[chosen] = found[better]
        source[rows[chosen], columns[chosen]] = places[chosen]

    for step in range(steps):
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            reach = 1 << max(0, steps - 2 - step)
            near = source[np.clip(rows - down * reach, 0, height - 1), np.clip(columns - right * reach, 0, width - 1)]
            try_at(near // width + down * reach, near % width + right * reach)
        radius = max(height, width)
        while radius >= 1:
            held = source[rows, columns]
            moved = chance.integers(-radius, radius + 1, (2, rows.size))
            try_at(held // width + moved[0], held % width + moved[1])
            radius //= 3
    return replace(level, source=source)


def _voted(level: _Level) -> _Level:
    """Return the level with each pixel of the hole painted as the patches over it say, the near ones more."""
    height, width = level.hole.shape
    colours = level.pixels.reshape(height * width, -1)
    # What is known lies beyond the border: a patch near it knows more.
    depth = cv2.distanceTransform(level.hole.astype(np.uint8), cv2.DIST_L2, 3)
    trust = np.asarray(_TRUST**-depth, np.float32)
    rows, columns = np.nonzero(level.hole)
    total = np.zeros((rows.size, colours.shape[1]), np.float32)
    weights = np.zeros(rows.size, np.float32)
    for down in range(-_REACH, _REACH + 1):
        for right in range(-_REACH, _REACH + 1):
            above, before = rows - down, columns - right
            inside = (above >= 0) & (above < height) & (before >= 0) & (before < width)
            patch = np.clip(above, 0, height - 1), np.clip(before, 0, width - 1)
            there = level.source[patch]
            weight = inside * trust[patch] * np.float32(np.exp(-(down**2 + right**2) / (0.5 * _REACH**2)))
            total += colours[np.clip(there + down * width + right, 0, height * width - 1)] * weight[:, None]
            weights += weight
    pixels = level.pixels.copy()
    pixels[level.hole] = total / np.maximum(weights, 1e-6)[:, None]
    return replace(level, pixels=pixels)


def _taken_over(pixels: Floats, hole: Flags, level: _Level) -> Floats:
    """Return the full picture, each pixel of the hole taken from where the level says, seams crossfaded and toned."""
    height, width = hole.shape
    source = _spread(level, (height, width))
    down = (source // width - np.arange(height)[:, None]).astype(np.float32)
    right = (source % width - np.arange(width)[None, :]).astype(np.float32)
    scale = max(1, round(height / level.hole.shape[0]))
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
    """Return the painted picture with the tones of the border carried in, so that no step shows along it."""
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
    """Return the values carried smoothly to where there are none, by halving the picture and filling on the way up."""
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
    """Return the picture with the colours of the border carried smoothly into the hole."""
    known = np.where(hole[..., None], np.float32(0), pixels)
    field = _membrane(known, (~hole).astype(np.float32))
    return np.where(hole[..., None], field, pixels)
