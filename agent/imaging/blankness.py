"""Whether a picture shows anything at all: a model may deliver one that is black, white, or wholly see-through."""

from __future__ import annotations

import io

from PIL import Image

from agent.pictures import Blank

# So much noise, as a JPEG brings along, is still nothing.
_BLACK, _WHITE, _CLEAR = 16, 243, 6
# A JPEG can be read smaller than it is, which is faster; a star in a night sky must not be lost.
_EDGE_PX = 512


def blank_of(data: bytes) -> Blank | None:
    """Return in which way the picture is empty, or None when it shows something, or cannot be read.

    One colour all over is no reason: a person may have asked for red.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.draft("RGB", (_EDGE_PX, _EDGE_PX))
            return _blank(image)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _blank(image: Image.Image) -> Blank | None:
    if image.has_transparency_data and _span(image.convert("RGBA").getchannel("A"))[1] <= _CLEAR:
        return Blank.CLEAR
    spans = [_span(band) for band in image.convert("RGB").split()]
    if all(high <= _BLACK for _, high in spans):
        return Blank.BLACK
    return Blank.WHITE if all(low >= _WHITE for low, _ in spans) else None


def _span(band: Image.Image) -> tuple[float, float]:
    """Return the darkest and the brightest value of a picture of one band."""
    histogram = band.histogram()
    present = [value for value, count in enumerate(histogram) if count]
    return float(present[0]), float(present[-1])
