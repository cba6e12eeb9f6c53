"""Conversations on their way into a file: into an archive, one after the other, or one alone, to be read.

No two conversations are in memory at once. The ZIP is on the disk as it grows, and the same things give the same bytes.
To be read, a conversation is a web page that holds its pictures, or Markdown with them beside it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from agent.archive.format import (
    FORMAT,
    INDEX,
    MANIFEST,
    MIME_OF_SUFFIX,
    VERSION,
    ArchivedFile,
    ArchiveLanguage,
    ArchiveLimits,
    ListedConversation,
    Manifest,
    conversation_folder,
    export_too_large,
    images_in,
    packed,
    suffix_of,
)
from agent.archive.pages import (
    Heading,
    Note,
    Page,
    conversation_page,
    index_page,
    markdown,
    moment_text,
    web_page,
    word,
)
from agent.conversation import WholeConversation
from agent.errors import RequestRefused
from agent.messages import ImagePart

if TYPE_CHECKING:
    from agent.storage.images import ImageStore

# From a conversation's own folder.
_TO_THE_TOP = "../../"


class Exporter:
    """Puts conversations into one archive; call `add` for each, then `finish`."""

    def __init__(self, writer: ArchiveWriter, images: ImageStore, language: ArchiveLanguage) -> None:
        self._writer = writer
        self._images = images
        self._language = language
        self._names: dict[str, str] = {}
        self._lost: set[str] = set()
        self._listed: list[ListedConversation] = []

    async def add(self, whole: WholeConversation) -> None:
        """Add a conversation with all it refers to; a picture that several refer to is there once.

        Raises RequestRefused(EXPORT_TOO_LARGE), OSError.
        """
        await self._add_pictures(whole)
        await asyncio.to_thread(self._add_conversation, whole)

    async def finish(self, app_version: str) -> Sequence[ListedConversation]:
        """Write what leads to the conversations, end the archive and return what it holds."""
        listed = tuple(self._listed)
        await asyncio.to_thread(self._add_text, INDEX, self._index(listed))
        await asyncio.to_thread(self._writer.finish, app_version, self._language, listed, frozenset(self._lost))
        return listed

    async def _add_pictures(self, whole: WholeConversation) -> None:
        for digest, image in (await asyncio.to_thread(_images_of, whole)).items():
            if digest in self._names or digest in self._lost:
                continue
            try:
                data = await self._images.read(image)
            except RequestRefused:
                self._lost.add(digest)
                continue
            suffix = suffix_of(data)
            if suffix is None:
                # What is no picture could not be taken in again.
                self._lost.add(digest)
                continue
            name = f"pictures/{digest}.{suffix}"
            await asyncio.to_thread(self._writer.add, name, data, is_deflated=False)
            self._names[digest] = name

    def _add_conversation(self, whole: WholeConversation) -> None:
        folder = conversation_folder(len(self._listed) + 1)
        archived, blobs = packed(whole)
        for digest, data in blobs.items():
            if f"blobs/{digest}" not in self._writer:
                self._writer.add(f"blobs/{digest}", data, is_deflated=False)
        for listed, file in zip(archived.files, whole.files, strict=True):
            self._writer.add_file(f"files/{listed.digest}", file.content)
        self._add_text(f"{folder}/conversation.json", archived.model_dump_json(indent=1))
        addresses = {digest: _TO_THE_TOP + name for digest, name in self._names.items()}
        page = conversation_page(whole, self._language, addresses)
        self._add_text(f"{folder}/conversation.md", markdown(page))
        self._add_text(f"{folder}/conversation.html", web_page(page))
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

    def _add_text(self, name: str, text: str) -> None:
        self._writer.add(name, text.encode(), is_deflated=True)

    def _index(self, listed: Sequence[ListedConversation]) -> str:
        language = self._language
        title = word(language, "library")
        note = word(language, "made_by") if listed else word(language, "empty")
        entries = (
            (
                f"{one.folder}/conversation.html",
                one.title or word(language, "untitled"),
                f"{moment_text(one.created_at)} · "
                + word(language, "counts", turns=one.turn_count, pictures=one.picture_count),
            )
            for one in listed
        )
        return index_page(Page(language, title, (Heading(1, title), Note(note))), entries)


def _images_of(whole: WholeConversation) -> dict[str, ImagePart]:
    """Return one reference to each picture, in the order in which they are first referred to."""
    found: dict[str, ImagePart] = {}
    for image in images_in(whole):
        found.setdefault(image.digest, image)
    return found


# The first moment that a ZIP can name: when something was written says nothing of what it is.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_PRIVATE_FILE = 0o100600 << 16
_UNIX = 3


class ArchiveWriter:
    """An archive that is being made. Calls block: run them on a thread, one after the other.

    Raises RequestRefused(EXPORT_TOO_LARGE) when it would grow beyond what can be taken in again, and OSError.
    """

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._zip = zipfile.ZipFile(file, "w")
        self._limits = limits
        self._files: list[ArchivedFile] = []
        self._names: set[str] = set()
        self._bytes = 0
        # Of workspaces' files: each once, and as often as it is named.
        self._stored_bytes = self._named_bytes = 0

    def __contains__(self, name: str) -> bool:
        """Whether a file of this name was added."""
        return name in self._names

    def add(self, name: str, data: bytes, *, is_deflated: bool) -> None:
        """Add a file; what is compressed already is stored as it is."""
        limits = self._limits
        self._bytes += len(data)
        is_full = self._bytes > limits.archive_bytes or len(self._files) + 2 > limits.files
        is_long = len(data) > (limits.json_bytes if name.endswith(".json") else limits.file_bytes)
        if is_full or is_long:
            raise export_too_large(limits.archive_bytes if is_full else limits.file_bytes)
        self._write(name, data, is_deflated=is_deflated)
        digest = hashlib.sha256(data).hexdigest()
        self._files.append(ArchivedFile(name=name, size_bytes=len(data), sha256=digest))
        self._names.add(name)

    def add_file(self, name: str, data: bytes) -> None:
        """Add a file of a workspace, or count one that is there already: it is kept as often as workspaces name it.

        It is not deflated: many of zeros, or the same one many times, are a bomb to whoever takes them in.
        """
        if name not in self._names:
            self.add(name, data, is_deflated=False)
            self._stored_bytes += len(data)
        self._named_bytes += len(data)
        limits = self._limits
        most = min(limits.archive_bytes, max(limits.ratio_from_bytes, limits.ratio * self._stored_bytes))
        if self._named_bytes > most:
            raise export_too_large(most)

    def finish(
        self,
        app_version: str,
        language: ArchiveLanguage,
        conversations: tuple[ListedConversation, ...],
        lost: frozenset[str],
    ) -> None:
        """Write the manifest and end the archive."""
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            app_version=app_version,
            created_at=max((one.updated_at for one in conversations), default=None),
            language=language,
            conversations=conversations,
            files=tuple(self._files),
            lost=tuple(sorted(lost)),
        )
        self._write(MANIFEST, manifest.model_dump_json(indent=1).encode(), is_deflated=True)
        self._zip.close()

    def abandon(self) -> None:
        """Let go of an archive that came to nothing; its file is the caller's to remove."""
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()

    def _write(self, name: str, data: bytes, *, is_deflated: bool) -> None:
        entry = zipfile.ZipInfo(name, _MOMENT)
        entry.compress_type = zipfile.ZIP_DEFLATED if is_deflated else zipfile.ZIP_STORED
        entry.create_system = _UNIX
        entry.external_attr = _PRIVATE_FILE
        self._zip.writestr(entry, data, compresslevel=6)


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
