"""A picture made wider: the new part is the mask, and every pixel of the original stays exactly what it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent.errors import RequestRefused
from agent.imaging.masking import crops, masks
from agent.imaging.masking.edits import planned
from agent.imaging.masking.values import DEFAULT_FEATHER_PX, Box, EditPlan, Frame, Margins, MaskProblem, MaskRefusal
from agent.pictures import MAX_MEGAPIXELS, MAX_SIDE_PX
from agent.pixels import Raster, encode_png, open_picture


def margins_for(width: int, height: int, ratio: float) -> Margins:
    """Return what to add on both sides of one axis, evenly, so that the picture gets this ratio of width to height."""
    wider, higher = round(height * ratio), round(width / ratio)
    if wider > width:
        return Margins(left=(wider - width) // 2, right=wider - width - (wider - width) // 2)
    return Margins(top=max(0, higher - height) // 2, bottom=max(0, higher - height) - max(0, higher - height) // 2)


def plan_expansion(
    original: bytes, margins: Margins | float, frames: Sequence[Frame], feather_px: float = DEFAULT_FEATHER_PX
) -> EditPlan | MaskRefusal:
    """Return what to send for a wider picture; `margins` in pixels, or the ratio of width to height to come to.

    The plan's original is the wider canvas, in which the picture's edge goes on, blurred; finish it as any edit. The
    whole canvas is shown to the model unless that would be too coarse: then only the new part with its surroundings.

    Refused: a picture that cannot be read, nothing to add, a canvas larger than the studio takes in, no frame.
    """
    try:
        picture = open_picture(original)
    except RequestRefused:
        return MaskRefusal(MaskProblem.PICTURE_UNREADABLE)
    sides = margins if isinstance(margins, Margins) else margins_for(picture.width, picture.height, margins)
    canvas_size = (picture.width + sides.left + sides.right, picture.height + sides.top + sides.bottom)
    if min(sides.left, sides.right, sides.top, sides.bottom) < 0 or canvas_size == (picture.width, picture.height):
        return MaskRefusal(MaskProblem.NOTHING_TO_ADD)
    if max(canvas_size) > MAX_SIDE_PX or canvas_size[0] * canvas_size[1] > MAX_MEGAPIXELS * 1_000_000:
        numbers = {"width": canvas_size[0], "height": canvas_size[1], "limit": MAX_MEGAPIXELS}
        return MaskRefusal(MaskProblem.TOO_LARGE, numbers)
    pixels = crops.continued(picture.pixels, sides.top, sides.bottom, sides.left, sides.right)
    canvas = Raster(pixels, picture.profile)
    values = np.full((canvas.height, canvas.width), 255, np.uint8)
    values[sides.top : sides.top + picture.height, sides.left : sides.left + picture.width] = 0
    crop = crops.whole_crop(*canvas_size, frames)
    if crop is not None and crop.softness > crops.MAX_SOFTNESS:
        crop = crops.chosen_crop(masks.box_of(values), *canvas_size, frames)
    if crop is None:
        return MaskRefusal(MaskProblem.NO_FRAME)
    whole = [Box(0, 0, canvas.width, canvas.height)]
    return planned(encode_png(canvas), canvas, masks.packed(values), values, crop, frames, whole, feather_px)
