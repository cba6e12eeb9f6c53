"""Describe a picture's appearance as a vector: vectors of similar pictures point in the same direction."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy
from numpy import float32
from numpy.typing import NDArray
from PIL import Image

_LIGHTS, _TINTS = 4, 5
_GRID = 8
_QUARTERS, _DIRECTIONS = 2, 8
# By "like this one" users mean its colours first, then where light and dark are, then its edges.
_SHARES = (0.5, 0.3, 0.2)
_SIDE_PX = 64
# The range of CIELAB's a and b in ordinary pictures; values beyond it are clipped.
_TINT_REACH = 60.0
# A plain surface has no layout: its noise must not be amplified into one.
_LEAST_CONTRAST = 2.0


def appearance_vector(thumbnail: bytes) -> list[float] | None:
    """Return a vector of the picture's appearance, or None when the picture cannot be read.

    196 numbers of length 1, so that the dot product is the similarity: the share of each colour in CIELAB (4 x 5 x 5
    bins, each pixel divided among its neighbours; square roots, so that a large plain sky does not outweigh the rest),
    the lightness of an 8 x 8 grid without its mean and spread, and the strength of edges in 8 directions in each
    quarter. Colour alone confuses all sunsets, layout alone confuses a red room with a blue one. These three are
    enough: a user can name what each one sees, they are made in 4 ms, and 100,000 vectors can be compared one by one.
    """
    try:
        with Image.open(io.BytesIO(thumbnail), formats=("WEBP",)) as picture:
            shown = Image.new("RGBA", picture.size, "white")
            shown.alpha_composite(picture.convert("RGBA"))
            small = shown.convert("RGB").resize((_SIDE_PX, _SIDE_PX), Image.Resampling.BOX)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return None
    # CIELAB (D65): L from 0 to 100, a and b around 0.
    lab = _plain(cv2.cvtColor(numpy.asarray(small, dtype=numpy.float32) / 255, cv2.COLOR_RGB2LAB))
    parts = (_colours(lab), _layout(lab[..., 0]), _edges(lab[..., 0]))
    weighted = [part * numpy.float32(share) ** 0.5 for part, share in zip(parts, _SHARES, strict=True)]
    looks = numpy.concatenate(weighted)
    return (looks / numpy.linalg.norm(looks)).astype(numpy.float32).tolist()


def _colours(lab: NDArray[float32]) -> NDArray[float32]:
    bins = (_LIGHTS, _TINTS, _TINTS)
    places = numpy.stack(
        [lab[..., 0] / 100 * (_LIGHTS - 1)]
        + [(lab[..., axis] / (2 * _TINT_REACH) + 0.5) * (_TINTS - 1) for axis in (1, 2)],
        axis=-1,
    ).reshape(-1, 3)
    places = numpy.clip(places, 0, numpy.asarray(bins) - 1)
    low = numpy.minimum(places.astype(int), numpy.asarray(bins) - 2)
    beyond = places - low
    counts = numpy.zeros(bins, dtype=numpy.float64)
    for corner in numpy.ndindex(2, 2, 2):
        parts = numpy.where(corner, beyond, 1 - beyond).prod(axis=1)
        numpy.add.at(counts, tuple((low + corner).T), parts)
    return _plain(numpy.sqrt(counts.ravel() / counts.sum()))


def _layout(light: NDArray[float32]) -> NDArray[float32]:
    cell = _SIDE_PX // _GRID
    grid = light.reshape(_GRID, cell, _GRID, cell).mean(axis=(1, 3)).ravel()
    grid = grid - grid.mean()
    return _plain(grid / max(float(numpy.linalg.norm(grid)), _LEAST_CONTRAST * _GRID))


def _edges(light: NDArray[float32]) -> NDArray[float32]:
    down, across = numpy.gradient(light)
    strength = numpy.hypot(down, across)
    # An edge has no direction sign: light to dark counts as dark to light.
    angle = numpy.arctan2(down, across) % numpy.pi / numpy.pi * _DIRECTIONS
    first = numpy.floor(angle).astype(int) % _DIRECTIONS
    beyond = angle - numpy.floor(angle)
    half = _SIDE_PX // _QUARTERS
    counts = numpy.zeros((_QUARTERS, _QUARTERS, _DIRECTIONS))
    rows, columns = numpy.indices(light.shape) // half
    numpy.add.at(counts, (rows, columns, first), strength * (1 - beyond))
    numpy.add.at(counts, (rows, columns, (first + 1) % _DIRECTIONS), strength * beyond)
    least = _LEAST_CONTRAST * half * half / 8
    return _plain(counts.ravel() / max(float(numpy.linalg.norm(counts)), least))


def _plain(numbers: NDArray[Any]) -> NDArray[float32]:
    return numpy.asarray(numbers, dtype=numpy.float32)
