"""The digest of a picture as it is seen, whatever stands around its pixels in the file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.errors import ErrorCode, RequestRefused

if TYPE_CHECKING:
    from PIL import Image

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "AVIF")
_DEEP = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_ROWS_AT_ONCE = 256


def pixels_digest(data: bytes) -> str:
    """Return the SHA-256 of the decoded pixels, in hexadecimal: the same with and without a recipe in the file.

    Of size and pixels as 8-bit RGBA, row by row from the top, of deep grey as it is stored; of an animation the first
    frame. Neither orientation nor colour profile is applied. Decoders of lossy files may differ by a shade, so another
    machine's digest of a JPEG need not be this one's.

    Raises RequestRefused(PICTURE_UNREADABLE) for what Pillow cannot decode or is larger than 64 megapixels.
    """
    from PIL import Image

    from agent.pictures import MAX_MEGAPIXELS, harden_pillow

    harden_pillow()
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            if picture.width * picture.height > MAX_MEGAPIXELS * 1_000_000:
                raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name="The picture")
            picture.load()
            digest = hashlib.sha256(f"{picture.width}x{picture.height}".encode())
            for rows in _strips(picture):
                digest.update(rows)
            return digest.hexdigest()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        detail = str(error)[:200]
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name="The picture", provider_detail=detail) from error


def _strips(picture: Image.Image) -> Iterator[bytes]:
    # A strip at a time: all of 64 megapixels would take another 256 MB.
    for top in range(0, picture.height, _ROWS_AT_ONCE):
        strip = picture.crop((0, top, picture.width, min(top + _ROWS_AT_ONCE, picture.height)))
        if picture.mode in _DEEP:
            yield strip.tobytes()
        else:
            yield (strip.convert("RGB") if strip.mode == "CMYK" else strip).convert("RGBA").tobytes()
