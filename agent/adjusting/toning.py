"""Light, colour and sharpness of pixels, in this order: warmth, brightness, contrast, saturation, sharpness.

This is the order of photo programs: the colour of the light first, because it is physical; sharpness last, because it
depends on the final picture. Everything is computed in 32-bit floats and rounded once, half up. Imports numpy and
OpenCV: import this module only when there are pixels to change.

* Warmth shifts the white point of linear light in mireds, like a photographic filter, with the colour of a black body
  after Kim et al. (US patent 7024034: a cubic spline of the Planckian locus); 100 is the amber filter Wratten 85
  (+112 mired). Each pixel's luminance (Rec. 709) is preserved.
* Brightness multiplies v / (1 - v) of the encoded value v by two for each 50: a gain in the shadows and a shoulder in
  the highlights, so nothing is clipped. It is Schlick's bias ("Fast Alternatives to Perlin's Bias and Gain
  Functions", Graphics Gems IV, 1994).
* Contrast above 0 is Schlick's gain from the same paper, an S-curve about mid grey whose slope there doubles for each
  90; below 0, values are scaled towards mid grey, down to two fifths at -100.
* Saturation scales the distance from the grey of equal luma (Rec. 709 weights on encoded values), as `saturate` does
  in W3C Filter Effects; -100 gives grey, 100 doubles it.
* Sharpness above 0 is an unsharp mask of the luma, below 0 a Gaussian blur. Both radii grow with the picture, so that
  a small copy looks like the large one, and both weight pixels by their opacity.

When warmth or saturation would move a colour out of range, the change is limited by the same share in all channels:
clipping each channel separately would change the preserved luminance, and the hue.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.adjusting.adjustment import Adjustment
from agent.pixels import Floats, Pixels

STRIP_PIXELS = 1 << 19
_WEIGHTS = np.array((0.2126, 0.7152, 0.0722), dtype=np.float32)
_DAYLIGHT_MIRED = 1_000_000 / 6504
_MIRED_AT_FULL = 112
_UNSHARP_AT_FULL = 2.0
_LEAST_UNSHARP_SIGMA_PX = 0.6


def toned(
    pixels: Pixels, opacity: NDArray[np.uint8] | None, adjustment: Adjustment, strip_pixels: int = STRIP_PIXELS
) -> Pixels:
    """Return adjusted pixels of the same shape and type; the input is not modified.

    `pixels` is (height, width, 1) for grey or (height, width, 3) for RGB, with 8 or 16 bits; `opacity` is
    (height, width), 255 where opaque. Works in strips of about `strip_pixels`, so a large picture needs little memory
    beyond its own. Warmth has no effect on grey pixels, because they have no colour channels.
    """
    if not adjustment.has_tones:
        return pixels
    if not (adjustment.warmth or adjustment.saturation or adjustment.sharpness):
        return _quantised(_curve(_levels(pixels), adjustment), pixels.dtype)[pixels]
    height, width = pixels.shape[:2]
    sigma_px = _sigma_px(adjustment.sharpness, width, height)
    margin = _reach_px(sigma_px)
    rows = max(1, strip_pixels // width, 4 * margin)
    result = np.empty_like(pixels)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        first, last = max(0, top - margin), min(height, bottom + margin)
        part = None if opacity is None else opacity[first:last]
        values = _adjusted_strip(pixels[first:last], part, adjustment, sigma_px)[:, top - first : bottom - first]
        result[top:bottom] = _quantised(values, pixels.dtype).transpose(1, 2, 0)
    return result


def _adjusted_strip(
    strip: Pixels, opacity: NDArray[np.uint8] | None, adjustment: Adjustment, sigma_px: float
) -> Floats:
    """Return encoded values, 0 to 1 and slightly beyond, with one plane per channel: (channels, height, width)."""
    values = _lit(np.ascontiguousarray(strip.transpose(2, 0, 1)), adjustment)
    if adjustment.saturation and len(values) == 3:
        luma = _weighed(values)
        values = _within_range(values, np.float32(adjustment.saturation / 100) * (values - luma))
    if adjustment.sharpness > 0:
        luma = _weighed(values) if len(values) == 3 else values[0]
        amount = np.float32(_UNSHARP_AT_FULL * adjustment.sharpness / 100)
        values = values + amount * (luma - _blurred(luma, opacity, sigma_px))
    elif adjustment.sharpness < 0:
        values = np.stack([_blurred(plane, opacity, sigma_px) for plane in values])
    return values


def _lit(planes: Pixels, adjustment: Adjustment) -> Floats:
    """Return the planes as encoded values after warmth, brightness and contrast."""
    if not adjustment.warmth or len(planes) != 3:
        return _curve(_levels(planes), adjustment)[planes]
    linear = _decoded(_levels(planes))[planes]
    luminance = _weighed(linear)
    warm = linear * _gains(adjustment.warmth)[:, None, None]
    warm *= luminance / np.maximum(_weighed(warm), 1e-9)
    warm = _within_range(linear, warm - linear)
    steps = _levels(np.empty(0, dtype=np.uint16))
    return _curve(_encoded(steps), adjustment)[_quantised(warm, np.dtype(np.uint16))]


def _levels(pixels: Pixels) -> Floats:
    """Return the value, 0 to 1, of every number that the pixel type can hold."""
    peak = np.iinfo(pixels.dtype).max
    return np.arange(peak + 1, dtype=np.float32) / np.float32(peak)


def _curve(values: Floats, adjustment: Adjustment) -> Floats:
    """Return encoded values 0 to 1 after brightness and contrast."""
    if adjustment.brightness:
        gain = np.float32(2 ** (adjustment.brightness / 50))
        values = gain * values / (1 + (gain - 1) * values)
    if adjustment.contrast > 0:
        slope = np.float32(2 ** (adjustment.contrast / 90))
        # Both halves of Schlick's formula in one: a function of the signed distance from mid grey.
        distance = 2 * values - 1
        values = np.asarray((1 + slope * distance / (1 + (slope - 1) * np.abs(distance))) / 2, dtype=np.float32)
    elif adjustment.contrast < 0:
        values = np.float32(0.5) + (values - np.float32(0.5)) * np.float32(1 + 0.6 * adjustment.contrast / 100)
    return values.astype(np.float32, copy=False)


def _decoded(values: Floats) -> Floats:
    """Return linear light of encoded values (IEC 61966-2-1)."""
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4).astype(np.float32)


def _encoded(values: Floats) -> Floats:
    """Return encoded values of linear light (IEC 61966-2-1)."""
    return np.where(values <= 0.0031308, values * 12.92, 1.055 * values ** (1 / 2.4) - 0.055).astype(np.float32)


@functools.cache
def _gains(warmth: int) -> Floats:
    """Return the factors for linear red, green and blue from the daylight white to the changed white."""
    changed = _glow(_DAYLIGHT_MIRED + _MIRED_AT_FULL * warmth / 100) / _glow(_DAYLIGHT_MIRED)
    return (changed / (changed @ _WEIGHTS)).astype(np.float32)


def _glow(mired: float) -> NDArray[np.float64]:
    """Return the linear sRGB colour of a black body at this many mireds, 40 to 400 (25000 to 2500 K)."""
    inverse = mired / 1000  # 1000 K divided by the temperature
    if mired >= 250:
        x = -0.2661239 * inverse**3 - 0.2343589 * inverse**2 + 0.8776956 * inverse + 0.179910
        y = -0.9549476 * x**3 - 1.37418593 * x**2 + 2.09137015 * x - 0.16748867
    else:
        x = -3.0258469 * inverse**3 + 2.1070379 * inverse**2 + 0.2226347 * inverse + 0.240390
        y = 3.0817580 * x**3 - 5.87338670 * x**2 + 3.75112997 * x - 0.37001483
    to_srgb = np.array(
        ((3.2404542, -1.5371385, -0.4985314), (-0.9692660, 1.8760108, 0.0415560), (0.0556434, -0.2040259, 1.0572252))
    )
    return np.asarray(to_srgb @ np.array((x / y, 1, (1 - x - y) / y)), dtype=np.float64)


def _weighed(planes: Floats) -> Floats:
    """Return the luminance of linear planes, or the luma of encoded ones."""
    return np.asarray(np.tensordot(_WEIGHTS, planes, 1), dtype=np.float32)


def _within_range(planes: Floats, change: Floats) -> Floats:
    """Return the colours changed as far as 0 to 1 allows, by the same share of the change in every channel."""
    room = np.where(change > 0, 1 - planes, planes)
    room /= np.maximum(np.abs(change), np.float32(1e-6))
    return np.asarray(planes + change * room.min(axis=0).clip(0, 1), dtype=np.float32)


def _sigma_px(sharpness: int, width: int, height: int) -> float:
    """Return the Gaussian's sigma: for the unsharp mask by the picture's size only, for the blur also by its amount."""
    side = math.sqrt(width * height)
    if sharpness > 0:
        return max(_LEAST_UNSHARP_SIGMA_PX, side / 1200)
    return -sharpness / 100 * side / 300


def _reach_px(sigma_px: float) -> int:
    # Only 0.3 % of the weight is beyond three sigmas.
    return math.ceil(3 * sigma_px)


def _blurred(plane: Floats, opacity: NDArray[np.uint8] | None, sigma_px: float) -> Floats:
    if opacity is None:
        side = 2 * _reach_px(sigma_px) + 1
        blurred = cv2.GaussianBlur(plane, (side, side), sigma_px, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred, dtype=np.float32)
    weight = opacity.astype(np.float32)
    covered = _blurred(weight, None, sigma_px)
    # Far from any opaque pixel there is no colour to average, so the value stays.
    return np.where(covered > 0.5, _blurred(plane * weight, None, sigma_px) / np.maximum(covered, 0.5), plane)


def _quantised(values: Floats, dtype: np.dtype[np.unsignedinteger[Any]]) -> Pixels:
    peak = np.float32(np.iinfo(dtype).max)
    scaled = values * peak
    scaled += np.float32(0.5)
    return np.clip(scaled, 0, peak, out=scaled).astype(dtype)
