"""Small real pictures: made once for each size and palette, then told apart by a comment in the file."""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO

from PIL import Image, ImageDraw

from tests.wire_server.signatures import decoded

_PALETTES = (
    ("#f6d6a8", "#e2725b", "#6b4226"),
    ("#bfe3f2", "#fff3b0", "#3a7d44"),
    ("#2b2d42", "#edf2f4", "#8d99ae"),
    ("#ffd6e0", "#c1121f", "#780000"),
    ("#cdeac0", "#ff928b", "#386641"),
    ("#e0d7ff", "#ffb703", "#5a4fcf"),
)
_MIME_OF_FORMAT = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}


@dataclass(frozen=True)
class PictureFacts:
    """What a picture in a request really is."""

    width: int
    height: int
    mime_type: str


@lru_cache(maxsize=256)
def look_at(data: str) -> PictureFacts | None:
    """Return the size and type of the base64 picture, read to its last pixel; None when it can't be."""
    raw = decoded(data)
    if not raw:
        return None
    try:
        with Image.open(BytesIO(raw)) as picture:
            picture.load()
            return PictureFacts(picture.width, picture.height, _MIME_OF_FORMAT.get(picture.format or "", ""))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def paint(width: int, height: int, mime_type: str, subject: str) -> bytes:
    """Return a valid picture of exactly this size whose colours and bytes follow from the subject."""
    digest = hashlib.sha256(subject.encode()).hexdigest()
    base = _scene(width, height, mime_type, int(digest, 16) % len(_PALETTES))
    return _commented(base, mime_type, digest.encode())


@lru_cache(maxsize=64)
def _scene(width: int, height: int, mime_type: str, palette: int) -> bytes:
    sky, sun, ground = _PALETTES[palette]
    picture = Image.new("RGB", (width, height), sky)
    draw = ImageDraw.Draw(picture)
    radius = min(width, height) // 6
    middle = (width * 2 // 3, height // 3)
    draw.ellipse((middle[0] - radius, middle[1] - radius, middle[0] + radius, middle[1] + radius), fill=sun)
    draw.polygon([(0, height), (width // 3, height // 2), (width, height * 4 // 5), (width, height)], fill=ground)
    buffer = BytesIO()
    if mime_type == "image/png":
        picture.save(buffer, "PNG", compress_level=1)
    else:
        picture.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def _commented(data: bytes, mime_type: str, comment: bytes) -> bytes:
    if mime_type == "image/png":
        body = b"tEXtComment\0" + comment
        chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
        end_of_header = 8 + 25
        return data[:end_of_header] + chunk + data[end_of_header:]
    return data[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + data[2:]
