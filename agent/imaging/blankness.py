"""Whether a picture shows anything at all, for a model may deliver one that is black, white or wholly see-through; and
whether it is see-through in places."""

from __future__ import annotations

import io

from PIL import Image

from agent.pictures import Blank

# So much noise, as a JPEG brings along, is still nothing.
_BLACK, _WHITE, _CLEAR = 16, 243, 6
# A JPEG can be read smaller than it is, which is faster; a star in a night sky must not be lost.
_EDGE_PX = 512
# Edges that are smoothed against nothing are no hole.
_OPAQUE, _SEE_THROUGH_SHARE = 250, 0.002


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


def is_see_through(data: bytes) -> bool:
    """Return whether a picture is see-through anywhere that would be noticed; False where it cannot be read."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if not image.has_transparency_data:
                return False
            histogram = image.convert("RGBA").getchannel("A").histogram()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False
    return sum(histogram[:_OPAQUE]) > _SEE_THROUGH_SHARE * sum(histogram)
