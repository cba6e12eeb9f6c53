"""The frame of a picture: turned, flipped and cropped. Quarter turns, mirrors and crops move pixels and change none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from agent.adjusting.adjustment import Adjustment, CropBox, CropRatio, Flip, crops_from_the_whole, quarters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agent.pixels import Pixels

# A share that came out of a subtraction must not reach into the next pixel by its last bit.
_LAST_BIT = 1e-6


def framed(pixels: Pixels, adjustment: Adjustment) -> Pixels:
    """Return the pixels (height, width, channels; the last of 2 or 4 is alpha) turned, then flipped, then cropped.

    By an odd angle a picture is turned about its middle and cut to the largest part of its own shape that has no empty
    corner, as when a horizon is straightened in a photo program; the pixels between pixels are bicubic.
    """
    import numpy as np

    count, rest = quarters(adjustment.rotate)
    if count:
        # `rot90` turns to the left.
        pixels = np.rot90(pixels, -count)
    if rest:
        pixels = _slanted(pixels, rest)
    if adjustment.flip is not None:
        pixels = pixels[:, ::-1] if adjustment.flip is Flip.HORIZONTAL else pixels[::-1]
    for crop in crops_from_the_whole(adjustment.crop):
        left, top, right, bottom = _box(crop, pixels.shape[1], pixels.shape[0])
        pixels = pixels[top:bottom, left:right]
    return np.ascontiguousarray(pixels)


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


def with_fixed_crops(adjustment: Adjustment, width: int, height: int) -> Adjustment:
    """Return the adjustment with its crops as the one box of pixels that they are of a picture of this size.

    Turned by quarters or mirrored, a box is the same part to the pixel; the middle of a ratio would be rounded anew.
    """
    if adjustment.crop is None:
        return adjustment
    whole = framed_size(width, height, adjustment.model_copy(update={"crop": None}))
    x, y, size = 0, 0, whole
    for crop in crops_from_the_whole(adjustment.crop):
        left, top, right, bottom = _box(crop, *size)
        x, y, size = x + left, y + top, (right - left, bottom - top)
    box = CropBox(left=x / whole[0], top=y / whole[1], right=(x + size[0]) / whole[0], bottom=(y + size[1]) / whole[1])
    return adjustment.model_copy(update={"crop": box})


def _upright_part(width: int, height: int, degrees: float) -> tuple[int, int]:
    """Return the largest size of the same shape that lies within the rectangle turned by up to 45 degrees."""
    sine, cosine = abs(math.sin(math.radians(degrees))), math.cos(math.radians(degrees))
    scale = min(width / (width * cosine + height * sine), height / (width * sine + height * cosine))
    return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))


def _slanted(pixels: Pixels, degrees: float) -> Pixels:
    import cv2
    import numpy as np

    from agent.pixels import unweighed, weighed

    height, width = pixels.shape[:2]
    size = _upright_part(width, height, degrees)
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    # Each new pixel is looked up where it came from: turned back about the middle of both.
    x, y = (size[0] - 1) / 2, (size[1] - 1) / 2
    back = np.array(
        [
            [cosine, sine, (width - 1) / 2 - cosine * x - sine * y],
            [-sine, cosine, (height - 1) / 2 + sine * x - cosine * y],
        ]
    )
    has_alpha = pixels.shape[2] in {2, 4}
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    source = weighed(pixels) if has_alpha else pixels
    turned: NDArray[Any] = np.asarray(
        cv2.warpAffine(source, back, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    ).reshape(size[1], size[0], pixels.shape[2])
    return unweighed(turned, pixels.dtype) if has_alpha else turned


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
