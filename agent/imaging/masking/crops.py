"""Which part of a picture to send: a crop around the mask, in the exact pixel ratio of a frame the model delivers.

Several areas always share one crop and one request: a single prompt describes them, it is paid for once, and nothing
is lost if the model has larger frames. If it has none, a notice states the loss as a factor, so that the user can
edit the areas one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from agent.imaging.masking.values import Box, Frame
from agent.pixels import Bytes, Pixels, Raster, shown_rgb

CONTEXT = 2.0
MIN_CONTEXT_PX = 48
MIN_SHORT_SIDE_PX = 384
# A larger frame is requested when one pixel of the answer would cover more than this many pixels of the picture.
MAX_SOFTNESS = 1.25
WORK_PIXELS = 1_100_000
# A frame may be stretched by this much (logarithm of the ratio) to fit a whole picture: 1200 by 896 counts as 4:3.
_MAX_STRETCH = 0.03
_MARKERS = {"magenta": (255, 0, 255), "lime green": (60, 255, 0), "cyan": (0, 255, 255)}
_MARKER_SAMPLES = 64
# A smaller value, on the scale 0 to 255, is a rounding error: less than a twenty-thousandth of a pixel.
_LEAST_SEEN = 0.01


@dataclass(frozen=True)
class Crop:
    """A part of the picture and the frame in which it is sent."""

    box: Box
    frame: Frame

    @property
    def softness(self) -> float:
        """The number of picture pixels per answer pixel along a side; below 1 the answer is finer than the picture."""
        return max(self.box.width / self.frame.width_px, self.box.height / self.frame.height_px)


def chosen_crop(mask_box: Box, width: int, height: int, frames: Sequence[Frame]) -> Crop | None:
    """Return the smallest crop with context around the mask's box, or None when there is no frame at all.

    The wanted context is twice the box's width and height, with a margin of at least 48 pixels and a shorter side of at
    least 384. A crop within the picture is preferred; if no ratio allows one, it extends beyond the picture, and that
    part is filled for the request and discarded afterwards.
    """
    if not frames:
        return None
    whole = Box(0, 0, width, height)
    ranked = [(*_ranked_box(mask_box, whole, frame), frame) for frame in _near_a_megapixel(frames)]
    _, box, frame = min(ranked, key=lambda each: each[0])
    return Crop(box, _sized(box, frame, frames))


def whole_crop(width: int, height: int, frames: Sequence[Frame]) -> Crop | None:
    """Return a crop of the whole picture in the frame that wastes the fewest pixels."""
    if not frames:
        return None
    whole = Box(0, 0, width, height)
    boxes = [(_around(whole, frame), frame) for frame in _near_a_megapixel(frames)]
    box, frame = min(boxes, key=lambda each: (_area(each[0]), each[1].width_px))
    return Crop(box, _sized(box, frame, frames))


def cut(picture: Raster, crop: Crop) -> Bytes:
    """Return the crop as 8-bit sRGB at the frame's size; outside the picture, its edge is extended and blurred."""
    shown = filled(picture, crop.box)
    size = (crop.frame.width_px, crop.frame.height_px)
    way = cv2.INTER_AREA if crop.softness > 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(shown, size, interpolation=way), np.uint8)


def filled(picture: Raster, box: Box) -> Bytes:
    """Return the box as 8-bit sRGB at the picture's scale; outside the picture, its edge is extended and blurred."""
    inside = box.within(Box(0, 0, picture.width, picture.height))
    part = picture.pixels[inside.top : inside.bottom, inside.left : inside.right]
    shown = shown_rgb(part, picture.profile)
    beyond = (inside.top - box.top, box.bottom - inside.bottom, inside.left - box.left, box.right - inside.right)
    return np.asarray(continued(shown, *beyond), np.uint8) if any(beyond) else shown


def continued(pixels: Pixels, above: int, below: int, before: int, after: int) -> Pixels:
    """Return the pixels with extra rows and columns that extend their edge, blurred; the data type stays the same."""
    wide = cv2.copyMakeBorder(pixels, above, below, before, after, cv2.BORDER_REPLICATE)
    height, width = wide.shape[:2]
    small = cv2.resize(wide, (64, 64), interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(small, (0, 0), 3, borderType=cv2.BORDER_REPLICATE)
    canvas = cv2.resize(soft, (width, height), interpolation=cv2.INTER_LINEAR)
    stored: Pixels = np.asarray(canvas.reshape(height, width, pixels.shape[2]), pixels.dtype)
    stored[above : above + pixels.shape[0], before : before + pixels.shape[1]] = pixels
    return stored


def in_frame(values: Bytes, box: Box, size: tuple[int, int], beyond: int = 0) -> Bytes:
    """Return the mask in the box at the frame's size (width, height): 255 wherever any part of a pixel is set.

    Uses area resampling, not the nearest pixel, to keep thin strokes. `beyond` is the value outside the picture.
    """
    height, width = values.shape
    inside = box.within(Box(0, 0, width, height))
    part = np.full((box.height, box.width), beyond, np.uint8)
    top, left = inside.top - box.top, inside.left - box.left
    shown = values[inside.top : inside.bottom, inside.left : inside.right]
    # Rounding must not remove a faint brush when the mask is downscaled.
    part[top : top + inside.height, left : left + inside.width] = np.where(shown > 0, 255, 0)
    if size[0] >= box.width and size[1] >= box.height:
        return np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_NEAREST_EXACT), np.uint8)
    seen = cv2.resize(part.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    return np.where(seen > _LEAST_SEEN, 255, 0).astype(np.uint8)


def work_size(width: int, height: int) -> tuple[int, int]:
    """Return width and height of the work frame: as given, or scaled down to about one megapixel."""
    factor = min(1.0, math.sqrt(WORK_PIXELS / (width * height)))
    return max(16, round(width * factor)), max(16, round(height * factor))


def marked(sent: Bytes, area: Bytes) -> tuple[Bytes, str]:
    """Return the crop with the area tinted and outlined, and the colour's name: the colour rarest in the crop."""
    name = _rarest_marker(sent)
    colour = np.array(_MARKERS[name], np.float32)
    shown, inside = sent.copy(), area > 0
    shown[inside] = np.rint(0.6 * sent[inside] + 0.4 * colour)
    reach = max(3, round(max(sent.shape[:2]) / 250))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach))
    shown[cv2.morphologyEx(inside.astype(np.uint8), cv2.MORPH_GRADIENT, kernel) > 0] = colour
    return shown, name


def _ranked_box(mask_box: Box, whole: Box, frame: Frame) -> tuple[tuple[bool, float, float], Box]:
    """Return the best crop for this frame and its rank; the smallest rank is the best."""
    needed = _needed(mask_box, whole)
    least = mask_box.grown(MIN_CONTEXT_PX, MIN_CONTEXT_PX).within(whole)
    full = _around(needed, frame)
    if full.width <= whole.width and full.height <= whole.height:
        return (False, 0.0, _area(full)), _kept_near(full, whole)
    stretched = whole.width / whole.height / (frame.width_px / frame.height_px)
    if abs(math.log(stretched)) <= _MAX_STRETCH:
        return (False, 0.0, _area(whole)), whole
    inner = _largest(whole, frame)
    if inner.width >= least.width and inner.height >= least.height:
        placed = _kept_near(_centred(inner, needed), whole)
        if placed.holds(least):
            return (False, 1 - _area(placed) / _area(full), _area(placed)), placed
    return (True, _area(full) / max(1.0, _area(full.within(whole))), _area(full)), _kept_near(full, whole)


def _needed(mask_box: Box, whole: Box) -> Box:
    across = max(MIN_CONTEXT_PX, round((CONTEXT - 1) / 2 * mask_box.width))
    down = max(MIN_CONTEXT_PX, round((CONTEXT - 1) / 2 * mask_box.height))
    wide = mask_box.grown(across, down)
    more_across = max(0, math.ceil((MIN_SHORT_SIDE_PX - wide.width) / 2))
    more_down = max(0, math.ceil((MIN_SHORT_SIDE_PX - wide.height) / 2))
    return wide.grown(more_across, more_down).within(whole)


def _around(needed: Box, frame: Frame) -> Box:
    scale = max(needed.width / frame.width_px, needed.height / frame.height_px)
    width = max(needed.width, round(frame.width_px * scale))
    height = max(needed.height, round(frame.height_px * scale))
    return Box(needed.left - (width - needed.width) // 2, needed.top - (height - needed.height) // 2, width, height)


def _largest(whole: Box, frame: Frame) -> Box:
    scale = min(whole.width / frame.width_px, whole.height / frame.height_px)
    width, height = round(frame.width_px * scale), round(frame.height_px * scale)
    return Box(0, 0, max(1, min(whole.width, width)), max(1, min(whole.height, height)))


def _centred(box: Box, over: Box) -> Box:
    left, top = over.left + (over.width - box.width) // 2, over.top + (over.height - box.height) // 2
    return Box(left, top, box.width, box.height)


def _kept_near(box: Box, whole: Box) -> Box:
    # On an axis on which it fits, the crop stays within the picture; on the other, the picture stays within the crop.
    # The middle of the three places is the wanted one, held between the two others, whichever of them is smaller.
    _, left, _ = sorted((whole.left, box.left, whole.right - box.width))
    _, top, _ = sorted((whole.top, box.top, whole.bottom - box.height))
    return Box(left, top, box.width, box.height)


def _sized(box: Box, frame: Frame, frames: Sequence[Frame]) -> Frame:
    same = sorted((each for each in frames if each.ratio == frame.ratio), key=lambda each: each.width_px)
    larger = (each for each in same if each.width_px >= frame.width_px)
    return next((each for each in larger if Crop(box, each).softness <= MAX_SOFTNESS), same[-1])


def _near_a_megapixel(frames: Sequence[Frame]) -> list[Frame]:
    def distance(frame: Frame) -> float:
        return abs(math.log(frame.width_px * frame.height_px / (1 << 20)))

    size = min(frames, key=distance).size
    return [frame for frame in frames if frame.size == size]


def _area(box: Box) -> float:
    return float(box.width * box.height)


def _rarest_marker(sent: Bytes) -> str:
    small = cv2.resize(sent, (_MARKER_SAMPLES, _MARKER_SAMPLES), interpolation=cv2.INTER_AREA).astype(np.float32)

    def nearest(colour: tuple[int, int, int]) -> float:
        return float(np.percentile(np.linalg.norm(small - np.array(colour, np.float32), axis=2), 1))

    return max(_MARKERS, key=lambda name: nearest(_MARKERS[name]))
