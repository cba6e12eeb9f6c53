"""The pixel operations on real pictures: one small function each, at full size and bit depth, transparency kept.

`apply` takes any raster and gives RGB or RGBA. Light, colour, turns and crops are the studio's own exact adjustments.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agent.adjusting import Adjustment
from agent.adjusting.applying import adjusted
from agent.pixels import LUMA, Floats, Pixels, Raster, from_srgb, resized, unweighed, weighed
from agent.providers.sketch.lettering import letters_for
from agent.providers.sketch.operations import AddText, Effect, EffectKind, Operation, ResizeBy, ResizeTo, Restyle
from agent.providers.sketch.palette import Colour
from agent.style_rendering import render_in_style

MAX_SIDE_PIXELS = 8192
MAX_PIXELS = 40_000_000
_BAND_ROWS = 256
# Sepia at black, mid grey and white.
_SEPIA = np.array([[24, 14, 6], [146, 108, 70], [255, 242, 218]], np.float32)
_WHITE: Colour = (255, 255, 255)
# Letters of a colour whose three values come to no more stand over a light shade.
_MIDDLE_SUM = 300


def apply(raster: Raster, operations: tuple[Operation, ...]) -> Raster:
    """Return a new picture with the operations applied in their order; the given one stays as it is."""
    result = in_colour(raster)
    for operation in operations:
        result = apply_one(operation, result)
    return result


def in_colour(raster: Raster) -> Raster:
    """Return the picture as RGB or RGBA; one that was grey leaves its profile."""
    if raster.colours == 3:
        return raster
    grey = raster.pixels
    return Raster(np.concatenate([grey[..., :1]] * 3 + [grey[..., 1:]], axis=2))


@singledispatch
def apply_one(operation: Operation, raster: Raster) -> Raster:
    """Return the picture, RGB or RGBA, after one operation."""
    raise TypeError(f"no such operation: {operation!r}")


@apply_one.register
def _(operation: Adjustment, raster: Raster) -> Raster:
    return adjusted(raster, operation)


@apply_one.register
def _(operation: Effect, raster: Raster) -> Raster:
    match operation.kind:
        case EffectKind.BLUR:
            return _blurred(raster, operation.amount)
        case EffectKind.PIXELATE:
            return _pixelated(raster, operation.amount)
        case EffectKind.INVERT:
            changed = raster.peak - raster.pixels[..., :3]
        case EffectKind.SEPIA:
            changed = _sepia(raster)
    return replace(raster, pixels=np.concatenate([changed, raster.pixels[..., 3:]], axis=2))


@apply_one.register
def _(operation: ResizeTo, raster: Raster) -> Raster:
    width, height = operation.width, operation.height
    if width and height:
        return _fitted(raster, *_within_limits(width, height))
    factor = (width or 0) / raster.width or (height or 0) / raster.height
    return _scaled(raster, factor)


@apply_one.register
def _(operation: ResizeBy, raster: Raster) -> Raster:
    return _scaled(raster, operation.factor)


@apply_one.register
def _(operation: AddText, raster: Raster) -> Raster:
    drawn = letters_for((raster.width, raster.height), operation.text, operation.position)
    return written(raster, *drawn) if drawn is not None else raster


@apply_one.register
def _(operation: Restyle, raster: Raster) -> Raster:
    # A look is drawn in 8 bits; what is see-through stays so.
    eight = raster.pixels if raster.peak == 255 else (raster.pixels >> 8).astype(np.uint8)
    drawn = render_in_style(np.ascontiguousarray(eight[..., :3]), operation.look)
    return replace(raster, pixels=np.concatenate([drawn, eight[..., 3:]], axis=2))


def written(raster: Raster, letters: Image.Image, shade: Image.Image, ink: Colour | None = None) -> Raster:
    """Return the picture, RGB or RGBA, with the letters in a colour (white unless one is named) over their shade.

    Both are masks in mode L of the picture's size; the shade is black, below a dark colour white.
    """
    ink = ink or _WHITE
    colour = from_srgb(np.array([[ink]], np.float32), raster.profile, 3) * (raster.peak / 255)
    below = 0 if sum(ink) > _MIDDLE_SUM else raster.peak
    letter, soft = (np.asarray(mask, np.float32)[..., None] / 255 for mask in (letters, shade))
    pixels = raster.pixels.copy()
    # Only the rows that the words reach: on a large picture they are few.
    reached = np.flatnonzero(np.maximum(letter, soft).any(axis=(1, 2)))
    for top in range(int(reached[0]), int(reached[-1]) + 1, _BAND_ROWS) if reached.size else ():
        rows = slice(top, min(top + _BAND_ROWS, int(reached[-1]) + 1))
        shown = np.maximum(0, soft[rows] - letter[rows])
        colours = pixels[rows, :, :3] * (1 - shown) + below * shown
        pixels[rows, :, :3] = np.rint(colours * (1 - letter[rows]) + colour * letter[rows])
        if raster.has_alpha:
            opaque = np.maximum(letter[rows], soft[rows]) * raster.peak
            pixels[rows, :, 3:] = np.maximum(pixels[rows, :, 3:], np.rint(opaque).astype(pixels.dtype))
    return replace(raster, pixels=pixels)


def _scaled(raster: Raster, factor: float) -> Raster:
    return resized(raster, *_within_limits(round(raster.width * factor), round(raster.height * factor)))


def _fitted(raster: Raster, width: int, height: int) -> Raster:
    """Return the picture at this size, what sticks out of the new shape cut off evenly."""
    scale = max(width / raster.width, height / raster.height)
    wide, high = min(raster.width, round(width / scale)), min(raster.height, round(height / scale))
    left, top = (raster.width - wide) // 2, (raster.height - high) // 2
    part = raster.pixels[top : top + max(1, high), left : left + max(1, wide)]
    return resized(replace(raster, pixels=np.ascontiguousarray(part)), width, height)


def _within_limits(width: int, height: int) -> tuple[int, int]:
    """Return the size, made smaller in proportion when it is more than one machine should hold."""
    width, height = max(1, width), max(1, height)
    factor = min(1.0, MAX_SIDE_PIXELS / max(width, height), (MAX_PIXELS / (width * height)) ** 0.5)
    return max(1, int(width * factor)), max(1, int(height * factor))


def _blurred(raster: Raster, amount: int) -> Raster:
    """Return the picture blurred with colours weighed by their opacity, so that clear pixels do not bleed in."""
    sigma = max(1.0, max(raster.width, raster.height) * amount / 7500)

    def soft(values: Pixels | Floats) -> NDArray[Any]:
        blurred = cv2.GaussianBlur(values, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred).reshape(values.shape)

    pixels = raster.pixels
    if not raster.has_alpha:
        return replace(raster, pixels=soft(pixels))
    return replace(raster, pixels=unweighed(soft(weighed(pixels)), pixels.dtype))


def _pixelated(raster: Raster, amount: int) -> Raster:
    """Return the picture in squares of one colour each, about twenty across for a plain wish."""
    side = max(2, round(max(raster.width, raster.height) * amount / 600))
    small = resized(raster, max(1, round(raster.width / side)), max(1, round(raster.height / side)))
    shown = cv2.resize(small.pixels, (raster.width, raster.height), interpolation=cv2.INTER_NEAREST_EXACT)
    return replace(raster, pixels=np.asarray(shown, raster.pixels.dtype).reshape(raster.pixels.shape))


def _sepia(raster: Raster) -> Pixels:
    levels = np.arange(raster.peak + 1, dtype=np.float32) * 255 / raster.peak
    tones = np.stack([np.interp(levels, (0, 127, 255), _SEPIA[:, channel]) for channel in range(3)], axis=1)
    table = np.rint(tones * raster.peak / 255).astype(raster.pixels.dtype)
    grey = np.rint(raster.pixels[..., :3] @ LUMA).astype(raster.pixels.dtype)
    return np.asarray(table[grey], raster.pixels.dtype)
