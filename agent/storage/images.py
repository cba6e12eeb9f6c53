"""The image store: pictures as files under their digest, their thumbnails, and large opaque blobs."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from agent.errors import ErrorCode, RequestRefused, StorageFailure
from agent.messages import ImageOrigin, ImagePart
from agent.storage.private_files import ContentFolder, write_private_file

_SUFFIX_OF_TYPE = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/heic": ".heic",
    "image/avif": ".avif",
}
_OTHER_SUFFIX = ".bin"
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "AVIF")
_MAX_PIXELS = 64_000_000
_THUMBNAIL_EDGES_PX = range(16, 2049)
# A picture is looked at several times right after it came: measured, checked, reviewed.
_FRESH_BYTES = 32 << 20


class _Fresh(NamedTuple):
    """The bytes of a picture that has just been written, and what its file looked like then."""

    data: bytes
    written: tuple[int, int] | None


class ImageStore:
    """Keeps pictures below `<home>/pictures` and blobs below `<home>/blobs`; all calls leave the event loop free.

    It is the `PictureBytes` of the providers. Nothing is created before the first write.
    """

    def __init__(self, home: Path) -> None:
        self._pictures = ContentFolder(home / "pictures")
        self._blobs = ContentFolder(home / "blobs")
        # A 48-megapixel photo takes 200 MB while it is decoded.
        self._decoding = asyncio.Semaphore(2)
        self._fresh: OrderedDict[str, _Fresh] = OrderedDict()

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        """Store the bytes durably and return the reference; `width` and `height` stay unknown.

        Raises StorageFailure with nothing half-written.
        """
        image, written = await asyncio.to_thread(self._write, data, mime_type, origin)
        self._remember(image.digest, _Fresh(data, written))
        return image

    def _write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> tuple[ImagePart, tuple[int, int] | None]:
        digest = self._pictures.write(data, _suffix(mime_type))
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        image = ImagePart(digest=digest, md5=md5, mime_type=mime_type, size_bytes=len(data), origin=origin)
        return image, _state(self._pictures.path(digest, _suffix(mime_type)))

    async def read(self, image: ImagePart) -> bytes:
        """Return the bytes behind the reference, checked against its digest.

        Raises RequestRefused(PICTURE_NOT_FOUND) when the file is missing or damaged.
        """
        fresh = self._fresh.get(image.digest)
        if fresh is not None and fresh.written == _state(self._pictures.path(image.digest, _suffix(image.mime_type))):
            return fresh.data
        return await asyncio.to_thread(self._read, image)

    def _remember(self, digest: str, fresh: _Fresh) -> None:
        if fresh.written is not None:
            self._fresh[digest] = fresh
        while sum(len(one.data) for one in self._fresh.values()) > _FRESH_BYTES:
            self._fresh.popitem(last=False)

    def _read(self, image: ImagePart) -> bytes:
        return self._find(image.digest, _suffix(image.mime_type), image.handle)

    def _find(self, digest: str, first_suffix: str = "", handle: str | None = None) -> bytes:
        # The type that a provider claims may be mended later, so the suffix is only where to look first.
        with contextlib.suppress(ValueError):
            for suffix in _suffixes(first_suffix):
                data = self._pictures.read(digest, suffix)
                if data is not None:
                    return data
        raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle or digest[:8])

    async def thumbnail(self, digest: str, edge_px: int) -> bytes:
        """Return the picture as WebP, its longer edge at most `edge_px` (16 to 2048), made once and kept.

        Raises ValueError for another size, RequestRefused when the picture is gone or cannot be decoded.
        """
        if edge_px not in _THUMBNAIL_EDGES_PX:
            raise ValueError(f"a thumbnail of {edge_px} px is not offered")
        kept = await asyncio.to_thread(self._kept_thumbnail, digest, edge_px)
        if kept is not None:
            return kept
        async with self._decoding:
            return await asyncio.to_thread(self._make_thumbnail, digest, edge_px)

    def _kept_thumbnail(self, digest: str, edge_px: int) -> bytes | None:
        try:
            return self._pictures.path(digest, f".{edge_px}.webp").read_bytes()
        except (OSError, ValueError):
            return None

    def _make_thumbnail(self, digest: str, edge_px: int) -> bytes:
        small = _shrink(self._find(digest), edge_px, digest[:8])
        # A full disk costs the kept copy only; the thumbnail itself is there.
        with contextlib.suppress(OSError):
            write_private_file(self._pictures.path(digest, f".{edge_px}.webp"), small)
        return small

    async def write_blob(self, data: bytes) -> str:
        """Store opaque bytes durably and return their digest. Raises StorageFailure."""
        return await asyncio.to_thread(self._blobs.write, data, "")

    async def read_blob(self, digest: str) -> bytes:
        """Return the bytes of a blob. Raises StorageFailure when they are missing or damaged."""
        return await asyncio.to_thread(self.read_blob_now, digest)

    def read_blob_now(self, digest: str) -> bytes:
        """The same as `read_blob`, for a caller that is already on a thread of its own."""
        try:
            data = self._blobs.read(digest, "")
        except ValueError:
            data = None
        if data is None:
            raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"blob {digest[:8]} is missing or damaged")
        return data


def _state(path: Path) -> tuple[int, int] | None:
    """Return by what one sees that a file was changed, None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _suffix(mime_type: str) -> str:
    return _SUFFIX_OF_TYPE.get(mime_type, _OTHER_SUFFIX)


def _suffixes(first: str) -> tuple[str, ...]:
    every = (*_SUFFIX_OF_TYPE.values(), _OTHER_SUFFIX)
    return (first, *(suffix for suffix in every if suffix != first)) if first else every


def _shrink(data: bytes, edge_px: int, name: str) -> bytes:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            if picture.width * picture.height > _MAX_PIXELS:
                raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=name)
            picture.draft("RGB", (edge_px, edge_px))
            picture.thumbnail((edge_px, edge_px))
            small = io.BytesIO()
            has_alpha = picture.has_transparency_data
            picture.convert("RGBA" if has_alpha else "RGB").save(small, "WEBP", quality=80, method=2)
            return small.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=name) from error
