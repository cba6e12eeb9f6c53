"""A picture's bytes in, the adjusted picture's bytes out. Synchronous and busy: run it in a thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.adjusting.adjustment import Adjustment
from agent.adjusting.framing import framed, framed_size

# numpy and OpenCV are heavy, and a page that shows no picture needs neither: they load with the first picture.
if TYPE_CHECKING:
    from agent.pixels import Raster

MIME_TYPE = "image/png"


@dataclass(frozen=True)
class Adjusted:
    """An adjusted picture: the bytes of a PNG, its size in pixels, and the bits of each channel."""

    data: bytes
    mime_type: str
    width: int
    height: int
    bit_depth: int


def apply_adjustment(data: bytes, adjustment: Adjustment) -> Adjusted:
    """Return the picture adjusted, as a PNG: first the frame (`framing`), then light and colour (`toning`).

    PNG whatever the source was: a JPEG or WebP compressed once more would change every pixel, also those that the
    adjustment leaves alone, and lose a little with each further one. Size, alpha, the ICC profile and the bit depth, 8
    or 16, are kept; values are adjusted as if they were sRGB. Grey that takes on warmth becomes colour, and leaves its
    profile. All other metadata is left out. The same bytes and adjustment give the same pixels.

    Raises RequestRefused when the bytes are no picture, damaged, or more than 64 megapixels.
    """
    from agent.pixels import open_picture

    return encoded(adjusted(open_picture(data), adjustment))


def adjusted(raster: Raster, adjustment: Adjustment) -> Raster:
    """Return the picture adjusted, the frame first; the given one stays as it is."""
    return _toned(replace(raster, pixels=framed(raster.pixels, adjustment)), adjustment)


def preview_adjustment(data: bytes, adjustment: Adjustment, edge_px: int) -> Adjusted:
    """Return what `apply_adjustment` gives, small and with 8 bits: the longer edge is at most `edge_px`.

    It is never enlarged, and made small before it is adjusted, so that the cost is that of a small picture; a crop is
    shown as finely as the picture holds it. Most of the time goes into decoding: for a slider, hand in the small copy
    that a first call without any adjustment gives, and each further call costs what a small picture costs.

    Raises ValueError when `edge_px` is below 1, and what `apply_adjustment` raises.
    """
    from agent.pixels import open_picture

    if edge_px < 1:
        raise ValueError(f"a preview needs an edge of at least 1 pixel, not {edge_px}")
    small = _small(open_picture(data), adjustment, edge_px)
    # Rounding at both steps may leave one pixel too many.
    pixels = framed(small.pixels, adjustment)[:edge_px, :edge_px]
    return encoded(_toned(replace(small, pixels=pixels), adjustment))


def encoded(raster: Raster) -> Adjusted:
    """Return the picture as a PNG, with its ICC profile when that speaks of the same colour model, else without."""
    from agent.pixels import encode_png

    size = {"width": raster.width, "height": raster.height, "bit_depth": raster.bit_depth}
    return Adjusted(data=encode_png(raster), mime_type=MIME_TYPE, **size)


def _small(raster: Raster, adjustment: Adjustment, edge_px: int) -> Raster:
    from agent.pixels import eight_bits, resized

    scale = edge_px / max(framed_size(raster.width, raster.height, adjustment))
    # Nobody sees 16 bits in a preview.
    plain = replace(raster, pixels=eight_bits(raster.pixels))
    if scale >= 1:
        return plain
    return resized(plain, max(1, round(raster.width * scale)), max(1, round(raster.height * scale)))


def _toned(raster: Raster, adjustment: Adjustment) -> Raster:
    if not adjustment.has_tones:
        return raster
    import numpy as np

    from agent.adjusting.toning import toned
    from agent.pixels import eight_bits

    pixels = raster.pixels
    if adjustment.warmth and raster.colours == 1:
        pixels = np.concatenate([pixels[..., :1]] * 3 + [pixels[..., 1:]], axis=2)
    if not raster.has_alpha:
        return replace(raster, pixels=toned(pixels, None, adjustment))
    opacity = eight_bits(pixels[..., -1:])[..., 0] if adjustment.sharpness else None
    colours = toned(np.ascontiguousarray(pixels[..., :-1]), opacity, adjustment)
    return replace(raster, pixels=np.concatenate([colours, pixels[..., -1:]], axis=2))
