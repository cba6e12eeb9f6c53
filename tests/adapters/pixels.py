"""Pictures as bytes and as pixels."""

from __future__ import annotations

from agent.adjusting.applying import Adjusted, apply_adjustment, preview
from agent.adjusting.toning import toned
from agent.imaging.blankness import blank_of
from agent.imaging.intake import TakenIn, check_request, is_blank, probe, shown_name, take_in
from agent.picture_limits import MODEL_COPY_SIDE_PX
from agent.pixels import (
    Raster,
    eight_bits,
    encode_png,
    from_srgb,
    image_of,
    in_srgb,
    open_picture,
    pixels_of,
    read_rgb,
    resized,
    shown_rgb,
    small_copy,
    to_srgb,
)

__all__ = [
    "MODEL_COPY_SIDE_PX",
    "Adjusted",
    "Raster",
    "TakenIn",
    "apply_adjustment",
    "blank_of",
    "check_request",
    "eight_bits",
    "encode_png",
    "from_srgb",
    "image_of",
    "in_srgb",
    "is_blank",
    "open_picture",
    "pixels_of",
    "preview",
    "probe",
    "read_rgb",
    "resized",
    "shown_name",
    "shown_rgb",
    "small_copy",
    "take_in",
    "to_srgb",
    "toned",
]
