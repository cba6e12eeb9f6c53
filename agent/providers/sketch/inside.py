"""Operations inside a mask: what it covers is changed fully, everything else stays as it is."""

from __future__ import annotations

import io
import math
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from agent.adjusting.applying import encoded
from agent.errors import ErrorCode, RequestRefused
from agent.pixels import Raster, image_of, open_picture, pixels_of
from agent.providers.sketch.filling import filled
from agent.providers.sketch.lettering import letter_area
from agent.providers.sketch.operations import (
    AddText,
    Effect,
    EffectKind,
    Erase,
    Fill,
    Operation,
    Recolour,
    moves_pixels,
)
from agent.providers.sketch.patterns import pattern
from agent.providers.sketch.pixels import apply_one
from agent.providers.sketch.recolouring import recoloured

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Box: TypeAlias = tuple[int, int, int, int]

# Of the side of a square as large as the area, for an amount of 100.
_BLUR_SHARE = 0.16
_SQUARE_SHARE = 0.22
# Of what a mask covers, letters keep to this much of the width and height of its middle.
_LETTERED = 0.94


def edited_inside(source: bytes, mask: bytes, name: str, operations: tuple[Operation, ...]) -> bytes:
    """Return the picture as a PNG of the same size, changed where the mask is not black.

    Raises RequestRefused when the picture or the mask cannot be read; `name` is what the picture is called then.
    """
    opened = open_picture(source, name)
    changed = apply_inside(image_of(opened), _read(mask), operations)
    return encoded(Raster(pixels_of(changed), opened.profile)).data


def _read(mask: bytes) -> Image.Image:
    try:
        with Image.open(io.BytesIO(mask)) as opened:
            return opened.convert("L")
    except (UnidentifiedImageError, OSError) as error:
        raise RequestRefused(ErrorCode.MASK_UNREADABLE) from error


def apply_inside(image: Image.Image, mask: Image.Image, operations: tuple[Operation, ...]) -> Image.Image:
    """Return a new picture, RGB or RGBA, with the operations applied in their order where the mask is not black.

    The change is full wherever the mask is set at all: a soft edge is for whoever lays the result over the picture.
    A mask of another size is stretched over the picture. An operation that moves pixels is left out.
    """
    result = image.convert("RGBA" if image.has_transparency_data else "RGB")
    if mask.size != result.size:
        mask = mask.resize(result.size, Image.Resampling.NEAREST)
    hole = np.asarray(mask.convert("L")) > 0
    if not hole.any():
        return result
    for operation in operations:
        changed = np.asarray(_changed(operation, result, hole))
        result = Image.fromarray(np.where(hole[..., None], changed, np.asarray(result)))
    return result


def _changed(operation: Operation, image: Image.Image, hole: Flags) -> Image.Image:
    """Return the picture after one operation; what it shows outside of the hole does not count."""
    if moves_pixels(operation):
        return image
    match operation:
        case Recolour(colour):
            return _recoloured(image, hole, colour)
        case Erase():
            return Image.fromarray(filled(np.asarray(image), hole))
        case Fill():
            return _patterned(image, hole, operation)
        case AddText():
            return letter_area(image, operation, _middle(hole))
        case Effect(EffectKind.BLUR, amount):
            return _blurred(image, hole, amount)
        case Effect(EffectKind.PIXELATE, amount):
            return _pixelated(image, hole, amount)
        case _:
            return image_of(apply_one(operation, Raster(pixels_of(image))))


def _recoloured(image: Image.Image, hole: Flags, colour: tuple[int, int, int]) -> Image.Image:
    pixels = np.array(image)
    rows, columns = np.nonzero(hole)
    pixels[rows, columns, :3] = recoloured(pixels[rows, columns, :3], colour)
    return Image.fromarray(pixels)


def _patterned(image: Image.Image, hole: Flags, fill: Fill) -> Image.Image:
    left, top, right, bottom = _box(hole)
    drawn = Image.fromarray(pattern(fill, right - left, bottom - top))
    result = image.copy()
    result.paste(drawn.convert(image.mode), (left, top))
    return result


def _blurred(image: Image.Image, hole: Flags, amount: int) -> Image.Image:
    """Return the hole blurred by its own colours alone, so that nothing beside it shines in."""
    radius = max(1.0, _side(hole) * _BLUR_SHARE * amount / 100)
    left, top, right, bottom = _box(hole)
    inside = hole[top:bottom, left:right]
    pixels = np.array(image)
    part = pixels[top:bottom, left:right].astype(np.float32)
    covered = inside.astype(np.float32)
    weight = covered * (part[..., 3] / 255) if image.mode == "RGBA" else covered
    soft = cv2.GaussianBlur(weight, (0, 0), radius, borderType=cv2.BORDER_CONSTANT)
    for channel in range(3):
        carried = cv2.GaussianBlur(part[..., channel] * weight, (0, 0), radius, borderType=cv2.BORDER_CONSTANT)
        part[..., channel] = np.where(soft > 1e-4, carried / np.maximum(soft, 1e-4), part[..., channel])
    if image.mode == "RGBA":
        there = cv2.GaussianBlur(covered, (0, 0), radius, borderType=cv2.BORDER_CONSTANT)
        part[..., 3] = 255 * soft / np.maximum(there, 1e-4)
    pixels[top:bottom, left:right] = np.clip(np.rint(part), 0, 255).astype(np.uint8)
    return Image.fromarray(pixels)


def _pixelated(image: Image.Image, hole: Flags, amount: int) -> Image.Image:
    """Return the hole in squares, each in the middle colour of what the hole holds of it."""
    side = max(2, round(_side(hole) * _SQUARE_SHARE * amount / 100))
    left, top, right, bottom = _box(hole)
    inside = hole[top:bottom, left:right]
    pixels = np.array(image)
    part = pixels[top:bottom, left:right]
    down, across = np.arange(inside.shape[0]) // side, np.arange(inside.shape[1]) // side
    square = (down[:, None] * (int(across[-1]) + 1) + across[None, :])[inside]
    opacity = part[..., 3][inside].astype(np.float64) if image.mode == "RGBA" else np.ones(square.size)
    weight, count = np.bincount(square, opacity), np.bincount(square)
    for channel in range(3):
        summed = np.bincount(square, part[..., channel][inside] * opacity)
        part[..., channel][inside] = np.rint(summed / np.maximum(weight, 1e-6))[square].astype(np.uint8)
    if image.mode == "RGBA":
        part[..., 3][inside] = np.rint(weight / np.maximum(count, 1))[square].astype(np.uint8)
    return Image.fromarray(pixels)


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
