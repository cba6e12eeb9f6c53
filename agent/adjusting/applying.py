"""A picture's bytes in, the adjusted picture's bytes out. Synchronous and busy: run it in a thread."""

from __future__ import annotations

import io
from dataclasses import dataclass

from PIL import Image

from agent.adjusting.adjustment import Adjustment
from agent.adjusting.framing import framed, framed_size
from agent.adjusting.opening import Opened, open_picture

MIME_TYPE = "image/png"
# Measured with a 16-megapixel photo: 4 % more bytes than level 3 for two thirds of its time.
_COMPRESS_LEVEL = 2
_COLOUR_MODELS = {"L": b"GRAY", "LA": b"GRAY", "I;16": b"GRAY", "RGB": b"RGB ", "RGBA": b"RGB "}


@dataclass(frozen=True)
class Adjusted:
    """An adjusted picture: the bytes of a PNG, and its size in pixels."""

    data: bytes
    mime_type: str
    width: int
    height: int


def apply_adjustment(data: bytes, adjustment: Adjustment) -> Adjusted:
    """Return the picture adjusted, as a PNG: first the frame (`framing`), then light and colour (`toning`).

    PNG whatever the source was: a JPEG or WebP compressed once more would change every pixel, also those that the
    adjustment leaves alone, and lose a little with each further one. Alpha and the ICC profile are kept, the latter
    as long as its colour model is the result's; values are adjusted as if they were sRGB. All other metadata is left
    out. The same bytes and adjustment give the same pixels.

    Grey of 16 bits stays so. Grey that takes on warmth becomes colour, which Pillow carries with 8 bits.

    Raises RequestRefused when the bytes are no picture, damaged, or more than 64 megapixels.
    """
    opened = open_picture(data)
    return encoded(adjusted(opened.image, adjustment), opened.profile)


def adjusted(image: Image.Image, adjustment: Adjustment) -> Image.Image:
    """Return the picture adjusted, the frame first; the given one, in mode L, LA, RGB, RGBA or I;16, stays as it is."""
    return _toned(framed(image, adjustment), adjustment)


def preview(data: bytes, adjustment: Adjustment, edge_px: int) -> Adjusted:
    """Return what `apply_adjustment` gives, small: the longer edge is at most `edge_px`, and never enlarged.

    The picture is made small before it is adjusted, so that the cost is that of a small one; a crop is shown as
    finely as the picture holds it. Most of the time goes into decoding: for a slider, hand in the small copy that a
    first call without any adjustment gives, and each further call costs what a small picture costs.

    Raises ValueError when `edge_px` is below 1, and what `apply_adjustment` raises.
    """
    if edge_px < 1:
        raise ValueError(f"a preview needs an edge of at least 1 pixel, not {edge_px}")
    opened = open_picture(data)
    small = _small(opened, adjustment, edge_px)
    small = framed(small, adjustment)
    if max(small.size) > edge_px:
        # Rounding at both steps may leave one pixel too many.
        small = small.crop((0, 0, min(small.width, edge_px), min(small.height, edge_px)))
    return encoded(_toned(small, adjustment), opened.profile)


def eight_bits(image: Image.Image) -> Image.Image:
    """Return grey of 16 bits (mode I;16) as grey of 8 (mode L), to the nearest level."""
    import numpy as np

    return Image.fromarray(((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8))


def encoded(image: Image.Image, profile: bytes | None) -> Adjusted:
    """Return the picture as a PNG, with the ICC profile when it speaks of the same colour model, else without.

    Empties the picture's `info`.
    """
    fits = profile is not None and profile[16:20] == _COLOUR_MODELS[image.mode]
    # What Pillow remembers of the source file must not pass into the new one.
    image.info = {}
    sink = io.BytesIO()
    image.save(sink, "PNG", compress_level=_COMPRESS_LEVEL, icc_profile=profile if fits else None)
    return Adjusted(data=sink.getvalue(), mime_type=MIME_TYPE, width=image.width, height=image.height)


def _small(opened: Opened, adjustment: Adjustment, edge_px: int) -> Image.Image:
    image = opened.image
    scale = edge_px / max(framed_size(*image.size, adjustment))
    if scale >= 1:
        return image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    # Nobody sees 16 bits in a preview, and Pillow shrinks 8 bits alone.
    plain = eight_bits(image) if image.mode == "I;16" else image
    return plain.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _toned(image: Image.Image, adjustment: Adjustment) -> Image.Image:
    if not adjustment.has_tones:
        return image
    # Only here, because both are heavy and a page that shows no picture needs neither.
    import numpy as np

    from agent.adjusting.toning import toned

    if adjustment.warmth:
        image = _coloured(image)
    alpha = image.getchannel("A") if image.mode in {"LA", "RGBA"} else None
    plain = image.convert(image.mode.removesuffix("A")) if alpha is not None else image
    opacity = None if alpha is None or not adjustment.sharpness else np.asarray(alpha)
    result = Image.fromarray(toned(np.asarray(plain), opacity, adjustment))
    if alpha is not None:
        result.putalpha(alpha)
    return result


def _coloured(image: Image.Image) -> Image.Image:
    match image.mode:
        case "I;16":
            return eight_bits(image).convert("RGB")
        case "L" | "LA":
            return image.convert("RGB" if image.mode == "L" else "RGBA")
        case _:
            return image
