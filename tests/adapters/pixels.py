"""Pictures as bytes and as pixels, and drawn in a style."""

from __future__ import annotations

from agent import (
    MatchKind,
    StyleLibrary,
    StyleMatch,
    check_request,
    image_of,
    open_picture,
    preview_adjustment,
    probe_image,
    take_in_image,
)
from agent.adjusting.adjustment import MAX_SIDE_PIXELS
from agent.adjusting.applying import Adjusted, apply_adjustment
from agent.adjusting.toning import toned
from agent.imaging.checks import blank_of
from agent.imaging.intake import CleanPicture, shown_name
from agent.pixels import (
    Raster,
    eight_bits,
    encode_png,
    from_srgb,
    in_srgb,
    pixels_of,
    read_rgb,
    resized,
    shown_rgb,
    small_copy,
    to_srgb,
)
from agent.storage.styles import curated_descriptions, curated_looks, curated_styles
from agent.style_look import Border, StyleLook, Technique
from agent.style_rendering import render_in_style
