"""Effects on pixels beyond light and colour, in this order: invert, sepia, blur, pixelate.

Imports numpy and OpenCV: import this module only when there are pixels to change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.adjusting.adjustment import Adjustment
from agent.pixels import LUMA, Flags, Pixels, Raster, averaged, in_colour, unweighed, weighed, with_opacity

# For a strength of 100: the share of the longer side of a whole picture, and of the square root of an area's size.
_BLUR_SHARE = (1 / 75, 0.16)
_SQUARE_SHARE = (1 / 6, 0.22)
# Sepia at black, mid grey and white.
_SEPIA = np.array([[24, 14, 6], [146, 108, 70], [255, 242, 218]], np.float32)


def with_effects(picture: Raster, adjustment: Adjustment, area: Flags | None = None) -> Raster:
    """Return the picture with the effects of the adjustment; alpha and bit depth stay.

    `area` is the part to change, as flags (height, width): it determines the sizes of blurs and squares, and pixels
    outside it do not influence the result. The result outside the area is then undefined.
    """
    if adjustment.invert:
        picture = _with_colours(picture, picture.peak - picture.pixels[..., : picture.colours])
    if adjustment.sepia:
        picture = _in_sepia(in_colour(picture))
    if adjustment.blur:
        picture = _blurred(picture, area, adjustment.blur)
    if adjustment.pixelate:
        picture = _in_squares(picture, area, adjustment.pixelate)
    return picture


def box_of(area: Flags) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the area's bounding box."""
    rows, columns = np.flatnonzero(area.any(axis=1)), np.flatnonzero(area.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _with_colours(picture: Raster, colours: Pixels) -> Raster:
    return replace(picture, pixels=np.concatenate([colours, picture.pixels[..., picture.colours :]], axis=2))


def _in_sepia(picture: Raster) -> Raster:
    kind = picture.pixels.dtype
    levels = np.linspace(0, 255, picture.peak + 1, dtype=np.float32)
    tones = np.stack([np.interp(levels, (0, 127, 255), _SEPIA[:, channel]) for channel in range(3)], axis=1)
    grey = np.rint(picture.pixels[..., :3] @ LUMA).astype(kind)
    return _with_colours(picture, np.rint(tones * (picture.peak / 255)).astype(kind)[grey])


def _blurred(picture: Raster, area: Flags | None, strength: int) -> Raster:
    sigma = max(1.0, _length(picture, area, _BLUR_SHARE) * strength / 100)
    border = cv2.BORDER_REPLICATE if area is None else cv2.BORDER_CONSTANT
    return _mixed(picture, area, lambda values: cv2.GaussianBlur(values, (0, 0), sigma, borderType=border))


def _in_squares(picture: Raster, area: Flags | None, strength: int) -> Raster:
    """Return the picture pixelated into squares of one colour each, about twelve across at the default strength."""
    side = max(2, round(_length(picture, area, _SQUARE_SHARE) * strength / 100))

    def shrunk(values: NDArray[Any]) -> NDArray[Any]:
        few = max(1, round(values.shape[1] / side)), max(1, round(values.shape[0] / side))
        return cv2.resize(values, few, interpolation=cv2.INTER_AREA)

    return _mixed(picture, area, shrunk)


def _length(picture: Raster, area: Flags | None, shares: tuple[float, float]) -> float:
    if area is None:
        return max(picture.width, picture.height) * shares[0]
    return math.sqrt(float(area.sum())) * shares[1]


def _mixed(picture: Raster, area: Flags | None, way: Callable[[Any], NDArray[Any]]) -> Raster:
    """Return the picture as means computed by `way` from its pixels; a smaller result is enlarged to squares."""
    left, top, right, bottom = (0, 0, picture.width, picture.height) if area is None else box_of(area)
    place = slice(top, bottom), slice(left, right)
    if area is None:
        means = averaged(picture.pixels, way)
    else:
        weights = area[place].astype(np.float32)
        values = way(weighed(with_opacity(picture.pixels[place])) * weights[..., None])
        means = unweighed(values / np.maximum(way(weights), 1e-6)[..., None], picture.pixels.dtype)
    pixels, size = picture.pixels.copy(), (right - left, bottom - top)
    shown = cv2.resize(means, size, interpolation=cv2.INTER_NEAREST_EXACT)
    pixels[place] = shown.reshape(*shown.shape[:2], -1)[..., : pixels.shape[2]]
    return replace(picture, pixels=pixels)
