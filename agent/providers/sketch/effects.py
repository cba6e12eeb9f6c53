"""The sketch model's operations on real pictures: at full size, bit depth (8 or 16) and colour profile.

An area is where a mask lets a picture change, as boolean flags (height, width); None is the whole picture. Light,
colour, effects, turns and crops use the studio's own exact adjustments.
"""

from __future__ import annotations

import io
import math
from dataclasses import replace

import cv2
import numpy as np
from PIL import Image, UnidentifiedImageError

from agent.adjusting import Adjustment
from agent.adjusting.applying import adjusted
from agent.adjusting.effects import box_of
from agent.errors import ErrorCode, RequestRefused
from agent.pixels import Flags, Floats, Pixels, Raster, eight_bits, from_srgb, in_colour
from agent.providers.sketch.filling import filled
from agent.providers.sketch.lettering import Box, letters_for
from agent.providers.sketch.operations import (
    AddText,
    Erase,
    Fill,
    Operation,
    PatternKind,
    Recolour,
    Restyle,
    moves_pixels,
)
from agent.providers.sketch.palette import Colour
from agent.style_rendering import render_in_style

_BAND_ROWS = 256
_WHITE: Colour = (255, 255, 255)
# Text in a colour whose three values sum to at most this gets a light shade behind it.
_MIDDLE_SUM = 300
# Text in a mask uses at most this share of the width and height of the mask's middle box.
_LETTERED = 0.94
# How often a pattern repeats across an area; a dot's radius is a share of the period.
_REPEATS = 9
_LEAST_PERIOD_PX = 6.0
_DOT = 0.3
# How far the median lightness moves to that of the colour; black, white and grey are mostly lightness.
_SHARE_OF_LIGHT = 0.6
_SHARE_OF_LIGHT_GREY = 0.85
_GREY = 12.0


def area_of(mask: bytes, width: int, height: int) -> Flags:
    """Return where a mask is not black, stretched to this picture size. Raises RequestRefused(MASK_UNREADABLE).

    The change is full wherever the mask is set at all: the caller that blends the result in applies a soft edge.
    """
    try:
        with Image.open(io.BytesIO(mask)) as opened:
            return np.asarray(opened.convert("L").resize((width, height), Image.Resampling.NEAREST)) > 0
    except (UnidentifiedImageError, OSError) as error:
        raise RequestRefused(ErrorCode.MASK_UNREADABLE) from error


def apply(picture: Raster, operations: tuple[Operation, ...], area: Flags | None = None) -> Raster:
    """Return a new RGB or RGBA picture with the operations applied in order; the input stays unchanged.

    With an area, nothing outside of it changes, and operations that move pixels are skipped.
    """
    result = in_colour(picture)
    for operation in operations:
        if area is None:
            result = _changed(operation, result, None)
        elif area.any() and not moves_pixels(operation):
            changed = _changed(operation, result, area)
            result = replace(result, pixels=np.where(area[..., None], changed.pixels, result.pixels))
    return result


def _changed(operation: Operation, picture: Raster, area: Flags | None) -> Raster:
    """Return the picture after one operation; with an area, the caller ignores the pixels outside."""
    match operation:
        case Adjustment():
            return adjusted(picture, operation, area)
        case AddText():
            place = operation.position if area is None else _middle(area)
            drawn = letters_for((picture.width, picture.height), operation.text, place)
            return _written(picture, *drawn, operation.ink or _WHITE) if drawn is not None else picture
        case Erase():
            return replace(picture, pixels=_stored(filled(_levels(picture.pixels), _flags(picture, area)), picture))
        case Fill():
            return _patterned(picture, _flags(picture, area), operation)
        case Recolour(colour):
            return _recoloured(picture, _flags(picture, area), colour)
        case Restyle():
            # A look is rendered in 8 bits.
            drawn = render_in_style(np.ascontiguousarray(eight_bits(picture.pixels[..., :3])), operation.look)
            colours = drawn * np.array(picture.peak // 255, picture.pixels.dtype)
    return replace(picture, pixels=np.concatenate([colours, picture.pixels[..., 3:]], axis=2))


def _flags(picture: Raster, area: Flags | None) -> Flags:
    return np.ones((picture.height, picture.width), np.bool_) if area is None else area


def _levels(pixels: Pixels) -> Floats:
    """Return pixel values on the scale 0 to 255, as floats."""
    return np.asarray(pixels, np.float32) * np.float32(255 / np.iinfo(pixels.dtype).max)


def _stored(levels: Floats, picture: Raster) -> Pixels:
    values = np.rint(levels * np.float32(picture.peak / 255))
    return np.asarray(np.clip(values, 0, picture.peak), picture.pixels.dtype)


# ---- text


def _middle(area: Flags) -> Box:
    """Return the box in the middle of the area, as much smaller than its bounding box as the area is."""
    left, top, right, bottom = box_of(area)
    share = _LETTERED * float(area[top:bottom, left:right].mean()) ** 0.5
    across, down = (right - left) * share / 2, (bottom - top) * share / 2
    rows, columns = np.nonzero(area)
    x, y = float(columns.mean()) + 0.5, float(rows.mean()) + 0.5
    return round(x - across), round(y - down), round(x + across), round(y + down)


def _written(picture: Raster, letters: Image.Image, shade: Image.Image, ink: Colour) -> Raster:
    """Return the picture with text in a colour over a shade; both masks have mode L and the picture's size.

    The shade is black, or white behind a dark colour.
    """
    colour = from_srgb(np.array([[ink]], np.float32), picture.profile, 3) * (picture.peak / 255)
    below = 0 if sum(ink) > _MIDDLE_SUM else picture.peak
    letter, soft = (np.asarray(mask, np.float32)[..., None] / 255 for mask in (letters, shade))
    pixels = picture.pixels.copy()
    # Only the rows with text: in a large picture they are few.
    reached = np.flatnonzero(np.maximum(letter, soft).any(axis=(1, 2)))
    for top in range(int(reached[0]), int(reached[-1]) + 1, _BAND_ROWS) if reached.size else ():
        rows = slice(top, min(top + _BAND_ROWS, int(reached[-1]) + 1))
        shown = np.maximum(0, soft[rows] - letter[rows])
        colours = pixels[rows, :, :3] * (1 - shown) + below * shown
        pixels[rows, :, :3] = np.rint(colours * (1 - letter[rows]) + colour * letter[rows])
        opaque = np.maximum(letter[rows], soft[rows]) * picture.peak
        pixels[rows, :, 3:] = np.maximum(pixels[rows, :, 3:], np.rint(opaque).astype(pixels.dtype))
    return replace(picture, pixels=pixels)


# ---- patterns


def _patterned(picture: Raster, area: Flags, fill: Fill) -> Raster:
    """Return the picture with the pattern over the bounding box of the area, with smooth edges."""
    left, top, right, bottom = box_of(area)
    period = max(_LEAST_PERIOD_PX, ((right - left) * (bottom - top)) ** 0.5 / _REPEATS)
    y, x = np.mgrid[0 : bottom - top, 0 : right - left].astype(np.float32) + np.float32(0.5)
    share = _share(fill.kind, x, y, period)[..., None]
    first, second = np.array(fill.colour, np.float32), np.array(fill.ground, np.float32)
    colours = from_srgb(np.asarray(second + (first - second) * share, np.float32), picture.profile, 3)
    pixels = picture.pixels.copy()
    pixels[top:bottom, left:right, :3] = _stored(colours, picture)
    pixels[top:bottom, left:right, 3:] = picture.peak
    return replace(picture, pixels=pixels)


def _share(kind: PatternKind, x: Floats, y: Floats, period: float) -> Floats:
    """Return the share of the first colour in each pixel, 0 to 1."""
    match kind:
        case PatternKind.STRIPES:
            return _band((x + y) / 2**0.5, period)
        case PatternKind.ACROSS:
            return _band(y, period)
        case PatternKind.UPRIGHT:
            return _band(x, period)
        case PatternKind.CHECKS:
            across, along = _band(x, 2 * period), _band(y, 2 * period)
            return across * along + (1 - across) * (1 - along)
        case PatternKind.DOTS:
            # Every other row is shifted by half a period.
            across = np.mod(x + np.mod(np.floor(y / period), 2) * period / 2, period) - period / 2
            distance = np.hypot(across, np.mod(y, period) - period / 2)
            return np.clip(period * _DOT - distance + 0.5, 0, 1)
        case PatternKind.PLAIN:
            return np.ones_like(x)


def _band(along: Floats, period: float) -> Floats:
    """Return 1 in one half of each period and 0 in the other, with a transition of one pixel."""
    place = np.mod(along, period)
    edge = np.minimum(np.minimum(place, np.abs(period / 2 - place)), period - place)
    return np.clip(np.where(place < period / 2, 0.5 + edge, 0.5 - edge), 0, 1)


# ---- recolouring


def _recoloured(picture: Raster, area: Flags, colour: Colour) -> Raster:
    """Return the picture with the area in the hue and depth of the colour, and its light and dark kept."""
    own = from_srgb(np.array([[colour]], np.float32), picture.profile, 3)
    light = _lab(_levels(picture.pixels[area, :3])[None])[0, :, 0]
    goal = _lab(own)[0, 0]
    share = _SHARE_OF_LIGHT_GREY if math.hypot(goal[1], goal[2]) < _GREY else _SHARE_OF_LIGHT
    middle = float(np.median(light))
    aim = middle + share * (float(goal[0]) - middle)
    offsets = light - middle
    # Compressed on a side without enough range.
    above, below = float(np.percentile(offsets, 99.5)), float(-np.percentile(offsets, 0.5))
    up = min(1.0, (100 - aim) / above) if above > 0 else 1.0
    down = min(1.0, aim / below) if below > 0 else 1.0
    lit = aim + np.where(offsets > 0, offsets * up, offsets * down)
    steps, colours = _ramp(goal, aim)
    pixels = picture.pixels.copy()
    shown = np.stack([np.interp(lit, steps, colours[:, channel]) for channel in range(3)], axis=1)
    pixels[area, :3] = _stored(shown.astype(np.float32), picture)
    return replace(picture, pixels=pixels)


def _ramp(goal: Floats, aim: float) -> tuple[Floats, Floats]:
    """Return steps of lightness from 0 to 100 and the tint of the goal (Lab) at each, in sRGB levels.

    Black and white have no colour: it fades from the lightness `aim` towards both, and never exceeds what a screen can
    show.
    """
    steps = np.linspace(0, 100, 513, dtype=np.float32)
    fade = np.minimum(1, np.minimum(steps / max(aim, 5), (100 - steps) / max(100 - aim, 5)) * 1.5)
    strengths = np.linspace(0, 1, 65, dtype=np.float32)[None, :] * fade[:, None]
    lab = np.stack([np.broadcast_to(steps[:, None], strengths.shape), *(strengths * goal[n] for n in (1, 2))], axis=2)
    shown = cv2.cvtColor(lab.astype(np.float32), cv2.COLOR_Lab2RGB) * np.float32(255)
    # A colour outside the screen's range comes back as another colour.
    fits = np.logical_and.accumulate(np.abs(_lab(shown) - lab).max(axis=2) < 1.5, axis=1)
    return steps, shown[np.arange(len(steps)), np.maximum(fits.sum(axis=1) - 1, 0)]


def _lab(levels: Floats) -> Floats:
    """Return sRGB levels (height, width, 3; 0 to 255) as CIE L*a*b*."""
    return np.asarray(cv2.cvtColor(levels.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2Lab), np.float32)
