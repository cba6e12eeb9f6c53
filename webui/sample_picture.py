"""A landscape to try things on where the visitor has brought no picture: computed here, nobody's photo."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

NAME = "sample.jpg"
_WIDTH, _HEIGHT = 960, 640
_SKY = ((108, 148, 190), (196, 206, 208), (238, 214, 184))
_GLOW, _SUN = (46.0, 34.0, 8.0), (40.0, 38.0, 30.0)
_NEAR, _FAR = np.array((38, 62, 66), np.float32), np.array((164, 180, 190), np.float32)
# Hills from the farthest to the nearest: how high they stand, how high they swing, how long their waves are.
_HILLS = ((0.52, 0.05, 5.0), (0.58, 0.07, 3.4), (0.66, 0.06, 2.3), (0.75, 0.05, 1.5))

Pixels = NDArray[np.floating]


@cache
def sample_picture() -> bytes:
    """Return the picture as JPEG, 960 by 640 pixels; the same bytes every time. The first time takes a moment."""
    out = io.BytesIO()
    pixels = np.clip(_landscape(), 0, 255).astype(np.uint8)
    Image.fromarray(pixels, "RGB").save(out, "JPEG", quality=90)
    return out.getvalue()


def _landscape() -> Pixels:
    across = np.linspace(0, 1, _WIDTH, dtype=np.float32)
    down = np.linspace(0, 1, _HEIGHT, dtype=np.float32)[:, None]
    picture = _sky(across, down)
    for number, (height, swing, length) in enumerate(_HILLS):
        below = down - (height - swing * _waves(across, length, number))
        near = (number + 1) / len(_HILLS)
        colour = _FAR * (1 - near) + _NEAR * near
        # Mist lies in the valleys: the foot of a hill is lighter than its ridge.
        mist = np.clip(below * 2.2, 0, 0.45)[..., None]
        # A ridge is as soft as two pixels are: without that it would have steps.
        cover = np.clip(below * _HEIGHT / 2 + 0.5, 0, 1)[..., None]
        picture += cover * (colour + mist * (_FAR - colour) - picture)
    grain = np.random.default_rng(7).standard_normal((_HEIGHT, _WIDTH, 1), dtype=np.float32)
    return picture + 2.5 * grain


def _sky(across: Pixels, down: Pixels) -> Pixels:
    stops = np.linspace(0, 0.62, len(_SKY))
    bands = [np.interp(down[:, 0], stops, [colour[band] for colour in _SKY]) for band in range(3)]
    sky = np.broadcast_to(np.stack(bands, axis=-1)[:, None], (_HEIGHT, _WIDTH, 3)).astype(np.float32)
    away = np.hypot((across - 0.68) * (_WIDTH / _HEIGHT), down - 0.4)
    glow, sun = np.exp(-((away / 0.2) ** 2)), np.clip((0.045 - away) * _HEIGHT / 2, 0, 1)
    lit = glow[..., None] * np.array(_GLOW, np.float32) + sun[..., None] * np.array(_SUN, np.float32)
    return np.asarray(sky + lit, np.float32)


def _waves(across: Pixels, length: float, number: int) -> Pixels:
    """Return a line of hills between about -1 and 1."""
    turns = 2 * np.pi * across * 6 / length
    waves = 0.6 * np.sin(turns + 1.7 * number) + 0.3 * np.sin(2.3 * turns + number) + 0.1 * np.sin(7.1 * turns)
    return np.asarray(waves, np.float32)
