"""The frame of a picture: turned, flipped and cropped. Quarter turns, mirrors and crops move pixels and change none."""

from __future__ import annotations

import math

from PIL import Image

from agent.adjusting.adjustment import (
    Adjustment,
    CropBox,
    CropRatio,
    Flip,
    crops_from_the_whole,
    quarters,
)

_QUARTERS = {1: Image.Transpose.ROTATE_270, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_90}
# A share that came out of a subtraction must not reach into the next pixel by its last bit.
_LAST_BIT = 1e-6


def framed(image: Image.Image, adjustment: Adjustment) -> Image.Image:
    """Return the picture turned, then flipped, then cropped.

    By an odd angle it is turned about its middle and cut to the largest part of its own shape that has no empty
    corner, as when a horizon is straightened in a photo program; the pixels between pixels are bicubic.
    """
    count, rest = quarters(adjustment.rotate)
    if count:
        image = image.transpose(_QUARTERS[count])
    if rest:
        image = _slanted(image, rest)
    if adjustment.flip is not None:
        is_horizontal = adjustment.flip is Flip.HORIZONTAL
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT if is_horizontal else Image.Transpose.FLIP_TOP_BOTTOM)
    for crop in crops_from_the_whole(adjustment.crop):
        image = image.crop(_box(crop, *image.size))
    return image


def framed_size(width: int, height: int, adjustment: Adjustment) -> tuple[int, int]:
    """Return the width and height in pixels of what `framed` makes of a picture of this size."""
    count, rest = quarters(adjustment.rotate)
    size = (height, width) if count % 2 else (width, height)
    if rest:
        size = _upright_part(*size, rest)
    for crop in crops_from_the_whole(adjustment.crop):
        left, top, right, bottom = _box(crop, *size)
        size = (right - left, bottom - top)
    return size


def _upright_part(width: int, height: int, degrees: float) -> tuple[int, int]:
    """Return the largest size of the same shape that lies within the rectangle turned by up to 45 degrees."""
    sine, cosine = abs(math.sin(math.radians(degrees))), math.cos(math.radians(degrees))
    scale = min(width / (width * cosine + height * sine), height / (width * sine + height * cosine))
    return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))


def _slanted(image: Image.Image, degrees: float) -> Image.Image:
    if image.mode == "I;16":
        return _clipped(_slanted(image.convert("I"), degrees))
    width, height = _upright_part(*image.size, degrees)
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    # Each new pixel is looked up where it came from: turned back about the middle of both.
    right = (cosine, sine, image.width / 2 - cosine * width / 2 - sine * height / 2)
    down = (-sine, cosine, image.height / 2 + sine * width / 2 - cosine * height / 2)
    method = Image.Transform.AFFINE
    if image.mode in {"LA", "RGBA"}:
        # Weighed by opacity, so that the colour of clear pixels does not bleed into their neighbours.
        weighed = image.convert({"LA": "La", "RGBA": "RGBa"}[image.mode])
        return weighed.transform((width, height), method, (*right, *down), Image.Resampling.BICUBIC).convert(image.mode)
    return image.transform((width, height), method, (*right, *down), Image.Resampling.BICUBIC)


def _clipped(image: Image.Image) -> Image.Image:
    """Return 32-bit pixels as 16-bit ones; bicubic weights reach a little below black and above white."""
    import numpy as np

    return Image.fromarray(np.asarray(image).clip(0, 65535).astype(np.uint16))


def _box(crop: CropRatio | CropBox, width: int, height: int) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom in pixels, at least one pixel apart."""
    match crop:
        case CropBox():
            left, right = _touched(crop.left, crop.right, width)
            top, bottom = _touched(crop.top, crop.bottom, height)
            return left, top, right, bottom
        case CropRatio():
            wide, high = _ratio_size(crop.width, crop.height, width, height)
            left = math.floor(crop.across * (width - wide) + _LAST_BIT)
            top = math.floor(crop.down * (height - high) + _LAST_BIT)
            return left, top, left + wide, top + high


def _touched(start: float, end: float, length: int) -> tuple[int, int]:
    first = min(math.floor(start * length + _LAST_BIT), length - 1)
    return first, min(length, max(first + 1, math.ceil(end * length - _LAST_BIT)))


def _ratio_size(across: int, down: int, width: int, height: int) -> tuple[int, int]:
    """Return the largest size of the ratio, to the nearest pixel; one that has it already is kept whole."""
    wide, high = _nearest(height * across, down), _nearest(width * down, across)
    if high == height or wide == width:
        return width, height
    return (wide, height) if wide < width else (width, high)


def _nearest(above: int, below: int) -> int:
    return max(1, (2 * above + below) // (2 * below))
