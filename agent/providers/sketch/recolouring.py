"""Gives pixels another colour and leaves them their light and texture.

In OKLab (Björn Ottosson, A perceptual color space for image processing, 2020), where the same step in lightness looks
the same in every hue.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]

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


def recoloured(pixels: Floats, colour: Floats) -> Floats:
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
