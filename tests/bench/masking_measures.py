"""What an eye would see of a paste: colour differences in CIEDE2000, and the border's gradient."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Doubles = NDArray[np.float64]


def ring(mask: Bytes, width_px: float) -> NDArray[np.bool_]:
    """Return the pixels of the mask that are no further than so many from its border."""
    reach = cv2.distanceTransform((mask > 0).astype(np.uint8), cv2.DIST_L2, 5)
    return np.asarray((reach > 0) & (reach <= width_px))


def seam(original: Bytes, result: Bytes, mask: Bytes) -> float:
    """Return the gradient energy within two pixels of the border, as a multiple of the original's."""
    inside = cv2.distanceTransform((mask > 0).astype(np.uint8), cv2.DIST_L2, 5)
    outside = cv2.distanceTransform((mask == 0).astype(np.uint8), cv2.DIST_L2, 5)
    border = (inside <= 2) & (outside <= 2)
    return float(_energy(result)[border].mean() / max(1e-6, float(_energy(original)[border].mean())))


def colour_differences(one: Bytes, other: Bytes, where: NDArray[np.bool_]) -> Doubles:
    """Return CIEDE2000 of two sRGB pictures in the chosen pixels, after Sharma, Wu and Dalal (2005)."""
    first, second = (_lab(picture)[where].astype(np.float64) for picture in (one, other))
    return ciede2000(first, second)


def ciede2000(one: Doubles, other: Doubles) -> Doubles:
    """Return the difference of rows of L*, a*, b*."""
    chroma = (np.hypot(one[:, 1], one[:, 2]) + np.hypot(other[:, 1], other[:, 2])) / 2
    stretch = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    a1, a2 = one[:, 1] * stretch, other[:, 1] * stretch
    c1, c2 = np.hypot(a1, one[:, 2]), np.hypot(a2, other[:, 2])
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, one[:, 2]), (a2, other[:, 2])))
    grey = c1 * c2 == 0
    turn = (h2 - h1 + 180) % 360 - 180
    delta_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(np.where(grey, 0, turn) / 2))
    light, colour = (one[:, 0] + other[:, 0]) / 2, (c1 + c2) / 2
    hue = np.where(grey, h1 + h2, (h1 + turn / 2) % 360)
    t = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    weight_l = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    weight_c, weight_h = 1 + 0.045 * colour, 1 + 0.015 * colour * t
    turned = -2 * np.sqrt(colour**7 / (colour**7 + 25.0**7))
    turned = turned * np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    in_l, in_c, in_h = (other[:, 0] - one[:, 0]) / weight_l, (c2 - c1) / weight_c, delta_h / weight_h
    return np.asarray(np.sqrt(np.maximum(in_l**2 + in_c**2 + in_h**2 + turned * in_c * in_h, 0)))


def _lab(picture: Bytes) -> NDArray[np.float32]:
    return np.asarray(cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float32)


def _energy(picture: Bytes) -> NDArray[np.float32]:
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    across, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0) / 8, cv2.Sobel(grey, cv2.CV_32F, 0, 1) / 8
    return np.asarray(across * across + down * down, np.float32)
