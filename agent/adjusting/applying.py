"""Applies adjustments to the bytes of a picture. Synchronous and CPU-bound: run it in a thread.

Quarter turns, flips and crops move pixels without changing their values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from agent.adjusting.adjustment import (
    MAX_PIXELS,
    MAX_SIDE_PIXELS,
    Adjustment,
    CropBox,
    CropRatio,
    Flip,
    Resize,
    crops_from_the_whole,
    quarters,
)
from agent.pixels import Flags, Pixels, Raster, averaged, eight_bits, encode_png, in_colour, open_picture, resized

# Rounding errors of a computed share must not extend a box into the next pixel.
_LAST_BIT = 1e-6


def framed(pixels: Pixels, adjustment: Adjustment) -> Pixels:
    """Return the pixels (height, width, channels; the last of 2 or 4 is alpha) rotated, flipped, cropped and resized.

    For an odd angle, the picture is rotated about its centre and cropped to the largest part of the same ratio without
    empty corners, as when a photo program straightens a horizon; the interpolation is bicubic.
    """
    count, rest = quarters(adjustment.rotate)
    if count:
        # `rot90` rotates anticlockwise.
        pixels = np.rot90(pixels, -count)
    if rest:
        pixels = _slanted(pixels, rest)
    if adjustment.flip is not None:
        pixels = pixels[:, ::-1] if adjustment.flip is Flip.HORIZONTAL else pixels[::-1]
    for crop in crops_from_the_whole(adjustment.crop):
        left, top, right, bottom = _box(crop, pixels.shape[1], pixels.shape[0])
        pixels = pixels[top:bottom, left:right]
    pixels = np.ascontiguousarray(pixels)
    return pixels if adjustment.resize is None else _resized(pixels, adjustment.resize)


def framed_size(width: int, height: int, adjustment: Adjustment) -> tuple[int, int]:
    """Return the width and height in pixels that `framed` gives for a picture of this size."""
    count, rest = quarters(adjustment.rotate)
    size = (height, width) if count % 2 else (width, height)
    if rest:
        size = _upright_part(*size, rest)
    for crop in crops_from_the_whole(adjustment.crop):
        left, top, right, bottom = _box(crop, *size)
        size = (right - left, bottom - top)
    return size if adjustment.resize is None else _new_size(*size, adjustment.resize)


def _new_size(width: int, height: int, resize: Resize) -> tuple[int, int]:
    """Return the target size, scaled down in proportion when it exceeds the limits."""
    factor = (resize.width or 0) / width or (resize.height or 0) / height or resize.factor
    width, height = max(1, resize.width or round(width * factor)), max(1, resize.height or round(height * factor))
    least = min(1.0, MAX_SIDE_PIXELS / max(width, height), (MAX_PIXELS / (width * height)) ** 0.5)
    return max(1, int(width * least)), max(1, int(height * least))


def _resized(pixels: Pixels, resize: Resize) -> Pixels:
    height, width = pixels.shape[:2]
    size = _new_size(width, height, resize)
    if resize.width is not None and resize.height is not None:
        wide, high = _ratio_size(*size, width, height)
        left, top = (width - wide) // 2, (height - high) // 2
        pixels = np.ascontiguousarray(pixels[top : top + high, left : left + wide])
    return resized(Raster(pixels), *size).pixels


def with_fixed_crops(adjustment: Adjustment, width: int, height: int) -> Adjustment:
    """Return the adjustment with its crops replaced by the equivalent box for a picture of this size.

    After a quarter turn or flip, a box is exactly the same part; the position of a ratio would be rounded again.
    """
    if adjustment.crop is None:
        return adjustment
    whole = framed_size(width, height, adjustment.model_copy(update={"crop": None, "resize": None}))
    x, y, size = 0, 0, whole
    for crop in crops_from_the_whole(adjustment.crop):
        left, top, right, bottom = _box(crop, *size)
        x, y, size = x + left, y + top, (right - left, bottom - top)
    box = CropBox(left=x / whole[0], top=y / whole[1], right=(x + size[0]) / whole[0], bottom=(y + size[1]) / whole[1])
    return adjustment.model_copy(update={"crop": box})


def _upright_part(width: int, height: int, degrees: float) -> tuple[int, int]:
    """Return the largest size of the same ratio that fits in the rectangle rotated by up to 45 degrees."""
    sine, cosine = abs(math.sin(math.radians(degrees))), math.cos(math.radians(degrees))
    scale = min(width / (width * cosine + height * sine), height / (width * sine + height * cosine))
    return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))


def _slanted(pixels: Pixels, degrees: float) -> Pixels:
    import cv2

    height, width = pixels.shape[:2]
    size = _upright_part(width, height, degrees)
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    # The inverse map: each new pixel is looked up at its source position, rotated back about both centres.
    x, y = (size[0] - 1) / 2, (size[1] - 1) / 2
    back = np.array(
        [
            [cosine, sine, (width - 1) / 2 - cosine * x - sine * y],
            [-sine, cosine, (height - 1) / 2 + sine * x - cosine * y],
        ]
    )
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    border = cv2.BORDER_REPLICATE
    return averaged(pixels, lambda values: cv2.warpAffine(values, back, size, flags=flags, borderMode=border))


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
    """Return the largest size with the ratio, to the nearest pixel; a size that has it already is kept."""
    wide, high = _nearest(height * across, down), _nearest(width * down, across)
    if high == height or wide == width:
        return width, height
    return (wide, height) if wide < width else (width, high)


def _nearest(above: int, below: int) -> int:
    return max(1, (2 * above + below) // (2 * below))


MIME_TYPE = "image/png"


@dataclass(frozen=True)
class Adjusted:
    """An adjusted picture: the bytes of a PNG, its size in pixels, and the bits of each channel."""

    data: bytes
    mime_type: str
    width: int
    height: int
    bit_depth: int


def apply_adjustment(data: bytes, adjustment: Adjustment) -> Adjusted:
    """Return the picture adjusted, as a PNG: first the frame, then light and colour (`toning`), then the `effects`.

    The result is always PNG: encoding a JPEG or WebP again would change every pixel, also those that the adjustment
    does not touch, and lose quality each time. Size, alpha, the ICC profile and the bit depth, 8 or 16, are kept;
    values are adjusted as if they were sRGB. Grey that gets warmth or sepia becomes colour and loses its profile. All
    other metadata is removed. The same bytes and adjustment give the same pixels.

    Raises RequestRefused when the bytes are not a picture, damaged, or more than 64 megapixels.
    """
    return encoded(adjusted(open_picture(data), adjustment))


def adjusted(raster: Raster, adjustment: Adjustment, area: Flags | None = None) -> Raster:
    """Return the picture adjusted, the frame first; the input is not modified.

    `area` is the part to change, as in `effects.with_effects`; the adjustment must not change the frame then.
    """
    return _coloured(replace(raster, pixels=framed(raster.pixels, adjustment)), adjustment, area)


def preview_adjustment(data: bytes, adjustment: Adjustment, edge_px: int) -> Adjusted:
    """Return a small 8-bit version of the result of `apply_adjustment`: the longer edge is at most `edge_px`.

    The picture is never enlarged. It is downscaled before it is adjusted, which makes the adjustment cheap; a crop is
    shown at the full resolution of the picture if that fits. Most of the time is spent on decoding: for a slider, make
    a small copy with a first call without any adjustment and pass it to the further calls, which are then cheap.

    Raises ValueError when `edge_px` is below 1, and the errors of `apply_adjustment`.
    """
    if edge_px < 1:
        raise ValueError(f"a preview needs an edge of at least 1 pixel, not {edge_px}")
    raster = open_picture(data)
    if adjustment.resize is not None:
        raster = replace(raster, pixels=framed(raster.pixels, adjustment))
        adjustment = adjustment.model_copy(update={"rotate": 0, "flip": None, "crop": None, "resize": None})
    scale = edge_px / max(framed_size(raster.width, raster.height, adjustment))
    # A preview does not need 16 bits.
    small = replace(raster, pixels=eight_bits(raster.pixels))
    if scale < 1:
        small = resized(small, max(1, round(raster.width * scale)), max(1, round(raster.height * scale)))
    # Rounding at both steps may give one pixel too many.
    pixels = framed(small.pixels, adjustment)[:edge_px, :edge_px]
    return encoded(_coloured(replace(small, pixels=pixels), adjustment))


def encoded(raster: Raster) -> Adjusted:
    """Return the picture as a PNG, with its ICC profile if that has the same colour model, else without."""
    size = {"width": raster.width, "height": raster.height, "bit_depth": raster.bit_depth}
    return Adjusted(data=encode_png(raster), mime_type=MIME_TYPE, **size)


def _coloured(raster: Raster, adjustment: Adjustment, area: Flags | None = None) -> Raster:
    # Either import also loads OpenCV.
    if adjustment.has_tones:
        raster = _toned(raster, adjustment)
    if adjustment.has_effects:
        from agent.adjusting.effects import with_effects

        raster = with_effects(raster, adjustment, area)
    return raster


def _toned(raster: Raster, adjustment: Adjustment) -> Raster:
    from agent.adjusting.toning import toned

    raster = in_colour(raster) if adjustment.warmth else raster
    pixels = raster.pixels
    if not raster.has_alpha:
        return replace(raster, pixels=toned(pixels, None, adjustment))
    opacity = eight_bits(pixels[..., -1:])[..., 0] if adjustment.sharpness else None
    colours = toned(np.ascontiguousarray(pixels[..., :-1]), opacity, adjustment)
    return replace(raster, pixels=np.concatenate([colours, pixels[..., -1:]], axis=2))
