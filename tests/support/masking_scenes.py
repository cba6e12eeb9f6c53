"""Pictures with a mask, the plan for them, and answers whose drift is known."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.adapters.masks import (
    EditOutcome,
    EditPlan,
    Frame,
    Mask,
    MaskProblem,
    MaskRefused,
    packed,
    plan_edit,
    unpacked,
)
from tests.adapters.pixels import open_picture, read_rgb
from tests.bench.masking_simulator import Answer, Bytes, Redrawing, edited, photograph, png

Pixels = NDArray[np.uint8 | np.uint16]

# Small frames keep the tests fast; their ratios are as uneven as real ones.
FRAMES = (
    Frame("1:1", "1K", 512, 512),
    Frame("3:2", "1K", 632, 424),
    Frame("2:3", "1K", 424, 632),
    Frame("4:1", "1K", 1024, 256),
)
WIDTH, HEIGHT = 640, 520


@functools.cache
def photo(name: str = "coffee", width: int = WIDTH, height: int = HEIGHT) -> Bytes:
    """Return a photograph of that size, the same array each time."""
    return photograph(name, width, height, 1)


def stored(pixels: Pixels) -> bytes:
    """Return a picture of 8 or 16 bits (grey, RGB or RGBA) as PNG."""
    if pixels.dtype == np.uint8:
        return png(pixels)
    order = {2: None, 3: cv2.COLOR_RGB2BGR, 4: cv2.COLOR_RGBA2BGRA}[2 if pixels.ndim == 2 else pixels.shape[2]]
    _, data = cv2.imencode(".png", pixels if order is None else cv2.cvtColor(pixels, order))
    return data.tobytes()


def rectangle(left: int, top: int, right: int, bottom: int, size: tuple[int, int] = (WIDTH, HEIGHT)) -> Bytes:
    """Return a mask of that size (width, height), 255 in the rectangle."""
    mask = np.zeros((size[1], size[0]), np.uint8)
    mask[top:bottom, left:right] = 255
    return mask


@dataclass(frozen=True)
class Scene:
    """A picture as stored, what is to change, and the plan for it."""

    data: bytes
    mask: Bytes
    plan: EditPlan

    @property
    def pixels(self) -> Pixels:
        """Return the original's pixels, height by width by channels."""
        return open_picture(self.data).pixels

    @property
    def sent(self) -> Bytes:
        """Return the part of the picture that the model is shown."""
        return read_rgb(self.plan.crop)

    def area(self) -> Bytes:
        """Return the mask as the model is shown it, by the tint of the marked copy."""
        differs = (self.sent != read_rgb(self.plan.marked)).any(axis=2)
        return np.where(differs, 255, 0).astype(np.uint8)

    def answer(self, how: Redrawing | None = None) -> Answer:
        """Return an answer that draws something new inside the mask."""
        how = how or Redrawing()
        return Answer(edited(self.sent, self.area(), 2, keep_px=8, bleed_px=how.bleed_px), how)


def scene(pixels: Pixels, mask: Bytes, frames: tuple[Frame, ...] = FRAMES) -> Scene:
    """Return the scene of an edit that can be planned."""
    data = stored(pixels)
    return Scene(data, mask, plan_edit(data, packed(mask), frames))


def problem_of(work: Callable[..., object], *arguments: object) -> MaskProblem:
    """Return why the work is refused."""
    with pytest.raises(MaskRefused) as refused:
        work(*arguments)
    return refused.value.problem


def composite(outcome: EditOutcome) -> Pixels:
    """Return the composite's pixels, height by width by channels, as they are in the file."""
    data = outcome.composite
    assert data is not None
    return open_picture(data).pixels


def values(mask: Mask | None) -> Bytes:
    """Return a mask's values."""
    assert mask is not None
    return unpacked(mask)


def opened(data: bytes | None) -> Image.Image:
    """Return a picture that Pillow has decoded."""
    assert data is not None
    image = Image.open(io.BytesIO(data))
    image.load()
    return image
