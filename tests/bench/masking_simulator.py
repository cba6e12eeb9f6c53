"""Answers of an image model as they might come: the photograph redrawn with drift, another colour, noise and spill.

The maps are known exactly, so what the alignment misses can be told to a hundredth of a pixel. It is a simulation: no
model was asked, and real answers may differ in ways that nobody has put in here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.adapters.masks import Frame
from tests.support.pixels import encoded

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

PHOTOS = Path(__file__).parents[1] / "data" / "photos"
NAMES = tuple(sorted(path.stem for path in PHOTOS.glob("*.webp")))
# Those with enough to see everywhere; the stars of "hubble" and the night of "rocket" are mostly black.
STRUCTURED = ("astronaut", "brick", "camera", "chelsea", "coffee", "gravel")
_WIDE_AT_1K = ((1264, 848), (1200, 896), (1152, 928), (1376, 768), (1584, 672), (2048, 512), (3072, 384))


def frames(*sizes: str) -> tuple[Frame, ...]:
    """Return the legal frames of a model that delivers these sizes (1K, 2K, 4K)."""
    made = []
    for size in sizes or ("1K", "2K", "4K"):
        times = int(size[0])
        made.append(Frame("1:1", size, 1024 * times, 1024 * times))
        for ratio, (long, short) in zip(("3:2", "4:3", "5:4", "16:9", "21:9", "4:1", "8:1"), _WIDE_AT_1K, strict=True):
            made.append(Frame(ratio, size, long * times, short * times))
            made.append(Frame(":".join(reversed(ratio.split(":"))), size, short * times, long * times))
    return tuple(made)


@dataclass(frozen=True)
class Redrawing:
    """How an answer differs from what was sent; lengths in pixels of the frame.

    `redraw` is how much of the fine structure is invented anew, `wobble_px` the root mean square of a smooth local
    displacement that changes over `wobble_length_px`, `bleed_px` how far the edit reaches beyond the mask.
    """

    shift: tuple[float, float] = (0.0, 0.0)
    scale: float = 1.0
    anisotropy: float = 0.0
    turn_deg: float = 0.0
    gain: tuple[float, ...] = (1.0, 1.0, 1.0)
    offset: tuple[float, ...] = (0.0, 0.0, 0.0)
    gamma: float = 1.0
    redraw: float = 0.0
    wobble_px: float = 0.0
    wobble_length_px: float = 90.0
    bleed_px: int = 0
    jpeg: int = 92
    size: tuple[int, int] | None = None
    seed: int = 0


def photograph(name: str, width: int, height: int, seed: int = 0) -> Bytes:
    """Return a photograph cut and enlarged to a size, with fine structure and grain, which enlarging takes away."""
    picture = np.asarray(Image.open(PHOTOS / f"{name}.webp").convert("RGB"))
    rows, columns = picture.shape[:2]
    factor = max(width / columns, height / rows)
    size = (max(width, round(columns * factor)), max(height, round(rows * factor)))
    large = cv2.resize(picture, size, interpolation=cv2.INTER_CUBIC)
    top, left = (size[1] - height) // 2, (size[0] - width) // 2
    cut = large[top : top + height, left : left + width].astype(np.float32)
    return _clipped(cut + fine_structure(cut, seed) + _noise(height, width, seed + 1, 0)[..., None] * 1.2)


def plain_sky(width: int, height: int, seed: int) -> Bytes:
    """Return a sky lighter below than above, with faint clouds of 40 to 90 pixels and grain: nothing to align by."""
    chance = np.random.default_rng(seed)
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    upper, lower = (np.array(colour) + chance.uniform(-20, 20, 3) for colour in ((70, 120, 190), (170, 200, 230)))
    clouds = _noise(height, width, seed + 1, 90) + 0.5 * _noise(height, width, seed + 2, 40)
    picture = upper * (1 - down) + lower * down + (clouds * float(chance.uniform(0, 6)))[..., None]
    return _clipped(picture + grain(width, height, float(chance.uniform(0.5, 4.5)), seed))


def grain(width: int, height: int, levels: float, seed: int) -> Floats:
    """Return grain of so many levels (standard deviation), the same in each channel: height × width × 1."""
    drawn = np.random.default_rng(seed + 11).standard_normal((height, width, 1))
    return np.asarray(drawn * levels, np.float32)


def fine_structure(picture: Floats, seed: int) -> Floats:
    """Return detail of one to four pixels, as strong as the picture around is rich in contrast."""
    grey = picture.mean(axis=2)
    contrast = np.sqrt(cv2.GaussianBlur((grey - cv2.GaussianBlur(grey, (0, 0), 6)) ** 2, (0, 0), 6))
    height, width = grey.shape
    detail = _noise(height, width, seed, 0.8) + 0.8 * _noise(height, width, seed + 7, 1.6)
    return np.asarray((0.35 * np.minimum(contrast, 24) * detail)[..., None], np.float32)


def blob(width: int, height: int, centre: tuple[float, float], radius: float, seed: int = 0) -> Bytes:
    """Return a mask (255 inside) with an uneven round outline."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    x, y = columns - centre[0], rows - centre[1]
    angle = np.arctan2(y, x)
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, 3)
    outline = 1 + 0.14 * np.sin(2 * angle + phases[0]) + 0.08 * np.sin(5 * angle + phases[1])
    return np.where(np.hypot(x, y) <= radius * outline, 255, 0).astype(np.uint8)


def edited(sent: Bytes, mask: Bytes, seed: int = 0, keep_px: int = 20, bleed_px: int = 0) -> Bytes:
    """Return what was sent with something new inside the mask, at least `keep_px` away from its border.

    With a bleed it reaches over the border instead, and so far beyond it.
    """
    reach = cv2.distanceTransform((mask > 0).astype(np.uint8), cv2.DIST_L2, 5)
    keep = min(keep_px, 0.6 * float(reach.max()))
    if bleed_px:
        reach = reach - cv2.distanceTransform((mask == 0).astype(np.uint8), cv2.DIST_L2, 5)
        keep = -bleed_px
    height, width = mask.shape
    other = photograph(NAMES[seed % len(NAMES)], width, height, seed + 3)[::-1] * np.float32(0.6) + (80, 20, 60)
    weight = np.asarray(np.clip((reach - keep) / 4, 0, 1), np.float32)[..., None]
    return _clipped(sent * (1 - weight) + other * weight)


class Answer:
    """An answer, and the map it was made by."""

    def __init__(self, truth: Bytes, how: Redrawing) -> None:
        """Redraw `truth`, the sent frame with the edit done perfectly."""
        self.height, self.width = truth.shape[:2]
        self._matrix = _matrix(how, self.width, self.height)
        self._inverse = np.asarray(cv2.invertAffineTransform(self._matrix))
        self._bend = _bend(how, self.width, self.height)
        rows, columns = np.mgrid[0 : self.height, 0 : self.width].astype(np.float32)
        back = self.back(np.stack([columns, rows], axis=-1))
        drawn = cv2.remap(truth, back[..., 0], back[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
        self.pixels = _recoloured(np.asarray(drawn, np.float32), how)
        if how.size:
            self.pixels = np.asarray(cv2.resize(self.pixels, how.size, interpolation=cv2.INTER_AREA), np.uint8)
        self.data = jpeg(self.pixels, how.jpeg)

    def back(self, points: Floats) -> Floats:
        """Return where in the sent frame the answer's points (..., x and y, in the frame's size) come from."""
        straight = np.asarray(points @ self._inverse[:, :2].T + self._inverse[:, 2], np.float32)
        if self._bend is None:
            return straight
        # Two axes at least, as OpenCV wants them.
        x, y = (np.ascontiguousarray(np.atleast_2d(points[..., axis]), np.float32) for axis in (0, 1))
        bent = cv2.remap(self._bend, x, y, interpolation=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(straight + bent.reshape(points.shape), np.float32)


def png(pixels: NDArray[np.generic]) -> bytes:
    """Return the picture (RGB order) as PNG."""
    return encoded(Image.fromarray(pixels))


def jpeg(pixels: Bytes, quality: int) -> bytes:
    """Return the picture as JPEG."""
    return encoded(Image.fromarray(pixels), "JPEG", quality=quality, subsampling=0 if quality > 90 else 2)


def drifting(seed: int, **more: Any) -> Redrawing:
    """Return a rigid drift as strong as was asked for: 24 px, 6 % zoom, 1 % anisotropy, half a degree, and a cast."""
    chance = np.random.default_rng(seed)
    angle, length = chance.uniform(0, 2 * np.pi), 24 * np.sqrt(chance.uniform())
    base = Redrawing(
        shift=(float(length * np.cos(angle)), float(length * np.sin(angle))),
        scale=float(chance.uniform(0.94, 1.06)),
        anisotropy=float(chance.uniform(-0.01, 0.01)),
        turn_deg=float(chance.uniform(-0.5, 0.5)),
        gain=tuple(map(float, chance.uniform(0.9, 1.1, 3))),
        offset=tuple(map(float, chance.uniform(-8, 8, 3))),
        gamma=float(chance.uniform(0.88, 1.14)),
        redraw=0.2,
        jpeg=int(chance.integers(84, 96)),
        seed=seed,
    )
    return replace(base, **more)


def _matrix(how: Redrawing, width: int, height: int) -> NDArray[np.float64]:
    turn = np.radians(how.turn_deg)
    spin = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    left = spin @ np.diag([how.scale * (1 + how.anisotropy / 2), how.scale * (1 - how.anisotropy / 2)])
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    return np.hstack([left, (centre + how.shift - left @ centre)[:, None]])


def _bend(how: Redrawing, width: int, height: int) -> Floats | None:
    if not how.wobble_px:
        return None
    sigma = how.wobble_length_px / 2
    axes = [_noise(height, width, how.seed + 101 + axis, sigma) for axis in (0, 1)]
    # The part that an affine map would explain is taken out: what remains is the wobble alone.
    rows, columns = np.mgrid[0:height:8, 0:width:8]
    terms = np.stack([np.ones(rows.size), columns.ravel(), rows.ravel()], axis=1)
    full_rows, full_columns = np.indices((height, width), np.float32)
    bent = []
    for axis in axes:
        (flat, across, down), *_ = np.linalg.lstsq(terms, axis[::8, ::8].ravel().astype(np.float64), rcond=None)
        bent.append(axis - np.float32(flat) - np.float32(across) * full_columns - np.float32(down) * full_rows)
    field = np.stack(bent, axis=-1)
    return np.asarray(field * (how.wobble_px / np.sqrt((field**2).sum(axis=-1).mean())), np.float32)


def _recoloured(drawn: Floats, how: Redrawing) -> Bytes:
    if how.redraw:
        fine = drawn - cv2.GaussianBlur(drawn, (0, 0), 1.5)
        anew = fine_structure(drawn, how.seed + 11)
        strength = fine.std() / max(float(anew.std()), 1e-3)
        drawn = drawn - how.redraw * fine + how.redraw * strength * anew
    toned = 255 * np.power(np.clip(drawn / 255, 0, 1), how.gamma)
    return _clipped(toned * np.array(how.gain, np.float32) + np.array(how.offset, np.float32))


def _noise(height: int, width: int, seed: int, sigma: float) -> Floats:
    chance = np.random.default_rng(seed)
    if sigma < 6:
        values = chance.standard_normal((height, width), dtype=np.float32)
        values = np.asarray(cv2.GaussianBlur(values, (0, 0), sigma), np.float32) if sigma else values
        return np.asarray(values / values.std(), np.float32)
    step = sigma / 3
    small = chance.standard_normal((int(height / step) + 8, int(width / step) + 8), dtype=np.float32)
    smooth = cv2.resize(cv2.GaussianBlur(small, (0, 0), 3), (width, height), interpolation=cv2.INTER_CUBIC)
    return np.asarray((smooth - smooth.mean()) / smooth.std(), np.float32)


def _clipped(values: NDArray[np.generic]) -> Bytes:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)
