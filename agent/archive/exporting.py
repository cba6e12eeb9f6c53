"""Export of conversations to a file: several to an archive, or a single one as a document for reading.

Only one conversation is in memory at a time. The ZIP is written to disk as it grows, and the same content gives the
same bytes. A document for reading is a web page with its pictures embedded, or Markdown with the pictures beside it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import math
import re
import zipfile
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from agent.archive.format import (
    FORMAT,
    INDEX,
    MANIFEST,
    MIME_OF_SUFFIX,
    SUFFIX_OF_MIME,
    VERSION,
    ArchivedFile,
    ArchiveLanguage,
    ArchiveLimits,
    ListedConversation,
    Manifest,
    conversation_json,
    export_too_large,
    images_in,
    packed,
    signatures_in,
)
from agent.archive.pages import conversation_page, library_page, markdown, web_page
from agent.conversation import WholeConversation
from agent.errors import RequestRefused
from agent.messages import ImagePart
from agent.pictures import mime_type_of
from agent.version import program_version

if TYPE_CHECKING:
    from agent.storage.images import ImageStore

ReadableFormat: TypeAlias = Literal["md", "html"]

# The earliest time that a ZIP can store, used for all entries so that the same content gives the same bytes.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_PRIVATE_FILE = 0o100600 << 16
_UNIX = 3
# A multiple of three, so that the base64 of pieces is that of the whole.
_PIECE_BYTES = 3 << 18
# All quotes in texts are escaped, so this matches only the address of a picture.
_PICTURE = re.compile(r'(?<=src=")pictures/([0-9a-f]{64})\.([a-z]+)(?=")')


class Exporter:
    """An archive that is being written: call `add` for each conversation, then `finish`, or `abandon` it.

    Raises RequestRefused(EXPORT_TOO_LARGE) when it would become too large to be imported, and OSError.
    """

    def __init__(self, file: BinaryIO, images: ImageStore, language: ArchiveLanguage, limits: ArchiveLimits) -> None:
        self._zip = zipfile.ZipFile(file, "w")
        self._images = images
        self._language = language
        self._limits = limits
        self._files: dict[str, ArchivedFile] = {}
        self._bytes = 0
        # Bytes of workspace files: each file counted once, and counted as often as a workspace refers to it.
        self._stored_bytes = self._named_bytes = 0
        self._addresses: dict[str, str] = {}
        self._lost: set[str] = set()
        self._listed: list[ListedConversation] = []

    async def add(self, whole: WholeConversation) -> None:
        """Add a conversation with everything it refers to; a picture that several refer to is stored once."""
        await self._add_pictures(whole)
        await asyncio.to_thread(self._add_conversation, whole, await self._add_signatures(whole))

    async def finish(self) -> datetime | None:
        """Write index and manifest, close the archive and return the time of the newest change in it."""
        return await asyncio.to_thread(self._end)

    def abandon(self) -> None:
        """Close an unfinished archive; the caller removes its file."""
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()

    async def _add_pictures(self, whole: WholeConversation) -> None:
        for digest, image in (await asyncio.to_thread(_images_of, whole)).items():
            if digest in self._addresses or digest in self._lost:
                continue
            data, suffix = await _read(self._images, image)
            if suffix is None:
                self._lost.add(digest)
                continue
            name = f"pictures/{digest}.{suffix}"
            await asyncio.to_thread(self._add, name, data)
            # Relative to the conversation's folder.
            self._addresses[digest] = f"../../{name}"

    async def _add_signatures(self, whole: WholeConversation) -> set[str]:
        """Add the large signatures, and return the digests of the missing ones."""
        lost = set()
        for digest in signatures_in(whole):
            if f"blobs/{digest}" in self._files:
                continue
            data = await self._images.signature(digest)
            if data is None:
                lost.add(digest)
            else:
                await asyncio.to_thread(self._add, f"blobs/{digest}", data)
        return lost

    def _add_conversation(self, whole: WholeConversation, lost: Collection[str]) -> None:
        folder = f"conversations/{len(self._listed) + 1:04d}"
        archived = packed(whole, lost)
        for listed, file in zip(archived.files, whole.files, strict=True):
            self._add_file(f"files/{listed.digest}", file.content)
        self._add(f"{folder}/conversation.json", conversation_json(archived), is_deflated=True)
        page = conversation_page(whole, self._language, self._addresses)
        self._add(f"{folder}/conversation.md", markdown(page).encode(), is_deflated=True)
        self._add(f"{folder}/conversation.html", web_page(page).encode(), is_deflated=True)
        self._listed.append(
            ListedConversation(
                folder=folder,
                title=whole.title,
                created_at=whole.created_at,
                updated_at=whole.updated_at,
                turn_count=len(whole.turns),
                picture_count=len(whole.pictures),
                file_count=len(whole.files),
            )
        )

    def _add_file(self, name: str, data: bytes) -> None:
        """Add a workspace file, or only count it if it is there already: on import each reference becomes a copy.

        Files are not compressed: many zeros, or the same file many times, would look like a ZIP bomb on import.
        """
        if name not in self._files:
            self._add(name, data)
            self._stored_bytes += len(data)
        self._named_bytes += len(data)
        limits = self._limits
        most = min(limits.archive_bytes, max(limits.ratio_from_bytes, limits.ratio * self._stored_bytes))
        if self._named_bytes > most:
            raise export_too_large(most)

    def _add(self, name: str, data: bytes, *, is_deflated: bool = False) -> None:
        """Add a file, stored unless `is_deflated`; data that are already compressed are stored as they are."""
        limits = self._limits
        self._bytes += len(data)
        is_full = self._bytes > limits.archive_bytes or len(self._files) + 2 > limits.files
        is_long = len(data) > (limits.json_bytes if name.endswith(".json") else limits.file_bytes)
        if is_full or is_long:
            raise export_too_large(limits.archive_bytes if is_full else limits.file_bytes)
        self._write(name, data, is_deflated=is_deflated)
        self._files[name] = ArchivedFile(name=name, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def _end(self) -> datetime | None:
        self._add(INDEX, library_page(self._listed, self._language).encode(), is_deflated=True)
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            app_version=program_version(),
            created_at=max((one.updated_at for one in self._listed), default=None),
            language=self._language,
            conversations=tuple(self._listed),
            files=tuple(self._files.values()),
            lost=tuple(sorted(self._lost)),
        )
        self._write(MANIFEST, manifest.model_dump_json(indent=1).encode(), is_deflated=True)
        self._zip.close()
        return manifest.created_at

    def _write(self, name: str, data: bytes, *, is_deflated: bool) -> None:
        entry = zipfile.ZipInfo(name, _MOMENT)
        entry.compress_type = zipfile.ZIP_DEFLATED if is_deflated else zipfile.ZIP_STORED
        entry.create_system = _UNIX
        entry.external_attr = _PRIVATE_FILE
        self._zip.writestr(entry, data, compresslevel=6)


class ReadableExport:
    """A writer of a document for reading. Only one picture is in memory at a time.

    Raises RequestRefused(EXPORT_TOO_LARGE) and OSError.
    """

    def __init__(self, file: BinaryIO, images: ImageStore, language: ArchiveLanguage, limits: ArchiveLimits) -> None:
        self._file = file
        self._images = images
        self._language = language
        self._limits = limits
        self._bytes = 0

    async def write(self, whole: WholeConversation, kind: ReadableFormat) -> str:
        """Write the conversation and return the suffix of the file's name.

        It is html, md, or md.zip for Markdown with pictures, because Markdown cannot embed them.
        """
        # The pictures that still exist and can be shown, by digest, each with its address.
        shown: dict[str, tuple[str, ImagePart]] = {}
        for digest, image in _images_of(whole).items():
            _, suffix = await _read(self._images, image)
            if suffix is not None:
                shown[digest] = (f"pictures/{digest}.{suffix}", image)
        addresses = {digest: name for digest, (name, _) in shown.items()}
        page = await asyncio.to_thread(conversation_page, whole, self._language, addresses)
        if kind == "html":
            await self._write_page(await asyncio.to_thread(web_page, page, is_alone=True), shown)
            return "html"
        text = (await asyncio.to_thread(markdown, page)).encode()
        if not shown:
            await self._write(text)
            return "md"
        with zipfile.ZipFile(self._file, "w") as folder:
            self._grow(len(text))
            folder.writestr("conversation.md", text, zipfile.ZIP_DEFLATED)
            for name, image in shown.values():
                data, _ = await _read(self._images, image)
                self._grow(len(data))
                await asyncio.to_thread(folder.writestr, name, data)
        return "md.zip"

    async def _write_page(self, html: str, shown: Mapping[str, tuple[str, ImagePart]]) -> None:
        """Write a web page with the addresses of pictures replaced by data URLs."""
        at = 0
        for match in _PICTURE.finditer(html):
            await self._write(html[at : match.start()].encode())
            data, _ = await _read(self._images, shown[match[1]][1])
            await self._write(f"data:{MIME_OF_SUFFIX[match[2]]};base64,".encode())
            self._grow(4 * math.ceil(len(data) / 3))
            await asyncio.to_thread(self._write_base64, data)
            at = match.end()
        await self._write(html[at:].encode())

    def _write_base64(self, data: bytes) -> None:
        # In pieces: no other thread runs during one, nor does the event loop.
        for start in range(0, len(data), _PIECE_BYTES):
            self._file.write(base64.b64encode(data[start : start + _PIECE_BYTES]))

    async def _write(self, data: bytes) -> None:
        self._grow(len(data))
        await asyncio.to_thread(self._file.write, data)

    def _grow(self, count: int) -> None:
        """Count bytes that are about to be written."""
        self._bytes += count
        if self._bytes > self._limits.archive_bytes:
            raise export_too_large(self._limits.archive_bytes)


def _images_of(whole: WholeConversation) -> dict[str, ImagePart]:
    """Return one reference to each picture, by digest, in the order of first use."""
    found: dict[str, ImagePart] = {}
    for image in images_in(whole):
        found.setdefault(image.digest, image)
    return found


async def _read(images: ImageStore, image: ImagePart) -> tuple[bytes, str | None]:
    """Return a picture's bytes and its file suffix; None as suffix when it is lost or an import would refuse it."""
    try:
        data = await images.read(image)
    except RequestRefused:
        return b"", None
    return data, SUFFIX_OF_MIME.get(mime_type_of(data) or "")
