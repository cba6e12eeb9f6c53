"""Turns with a mask or an expansion: photographs, masks over them, and image models whose answers drift as known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np

from agent import EditRecord, ImagePart, Mask, Picture, Settings
from tests.adapters.masks import packed
from tests.adapters.pixels import open_picture
from tests.adapters.records import ImageStore
from tests.bench.masking_simulator import Answer as SimulatedAnswer
from tests.bench.masking_simulator import Bytes, Redrawing, edited
from tests.support.masking_scenes import Pixels
from tests.wire_server import Answer, PictureAnswer, WireRequest

DRIFTED = Redrawing(shift=(9.0, -6.0), scale=1.02, gain=(1.06, 0.97, 0.95), offset=(4.0, -3.0, 6.0))


def mask_over(handle: str, area: Bytes, feather_px: int | None = None) -> Mask:
    """Return the person's mask over a picture, 255 where it may change."""
    return Mask(packed(area).data, handle, feather_px)


def read_now(settings: Settings, image: ImagePart) -> bytes:
    """Return the bytes of a picture of the studio, from code that cannot wait."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, ImageStore(settings.home).read(image)).result()


def pixels_of(data: bytes) -> Pixels:
    """Return a file's pixels, height by width by channels, as deep as they are."""
    return open_picture(data).pixels


def painted_inside(how: Redrawing = DRIFTED) -> Callable[[WireRequest], Answer]:
    """Return an image model behind Gemini's API that paints something new inside what the marked copy marks, as far as
    the request itself tells, and drifts everywhere."""

    def paint(request: WireRequest) -> Answer:
        sent, marked = (pixels_of(data) for data in request.pictures)
        area = np.where((sent != marked).any(axis=2), 255, 0).astype(np.uint8)
        return PictureAnswer(data=redrawn(np.asarray(sent, np.uint8), area, how), mime="image/jpeg")

    return paint


def redrawn(sent: Bytes, area: Pixels, how: Redrawing, keep_px: int = 8) -> bytes:
    """Return the answer to what was sent as JPEG: something new in the area, all of it redrawn."""
    truth = edited(sent, np.asarray(area, np.uint8), 2, keep_px=keep_px, bleed_px=how.bleed_px)
    return SimulatedAnswer(truth, how).data


def sky(width: int, height: int) -> Bytes:
    """Return a sky without a cloud, with a camera's grain: too little to judge by where an answer belongs."""
    column = np.linspace(150, 210, height, dtype=np.float32)[:, None, None]
    grain = np.random.default_rng(0).normal(0, 3, (height, width, 3))
    return np.asarray(np.clip(np.rint(column + np.array([-40, 0, 30]) + grain), 0, 255), np.uint8)


def deep(picture: Bytes) -> Pixels:
    """Return the picture with 16 bits and an alpha that has every tone, and colours under what is clear."""
    height, width = picture.shape[:2]
    colours = picture.astype(np.uint16) * 257 + 3
    alpha = np.full((height, width, 1), 65535, np.uint16)
    alpha[: height // 6] = np.linspace(0, 65535, width, dtype=np.uint16)[None, :, None]
    return np.concatenate([colours, alpha], axis=2)


def changed(before: Pixels, after: Pixels) -> Bytes:
    """Return where two pictures of one size differ in any channel, 255 there."""
    assert before.shape == after.shape
    assert before.dtype == after.dtype
    return np.where((before != after).any(axis=2), 255, 0).astype(np.uint8)


def jpeg(picture: Bytes) -> bytes:
    """Return a picture as a model delivers it."""
    _, data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    return data.tobytes()


def edit_of(picture: Picture) -> EditRecord:
    """Return what came of a masked edit."""
    assert picture.edit is not None
    return picture.edit
