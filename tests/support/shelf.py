"""A store of pictures in memory, as a provider sees it."""

from __future__ import annotations

import hashlib
import io

from PIL import Image

from agent import ErrorCode, ImageOrigin, ImagePart, RequestRefused
from tests.support.pixels import encoded


class Shelf:
    """Pictures in memory, and the order in which they were put there."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.origins: list[ImageOrigin] = []

    async def read(self, image: ImagePart) -> bytes:
        """Return the bytes of a picture. Raises RequestRefused when it is not there."""
        if image.digest not in self.held:
            raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=image.handle or "?")
        return self.held[image.digest]

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        """Keep a picture."""
        digest = hashlib.sha256(data).hexdigest()
        self.held[digest] = data
        self.origins.append(origin)
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return ImagePart(digest=digest, md5=md5, mime_type=mime_type, size_bytes=len(data), origin=origin)

    async def signature(self, digest: str) -> bytes | None:
        """Return a signature that was kept as a picture is."""
        return self.held.get(digest)

    async def upload(self, image: Image.Image, handle: str | None = None, kind: str = "PNG") -> ImagePart:
        """Keep a picture of a person."""
        part = await self.write(encoded(image, kind), f"image/{kind.lower()}", ImageOrigin.UPLOADED)
        return part.model_copy(update={"handle": handle})

    def image(self, part: ImagePart) -> Image.Image:
        """Return a picture that is kept."""
        return Image.open(io.BytesIO(self.held[part.digest]))
