"""The image store: pictures named by digest, thumbnails, large opaque blobs, and reduced copies for models."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cachetools import LRUCache

from agent.errors import ErrorCode, RequestRefused, StorageFailure
from agent.messages import ContentPart, ImageOrigin, ImagePart, SignedPart
from agent.pictures import MODEL_COPY_SIDE_PX, fitted_size
from agent.storage.private_files import ContentFolder, DiskReserve, StagedFile, file_state, write_private_file

_log = logging.getLogger(__name__)

_SUFFIX_OF_TYPE = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/heic": ".heic",
    "image/avif": ".avif",
}
_OTHER_SUFFIX = ".bin"
_THUMBNAIL_EDGES_PX = range(16, 2049)
_LARGE_SIGNATURE_BYTES = 4096
# A picture is read several times right after it was made: measured, checked, reviewed.
_FRESH_BYTES = 32 << 20
# The limit for pictures kept in memory because the disk is full.
_MOST_UNSAVED_BYTES = 1 << 30


@dataclass(frozen=True)
class StagedImage:
    """A picture that is on disk but not in the store yet: call `keep` or `drop`."""

    image: ImagePart
    file: StagedFile

    async def keep(self) -> ImagePart:
        """Move the picture into the store and return its reference. Raises StorageFailure."""
        await asyncio.to_thread(self.file.keep)
        return self.image

    async def drop(self) -> None:
        """Remove the picture unless it was kept."""
        await asyncio.to_thread(self.file.drop)


class ImageStore:
    """Stores pictures in `<home>/pictures`, blobs in `<home>/blobs`, and original uploads in `<home>/originals`.

    Originals are written and removed, but never read. No call blocks the event loop. Nothing is created before the
    first write. When the disk has no room for a generated picture, which may have been paid for, it stays in memory: it
    is read and shown like any other, and written as soon as there is room (`save_unsaved`). It is lost when the process
    ends before that. `reserve` is the disk space reserved for such pictures.
    """

    def __init__(self, home: Path) -> None:
        self._pictures = ContentFolder(home / "pictures")
        self._originals = ContentFolder(home / "originals")
        self._blobs = ContentFolder(home / "blobs")
        # A 48-megapixel photo takes 200 MB while it is decoded.
        self._decoding = asyncio.Semaphore(2)
        # By digest, the bytes of pictures just written, and the state of their files at that time.
        self._fresh: LRUCache[str, tuple[bytes, object]] = LRUCache(_FRESH_BYTES, lambda fresh: len(fresh[0]))
        self.reserve = DiskReserve(home)
        # By digest, with the file's suffix; threads change it, one entry at a time.
        self._unsaved: dict[str, tuple[bytes, str]] = {}
        self._offered: dict[tuple[str, str], ImagePart] = {}

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        """Persist the bytes of a picture and return the reference; `width` and `height` stay unknown.

        When the disk is full, the bytes are kept in memory, except those of an upload, which the user still has. Raises
        StorageFailure, with nothing half-written, when the disk fails otherwise.
        """
        image, written = await asyncio.to_thread(self._write, data, mime_type, origin)
        if written is not None and len(data) <= _FRESH_BYTES:
            self._fresh[image.digest] = data, written
        return image

    def _write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> tuple[ImagePart, object]:
        suffix = _suffix(mime_type)
        image = _part(hashlib.sha256(data).hexdigest(), data, mime_type, origin)
        try:
            self._write_with_the_reserve(data, suffix)
        except StorageFailure as failure:
            unsaved_bytes = sum(len(kept) for kept, _ in list(self._unsaved.values()))
            is_kept = origin is not ImageOrigin.UPLOADED and unsaved_bytes + len(data) <= _MOST_UNSAVED_BYTES
            if failure.code is not ErrorCode.DISK_FULL or not is_kept:
                raise
            self._unsaved[image.digest] = data, suffix
        return image, file_state(self._pictures.path(image.digest, suffix))

    def _write_with_the_reserve(self, data: bytes, suffix: str) -> None:
        try:
            self._pictures.write(data, suffix)
        except StorageFailure as failure:
            if failure.code is not ErrorCode.DISK_FULL or not self.reserve.give_back():
                raise
            self._pictures.write(data, suffix)

    def offer(self, conversation_id: str, image: ImagePart) -> None:
        """Offer a picture that could not be recorded for download in its conversation."""
        self._offered[conversation_id, image.digest] = image

    def withdraw(self, image: ImagePart) -> None:
        """Stop offering a picture: it is on record."""
        self._offered = {key: kept for key, kept in self._offered.items() if kept.digest != image.digest}

    def offered(self, conversation_id: str, digest: str) -> ImagePart:
        """Return an offered picture. Raises RequestRefused(PICTURE_NOT_FOUND)."""
        found = self._offered.get((conversation_id, digest))
        if found is None:
            raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=digest[:8])
        return found

    def is_unsaved(self, digest: str) -> bool:
        """Whether the picture is only in memory, because the disk has no room for it."""
        return digest in self._unsaved

    async def save_unsaved(self) -> bool:
        """Write pictures that are only in memory, as far as there is room; return whether none is left."""
        for digest, (data, suffix) in list(self._unsaved.items()):
            try:
                await asyncio.to_thread(self._pictures.write, data, suffix)
            except StorageFailure:
                break
            self._unsaved.pop(digest, None)
        return not self._unsaved

    async def stage(self, data: bytes, mime_type: str, origin: ImageOrigin) -> StagedImage:
        """Write the bytes durably, but invisibly until they are kept; `width` and `height` stay unknown.

        Housekeeping removes staged files that a process neither kept nor dropped. Raises StorageFailure.
        """
        return await asyncio.to_thread(self._stage, data, mime_type, origin)

    def _stage(self, data: bytes, mime_type: str, origin: ImageOrigin) -> StagedImage:
        file = self._pictures.stage(data, _suffix(mime_type))
        return StagedImage(_part(file.digest, data, mime_type, origin), file)

    async def stage_original(self, data: bytes) -> StagedFile:
        """Write a user's file as it came, to be kept or dropped as with `stage`. Raises StorageFailure."""
        return await asyncio.to_thread(self._originals.stage, data, "")

    async def has(self, image: ImagePart) -> bool:
        """Return whether the picture's file exists; it is not opened."""
        return await asyncio.to_thread(self._has, image)

    def _has(self, image: ImagePart) -> bool:
        suffixes = _suffixes(_suffix(image.mime_type))
        return image.digest in self._unsaved or any(
            self._pictures.path(image.digest, suffix).is_file() for suffix in suffixes
        )

    async def read(self, image: ImagePart) -> bytes:
        """Return the bytes of the picture, verified against its digest.

        Raises RequestRefused(PICTURE_FILE_MISSING) when the file is missing or damaged.
        """
        fresh, suffix = self._fresh.get(image.digest), _suffix(image.mime_type)
        if fresh is not None and fresh[1] == file_state(self._pictures.path(image.digest, suffix)):
            return fresh[0]
        return await asyncio.to_thread(self._find, image.digest, suffix, image.handle)

    def _find(self, digest: str, first_suffix: str = "", handle: str | None = None) -> bytes:
        if digest in self._unsaved:
            return self._unsaved[digest][0]
        # A provider's claimed type may be corrected later, so the suffix is only where to look first.
        with contextlib.suppress(ValueError):
            for suffix in _suffixes(first_suffix):
                data = self._pictures.read(digest, suffix)
                if data is not None:
                    return data
        if handle is None:
            raise RequestRefused(ErrorCode.PICTURE_GONE)
        raise RequestRefused(ErrorCode.PICTURE_FILE_MISSING, handle=handle)

    async def thumbnail(self, digest: str, edge_px: int, handle: str | None = None) -> bytes:
        """Return the picture as WebP, its longer edge at most `edge_px` (16 to 2048); made once and kept.

        `handle` names the picture in an error.

        Raises ValueError for another size, RequestRefused when the picture is gone or cannot be decoded.
        """
        if edge_px not in _THUMBNAIL_EDGES_PX:
            raise ValueError(f"a thumbnail of {edge_px} px is not offered")
        name = handle or "This picture"
        return await self._copy(digest, handle, f".{edge_px}.webp", lambda data: _thumbnail(data, edge_px, name))

    async def model_copy(self, image: ImagePart) -> bytes:
        """Return the copy of the picture for remote models: PNG, 8 bits, sRGB, RGB or RGBA, without metadata.

        Its longer side is at most 4096 pixels. It is made once and kept. Raises RequestRefused when the picture is gone
        or cannot be decoded.
        """
        return await self._copy(image.digest, image.handle, f".{MODEL_COPY_SIDE_PX}.png", _for_models)

    async def _copy(self, digest: str, handle: str | None, suffix: str, make: Callable[[bytes], bytes]) -> bytes:
        """Return the kept copy of a picture with this suffix, or make and keep it."""
        kept = await asyncio.to_thread(self._kept_copy, digest, suffix)
        if kept is not None:
            return kept
        async with self._decoding:
            return await asyncio.to_thread(self._make_copy, digest, handle, suffix, make)

    def _kept_copy(self, digest: str, suffix: str) -> bytes | None:
        try:
            return self._pictures.path(digest, suffix).read_bytes()
        except (OSError, ValueError):
            return None

    def _make_copy(self, digest: str, handle: str | None, suffix: str, make: Callable[[bytes], bytes]) -> bytes:
        copy = make(self._find(digest, handle=handle))
        # On a full disk the copy is not kept, but still returned.
        with contextlib.suppress(OSError):
            write_private_file(self._pictures.path(digest, suffix), copy)
        return copy

    async def write_blob(self, data: bytes) -> str:
        """Store opaque bytes durably and return their digest. Raises StorageFailure."""
        return await asyncio.to_thread(self._blobs.write, data, "")

    async def keep_signature(self, part: ContentPart) -> ContentPart:
        """Return the part as it is recorded: a signature of over 4096 bytes is moved to a blob, named by its digest.

        On a full disk the part stays as it is.
        """
        signature = part.thought_signature if isinstance(part, SignedPart) else None
        if signature is None or len(signature) <= _LARGE_SIGNATURE_BYTES:
            return part
        with contextlib.suppress(StorageFailure):
            digest = await self.write_blob(signature)
            return part.model_copy(update={"thought_signature": None, "signature_digest": digest})
        return part

    async def signature(self, digest: str) -> bytes | None:
        """Return a large signature, or None when it is lost: its part can still be sent, but unsigned."""
        try:
            return await self.read_blob(digest)
        except StorageFailure:
            _log.warning("a thought signature is lost (blob %s)", digest[:8])
            return None

    async def with_known_signatures(self, parts: Iterable[ContentPart]) -> tuple[ContentPart, ...]:
        """Return the parts; one whose large signature is lost becomes unsigned."""
        known = []
        for part in parts:
            digest = part.signature_digest if isinstance(part, SignedPart) else None
            is_lost = digest is not None and await self.signature(digest) is None
            known.append(part.unsigned() if isinstance(part, SignedPart) and is_lost else part)
        return tuple(known)

    def blob_bytes(self, digests: Iterable[str]) -> int:
        """Return the total size of these blobs; missing ones count 0. It checks each file."""
        size = 0
        for digest in digests:
            with contextlib.suppress(OSError, ValueError):
                size += self._blobs.path(digest, "").stat().st_size
        return size

    async def read_blob(self, digest: str) -> bytes:
        """Return the bytes of a blob. Raises StorageFailure when they are missing or damaged."""
        try:
            data = await asyncio.to_thread(self._blobs.read, digest, "")
        except ValueError:
            data = None
        if data is None:
            raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"blob {digest[:8]} is missing or damaged")
        return data


def _suffix(mime_type: str) -> str:
    return _SUFFIX_OF_TYPE.get(mime_type, _OTHER_SUFFIX)


def _suffixes(first: str) -> tuple[str, ...]:
    every = (*_SUFFIX_OF_TYPE.values(), _OTHER_SUFFIX)
    return (first, *(suffix for suffix in every if suffix != first)) if first else every


def _part(digest: str, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return ImagePart(digest=digest, md5=md5, mime_type=mime_type, size_bytes=len(data), origin=origin)


def _thumbnail(data: bytes, edge_px: int, name: str) -> bytes:
    from agent.pixels import small_copy

    try:
        sink = io.BytesIO()
        small_copy(data, edge_px).save(sink, "WEBP", quality=80, method=2)
        return sink.getvalue()
    except RequestRefused as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=name) from error


def _for_models(data: bytes) -> bytes:
    from agent.pixels import Raster, encode_png, pixels_of, small_copy

    return encode_png(Raster(pixels_of(small_copy(data, MODEL_COPY_SIDE_PX))))


_PNG_START = b"\x89PNG\r\n\x1a\n"
_RGB, _RGBA = 2, 6
# The chunks that a PNG that is sent unchanged may have before its pixels.
_PLAIN_CHUNKS = frozenset({b"IHDR", b"sRGB", b"gAMA", b"cHRM", b"pHYs", b"sBIT", b"bKGD"})
_MOST_CHUNKS = 32


@dataclass(frozen=True)
class ModelPictures:
    """The `PictureBytes` of remote models, which receive 8-bit sRGB, at most 4096 pixels a side, without metadata.

    A picture that a model made is sent back unchanged.
    """

    images: ImageStore

    async def read(self, image: ImagePart) -> bytes:
        """Return the picture, or its copy for models. Raises RequestRefused when it is missing or unreadable."""
        data = await self.images.read(image)
        # Models sign the bytes of their own pictures. JPEG and WebP files need no copy: nothing here writes any.
        if image.is_signed or is_sendable(data):
            return data
        return await self.images.model_copy(image)

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        """Persist the bytes and return the reference."""
        return await self.images.write(data, mime_type, origin)

    async def signature(self, digest: str) -> bytes | None:
        """Return a large signature, or None when it is lost."""
        return await self.images.signature(digest)


def is_sendable(data: bytes) -> bool:
    """Return whether a picture is sent to models unchanged.

    So are all files but PNG, and a PNG of 8 bits in plain RGB or RGBA, not too large and without metadata.
    """
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
    """Return width and height in pixels of the copy for models; zeros while the picture's size is unknown."""
    return fitted_size(image.width or 0, image.height or 0, MODEL_COPY_SIDE_PX)
