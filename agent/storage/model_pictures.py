"""What models elsewhere are sent of a picture: a copy where the picture itself is more than they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.messages import ImageOrigin, ImagePart
from agent.pictures import MODEL_COPY_SIDE_PX, fitted_size

if TYPE_CHECKING:
    from agent.storage.images import ImageStore

_PNG_START = b"\x89PNG\r\n\x1a\n"
_RGB, _RGBA = 2, 6
# Beside the pixels, what a PNG that is sent as it is may hold before them.
_PLAIN_CHUNKS = frozenset({b"IHDR", b"sRGB", b"gAMA", b"cHRM", b"pHYs", b"sBIT", b"bKGD"})
_MOST_CHUNKS = 32


@dataclass(frozen=True)
class ModelPictures:
    """The `PictureBytes` of models elsewhere. They are sent 8 bits in sRGB, at most 4096 pixels a side, no metadata;
    what a model made goes back as it came.
    """

    images: ImageStore

    async def read(self, image: ImagePart) -> bytes:
        """Return the picture, or the copy that stands for it. Raises RequestRefused(PICTURE_NOT_FOUND)."""
        data = await self.images.read(image)
        # Models sign the bytes of their own pictures. Their JPEG and WebP need no copy: nothing here writes any.
        if image.thought_signature is not None or is_sendable(data):
            return data
        return await self.images.model_copy(image)

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        """Store the bytes durably and return the reference."""
        return await self.images.write(data, mime_type, origin)


def is_sendable(data: bytes) -> bool:
    """Return whether a picture of the studio is sent to models as it is: no PNG, or one of 8 bits in plain RGB or RGBA,
    not too large, with nothing told beside its pixels."""
    if not data.startswith(_PNG_START):
        return True
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if max(width, height) > MODEL_COPY_SIDE_PX or data[24] != 8 or data[25] not in {_RGB, _RGBA}:
        return False
    place = len(_PNG_START)
    for _ in range(_MOST_CHUNKS):
        kind = data[place + 4 : place + 8]
        if kind == b"IDAT":
            return True
        if kind not in _PLAIN_CHUNKS:
            return False
        place += 12 + int.from_bytes(data[place : place + 4], "big")
    return False


def copy_size(image: ImagePart) -> tuple[int, int]:
    """Return width and height in pixels of what models are sent of the picture; zeros while its size is unknown."""
    return fitted_size(image.width or 0, image.height or 0, MODEL_COPY_SIDE_PX)
