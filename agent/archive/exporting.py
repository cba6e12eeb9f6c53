"""Conversations on their way into an archive, one after the other: no two of them are in memory at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.archive.format import INDEX, ArchiveLanguage, ListedConversation, conversation_folder
from agent.archive.kinds import suffix_of
from agent.archive.markdown import markdown
from agent.archive.packing import packed
from agent.archive.readable import Heading, Note, Page, conversation_page, moment_text
from agent.archive.readable_words import word
from agent.archive.walking import images_in
from agent.archive.web_page import index_page, web_page
from agent.archive.writing import ArchiveWriter
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
