"""One conversation as one file to be read: a web page that holds its pictures, or Markdown with them beside it."""

from __future__ import annotations

import asyncio
import base64
import re
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from agent.archive.format import ArchiveLanguage, ArchiveLimits
from agent.archive.kinds import MIME_OF_SUFFIX, suffix_of
from agent.archive.markdown import markdown
from agent.archive.readable import conversation_page
from agent.archive.refusals import export_too_large
from agent.archive.walking import images_in
from agent.archive.web_page import web_page
from agent.conversation import WholeConversation
from agent.errors import RequestRefused
from agent.messages import ImagePart

if TYPE_CHECKING:
    from agent.storage.images import ImageStore

ReadableFormat: TypeAlias = Literal["md", "html"]
# What is said holds no quote that is not escaped, so this is only ever the address of a picture.
_PICTURE = re.compile(r'(?<=src=")pictures/([0-9a-f]{64})\.([a-z]+)(?=")')


async def write_paper(
    kind: ReadableFormat,
    file: BinaryIO,
    whole: WholeConversation,
    images: ImageStore,
    language: ArchiveLanguage,
    limits: ArchiveLimits,
) -> str:
    """Write the conversation into the file and return what its name ends with: html, md, or md.zip for Markdown
    with pictures, which cannot hold them itself. One picture at a time is in memory.

    Raises RequestRefused(EXPORT_TOO_LARGE), OSError.
    """
    paper = _Paper(file, images, limits)
    shown = await paper.pictures(whole)
    addresses = {digest: f"pictures/{digest}.{suffix}" for digest, (_, suffix) in shown.items()}
    page = conversation_page(whole, language, addresses)
    if kind == "html":
        await paper.write_page(web_page(page, is_alone=True), {digest: image for digest, (image, _) in shown.items()})
        return "html"
    text = markdown(page).encode()
    if not shown:
        paper.grow(len(text))
        await asyncio.to_thread(file.write, text)
        return "md"
    await paper.write_folder(text, {addresses[digest]: image for digest, (image, _) in shown.items()})
    return "md.zip"


class _Paper:
    """A file that is being written."""

    def __init__(self, file: BinaryIO, images: ImageStore, limits: ArchiveLimits) -> None:
        self._file = file
        self._images = images
        self._limits = limits
        self._bytes = 0

    async def pictures(self, whole: WholeConversation) -> dict[str, tuple[ImagePart, str]]:
        """Return the pictures that are still there and can be shown, by digest, each with the suffix of its file."""
        found: dict[str, tuple[ImagePart, str]] = {}
        for image in images_in(whole):
            if image.digest in found:
                continue
            data = await self._read(image)
            suffix = suffix_of(data) if data is not None else None
            if suffix is not None:
                found[image.digest] = (image, suffix)
        return found

    async def write_page(self, html: str, images: Mapping[str, ImagePart]) -> None:
        """Write a web page, its pictures in the place of their addresses."""
        at = 0
        for match in _PICTURE.finditer(html):
            await self._write(html[at : match.start()].encode())
            data = await self._read(images[match[1]]) or b""
            await self._write(f"data:{MIME_OF_SUFFIX[match[2]]};base64,".encode() + base64.b64encode(data))
            at = match.end()
        await self._write(html[at:].encode())

    async def write_folder(self, text: bytes, images: Mapping[str, ImagePart]) -> None:
        """Write a ZIP with the text and its pictures."""
        with zipfile.ZipFile(self._file, "w") as folder:
            self.grow(len(text))
            folder.writestr("conversation.md", text, zipfile.ZIP_DEFLATED)
            for name, image in images.items():
                data = await self._read(image) or b""
                self.grow(len(data))
                await asyncio.to_thread(folder.writestr, name, data)

    def grow(self, count: int) -> None:
        """Count bytes that are about to be written. Raises RequestRefused(EXPORT_TOO_LARGE)."""
        self._bytes += count
        if self._bytes > self._limits.archive_bytes:
            raise export_too_large(self._limits.archive_bytes)

    async def _write(self, data: bytes) -> None:
        self.grow(len(data))
        await asyncio.to_thread(self._file.write, data)

    async def _read(self, image: ImagePart) -> bytes | None:
        try:
            return await self._images.read(image)
        except RequestRefused:
            return None
