"""Masks: read from any picture, packed as PNG, unpacked and grown. White marks the area to change."""

from __future__ import annotations

import cv2
import numpy as np

from agent.errors import RequestRefused
from agent.imaging.masking.values import Box, Mask, MaskProblem, MaskRefused
from agent.pixels import Bytes, Floats, Pixels, Raster, open_picture

_RATIO_TOLERANCE = 0.02
# A painted layer counts as uniform in colour when its visible pixels differ by no more than this.
_UNIFORM_LEVELS = 24
_DRAWN_ALPHA = 32
_LEVELS = (1, 64, 128, 255)


def read_mask(data: bytes, size: tuple[int, int]) -> Mask:
    """Return the mask for a picture of `size` (width, height) from an image in which white marks the area to change.

    Any mode is accepted; grey stays a soft brush. For a painted layer, with a transparent background and strokes of one
    colour, the alpha is used; for any other image with alpha, brightness times alpha. An image of another size is
    scaled if its ratio matches the picture's within 2 %. Raises MaskRefused for an unreadable image, another ratio, and
    an empty mask.
    """
    try:
        picture = open_picture(data)
    except RequestRefused:
        raise MaskRefused(MaskProblem.UNREADABLE) from None
    width, height = size
    stretch = (picture.width / picture.height) / (width / height)
    if not 1 / (1 + _RATIO_TOLERANCE) <= stretch <= 1 + _RATIO_TOLERANCE:
        raise MaskRefused(MaskProblem.WRONG_RATIO)
    values = _resized(_brightness(picture), width, height)
    if not values.any():
        raise MaskRefused(MaskProblem.EMPTY)
    return packed(values)


def packed(values: Bytes) -> Mask:
    """Return values (height, width) from 0 to 255 as a mask."""
    height, width = values.shape
    _, data = cv2.imencode(".png", values, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    return Mask(width, height, data.tobytes())


def unpacked(mask: Mask) -> Bytes:
    """Return the mask's values, height by width."""
    return np.asarray(cv2.imdecode(np.frombuffer(mask.data, np.uint8), cv2.IMREAD_GRAYSCALE), np.uint8)


def grow_mask(mask: Mask, pixels: int) -> Mask:
    """Return the mask with its border moved outwards by this many pixels."""
    return packed(widened(unpacked(mask), pixels))


def widened(values: Bytes, pixels: int) -> Bytes:
    """Return mask values with the border moved outwards by this many pixels; a soft border is moved in four steps."""
    if pixels <= 0 or not values.any():
        return values
    height, width = values.shape
    part = box_of(values).grown(pixels, pixels).within(Box(0, 0, width, height))
    rows, columns = slice(part.top, part.bottom), slice(part.left, part.right)
    seen = values[rows, columns]
    grown_part = seen.copy()
    # A distance transform, because the cost of a dilation would grow with the square of `pixels`.
    for level in _LEVELS:
        core = seen >= level
        if core.any():
            reach = cv2.distanceTransform((~core).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
            np.maximum(grown_part, np.where(reach <= pixels, level, 0).astype(np.uint8), out=grown_part)
    wider = values.copy()
    wider[rows, columns] = grown_part
    return wider


def box_of(values: Bytes) -> Box:
    """Return the smallest box that holds all set pixels; 0 by 0 when none is set."""
    left, top, width, height = cv2.boundingRect(values)
    return Box(left, top, width, height)


def areas_of(values: Bytes) -> list[Box]:
    """Return the boxes of the connected areas, the largest area first."""
    # The first row is that of the background; a row is left, top, width, height and area.
    _, _, rows, _ = cv2.connectedComponentsWithStats((values > 0).astype(np.uint8), connectivity=8)
    return [Box(*row[:4]) for row in sorted(rows[1:].tolist(), key=lambda row: -row[4])]


def smoothstep(values: Floats) -> Floats:
    """Return 0 below 0, 1 above 1, and a smooth curve in between."""
    kept = np.clip(values, 0, 1)
    return np.asarray(kept * kept * (3 - 2 * kept), np.float32)


def _brightness(picture: Raster) -> Bytes:
    eight = _eight_bits(picture.pixels)
    colours = eight.shape[2] - picture.has_alpha
    grey = eight[..., 0] if colours == 1 else np.asarray(cv2.cvtColor(eight[..., :3], cv2.COLOR_RGB2GRAY), np.uint8)
    if not picture.has_alpha:
        return np.ascontiguousarray(grey)
    alpha = eight[..., -1]
    if _is_painted_layer(eight[..., :colours], alpha):
        return np.ascontiguousarray(alpha)
    return np.asarray((grey.astype(np.uint16) * alpha + 127) // 255, np.uint8)


def _is_painted_layer(colours: Bytes, alpha: Bytes) -> bool:
    drawn = alpha >= _DRAWN_ALPHA
    if not drawn.any() or int(alpha.min()) >= _DRAWN_ALPHA:
        return False
    strokes = colours[drawn]
    return bool((np.ptp(strokes, axis=0) <= _UNIFORM_LEVELS).all())


def _eight_bits(pixels: Pixels) -> Bytes:
    if pixels.dtype == np.uint8:
        return np.asarray(pixels, np.uint8)
    # Rounded up, so that a value slightly above 0 stays painted.
    return np.asarray((pixels.astype(np.uint32) + 256) // 257, np.uint8)


def _resized(values: Bytes, width: int, height: int) -> Bytes:
    if values.shape == (height, width):
        return values
    # Area resampling to shrink, linear to enlarge: the nearest pixel would lose thin strokes.
    is_smaller, is_hard = width * height < values.size, not ((values > 0) & (values < 255)).any()
    way = cv2.INTER_AREA if is_smaller else cv2.INTER_LINEAR
    scaled = np.asarray(cv2.resize(values, (width, height), interpolation=way), np.uint8)
    if not is_hard:
        return scaled
    return np.where(scaled > (0 if is_smaller else 127), 255, 0).astype(np.uint8)
