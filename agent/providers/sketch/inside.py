"""Operations inside a mask: what it covers is changed fully, everything else stays as it is.

They work on the picture's own values, of 8 or 16 bits and of its own colour profile; colours that come with a wish are
turned into that profile.

Another colour leaves pixels their light and texture: that is done in OKLab (Björn Ottosson, A perceptual color space
for image processing, 2020), where the same step in lightness looks the same in every hue.
"""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from agent.adjusting.applying import encoded
from agent.errors import ErrorCode, RequestRefused
from agent.pixels import Floats, Pixels, Raster, from_srgb, open_picture
from agent.providers.sketch.filling import filled
from agent.providers.sketch.lettering import letters_in
from agent.providers.sketch.operations import (
    AddText,
    Effect,
    EffectKind,
    Erase,
    Fill,
    Operation,
    PatternKind,
    Recolour,
    moves_pixels,
)
from agent.providers.sketch.pixels import apply_one, in_colour, written

Bytes: TypeAlias = NDArray[np.uint8]
_REPEATS = 9
_LEAST_PERIOD_PX = 6.0
_DOT = 0.3
Flags: TypeAlias = NDArray[np.bool_]
Box: TypeAlias = tuple[int, int, int, int]

# Of the side of a square as large as the area, for an amount of 100.
_BLUR_SHARE = 0.16
_SQUARE_SHARE = 0.22
# Of what a mask covers, letters keep to this much of the width and height of its middle.
_LETTERED = 0.94
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    np.float32,
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ],
    np.float32,
)
_FROM_LAB = np.linalg.inv(_TO_LAB.astype(np.float64)).astype(np.float32)
_FROM_CONES = np.linalg.inv(_TO_CONES.astype(np.float64)).astype(np.float32)
# How far the middle lightness goes to that of the colour; black and white are little else than lightness.
_SHARE_OF_LIGHT = 0.6
_SHARE_OF_LIGHT_GREY = 0.85
_GREY = 0.04
_STEPS = 5


def edited_inside(source: bytes, mask: bytes, name: str, operations: tuple[Operation, ...]) -> bytes:
    """Return the picture as a PNG of the same size and bit depth, changed where the mask is not black.

    Raises RequestRefused when the picture or the mask cannot be read; `name` is what the picture is called then.
    """
    return encoded(apply_inside(open_picture(source, name), _read(mask), operations)).data


def _read(mask: bytes) -> Image.Image:
    try:
        with Image.open(io.BytesIO(mask)) as opened:
            return opened.convert("L")
    except (UnidentifiedImageError, OSError) as error:
        raise RequestRefused(ErrorCode.MASK_UNREADABLE) from error


def apply_inside(picture: Raster, mask: Image.Image, operations: tuple[Operation, ...]) -> Raster:
    """Return a new picture, RGB or RGBA, with the operations applied in their order where the mask is not black.

    The change is full wherever the mask is set at all: a soft edge is for whoever lays the result over the picture.
    A mask of another size is stretched over the picture. An operation that moves pixels is left out.
    """
    result = in_colour(picture)
    size = (result.width, result.height)
    hole = np.asarray(mask.convert("L").resize(size, Image.Resampling.NEAREST)) > 0
    if not hole.any():
        return result
    for operation in operations:
        if not moves_pixels(operation):
            changed = _changed(operation, result, hole)
            # A look is drawn in 8 bits.
            values = changed.pixels * np.array(result.peak // changed.peak, result.pixels.dtype)
            result = replace(result, pixels=np.where(hole[..., None], values, result.pixels))
    return result


def _changed(operation: Operation, picture: Raster, hole: Flags) -> Raster:
    """Return the picture after one operation; what it shows outside of the hole does not count."""
    match operation:
        case Recolour(colour):
            return _recoloured(picture, hole, colour)
        case Erase():
            levels = filled(_levels(picture, picture.pixels), hole)
            return replace(picture, pixels=_stored(levels, picture))
        case Fill():
            return _patterned(picture, hole, operation)
        case AddText():
            drawn = letters_in((picture.width, picture.height), operation.text, _middle(hole))
            return written(picture, *drawn, operation.ink) if drawn is not None else picture
        case Effect(EffectKind.BLUR, amount):
            return _blurred(picture, hole, amount)
        case Effect(EffectKind.PIXELATE, amount):
            return _pixelated(picture, hole, amount)
        case _:
            return apply_one(operation, picture)


def _levels(picture: Raster, pixels: Pixels) -> Floats:
    """Return some of the picture's values as 0 to 255 and what lies between."""
    return np.asarray(pixels, np.float32) * np.float32(255 / picture.peak)


def _stored(levels: Floats, picture: Raster) -> Pixels:
    values = np.rint(levels * np.float32(picture.peak / 255))
    return np.asarray(np.clip(values, 0, picture.peak), picture.pixels.dtype)


def _recoloured(picture: Raster, hole: Flags, colour: tuple[int, int, int]) -> Raster:
    pixels = picture.pixels.copy()
    own = from_srgb(np.array([[colour]], np.float32), picture.profile, 3)[0, 0]
    pixels[hole, :3] = _stored(_tinted(_levels(picture, pixels[hole, :3]), own), picture)
    return replace(picture, pixels=pixels)


def _patterned(picture: Raster, hole: Flags, fill: Fill) -> Raster:
    left, top, right, bottom = _box(hole)
    drawn = from_srgb(pattern(fill, right - left, bottom - top).astype(np.float32), picture.profile, 3)
    pixels = picture.pixels.copy()
    pixels[top:bottom, left:right, :3] = _stored(drawn, picture)
    pixels[top:bottom, left:right, 3:] = picture.peak
    return replace(picture, pixels=pixels)


def _blurred(picture: Raster, hole: Flags, amount: int) -> Raster:
    """Return the hole blurred by its own colours alone, so that nothing beside it shines in."""
    radius = max(1.0, _side(hole) * _BLUR_SHARE * amount / 100)
    left, top, right, bottom = _box(hole)
    inside = hole[top:bottom, left:right]
    pixels = picture.pixels.copy()
    part = pixels[top:bottom, left:right].astype(np.float32)
    covered = inside.astype(np.float32)
    weight = covered * (part[..., 3] / picture.peak) if picture.has_alpha else covered
    soft = cv2.GaussianBlur(weight, (0, 0), radius, borderType=cv2.BORDER_CONSTANT)
    for channel in range(3):
        carried = cv2.GaussianBlur(part[..., channel] * weight, (0, 0), radius, borderType=cv2.BORDER_CONSTANT)
        part[..., channel] = np.where(soft > 1e-4, carried / np.maximum(soft, 1e-4), part[..., channel])
    if picture.has_alpha:
        there = cv2.GaussianBlur(covered, (0, 0), radius, borderType=cv2.BORDER_CONSTANT)
        part[..., 3] = picture.peak * soft / np.maximum(there, 1e-4)
    pixels[top:bottom, left:right] = np.clip(np.rint(part), 0, picture.peak)
    return replace(picture, pixels=pixels)


def _pixelated(picture: Raster, hole: Flags, amount: int) -> Raster:
    """Return the hole in squares, each in the middle colour of what the hole holds of it."""
    side = max(2, round(_side(hole) * _SQUARE_SHARE * amount / 100))
    left, top, right, bottom = _box(hole)
    inside = hole[top:bottom, left:right]
    pixels = picture.pixels.copy()
    part = pixels[top:bottom, left:right]
    down, across = np.arange(inside.shape[0]) // side, np.arange(inside.shape[1]) // side
    square = (down[:, None] * (int(across[-1]) + 1) + across[None, :])[inside]
    opacity = part[..., 3][inside].astype(np.float64) if picture.has_alpha else np.ones(square.size)
    weight, count = np.bincount(square, opacity), np.bincount(square)
    for channel in range(3):
        summed = np.bincount(square, part[..., channel][inside] * opacity)
        part[..., channel][inside] = np.rint(summed / np.maximum(weight, 1e-6))[square]
    if picture.has_alpha:
        part[..., 3][inside] = np.rint(weight / np.maximum(count, 1))[square]
    return replace(picture, pixels=pixels)


def _side(hole: Flags) -> float:
    return math.sqrt(float(hole.sum()))


def _box(hole: Flags) -> Box:
    rows, columns = np.flatnonzero(hole.any(axis=1)), np.flatnonzero(hole.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _middle(hole: Flags) -> Box:
    """Return the box in the middle of the hole that is as much smaller than the box round it as the hole is."""
    left, top, right, bottom = _box(hole)
    share = _LETTERED * float(hole[top:bottom, left:right].mean()) ** 0.5
    across, down = (right - left) * share / 2, (bottom - top) * share / 2
    rows, columns = np.nonzero(hole)
    x, y = float(columns.mean()) + 0.5, float(rows.mean()) + 0.5
    return round(x - across), round(y - down), round(x + across), round(y + down)


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


def _tinted(pixels: Floats, colour: Floats) -> Floats:
    """Return the pixels (count, 3) in the hue and depth of the colour (3), light and dark among them as it was.

    All are sRGB from 0 to 255 and what lies between.
    """
    if not len(pixels):
        return pixels.copy()
    light = _lab(pixels)[:, 0]
    goal = _lab(colour[None])[0]
    depth = float(np.hypot(goal[1], goal[2]))
    share = _SHARE_OF_LIGHT_GREY if depth < _GREY else _SHARE_OF_LIGHT
    middle = float(np.median(light))
    aim = middle + share * (float(goal[0]) - middle)
    lit = _within(light - middle, aim)
    # Neither black nor white has a colour: it fades towards both.
    fade = np.minimum(1.0, np.minimum(lit / max(aim, 0.05), (1 - lit) / max(1 - aim, 0.05)) * 1.5)
    return _shown(lit, goal[1:], np.asarray(fade, np.float32))


def _within(offsets: Floats, aim: float) -> Floats:
    """Return the lightness round its new middle, pressed together on a side on which there is too little room."""
    above, below = float(np.percentile(offsets, 99.5)), float(-np.percentile(offsets, 0.5))
    up = min(1.0, (1 - aim) / above) if above > 0 else 1.0
    down = min(1.0, aim / below) if below > 0 else 1.0
    return np.asarray(np.clip(aim + np.where(offsets > 0, offsets * up, offsets * down), 0, 1), np.float32)


def _shown(light: Floats, tint: Floats, fade: Floats) -> Floats:
    """Return the pixels of a lightness and a tint, the tint as strong as the screen can show it at that lightness."""
    strength, most = np.zeros_like(fade), fade.copy()
    rgb = _linear(light, tint, most)
    outside = np.flatnonzero(((rgb < -1e-3) | (rgb > 1.001)).any(axis=1))
    lower, upper = strength[outside], most[outside]
    for _ in range(_STEPS):
        half = np.asarray((lower + upper) / 2, np.float32)
        tried = _linear(light[outside], tint, half)
        fits = ((tried >= -1e-3) & (tried <= 1.001)).all(axis=1)
        lower, upper = np.where(fits, half, lower), np.where(fits, upper, half)
    rgb[outside] = _linear(light[outside], tint, np.asarray(lower, np.float32))
    return _encoded(rgb)


def _linear(light: Floats, tint: Floats, strength: Floats) -> Floats:
    lab = np.stack((light, tint[0] * strength, tint[1] * strength), axis=1)
    cones = lab @ _FROM_LAB.T
    return np.asarray(cones**3 @ _FROM_CONES.T, np.float32)


def _lab(pixels: Floats) -> Floats:
    cones = _decoded(pixels) @ _TO_CONES.T
    return np.asarray(np.cbrt(cones) @ _TO_LAB.T, np.float32)


def _decoded(levels: Floats) -> Floats:
    values = levels / np.float32(255)
    return np.where(values <= 0.04045, values / np.float32(12.92), ((values + np.float32(0.055)) / 1.055) ** 2.4)


def _encoded(linear: Floats) -> Floats:
    values = np.clip(linear, 0, 1)
    return 255 * np.where(values <= 0.0031308, values * np.float32(12.92), 1.055 * values ** (1 / 2.4) - 0.055)
