"""Export of conversations to one file, import from it, and import of a conversation from a list of messages."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agent.archive.exporting import Exporter, ReadableExport, ReadableFormat
from agent.archive.format import ArchiveLanguage, ArchiveLimits, unreadable
from agent.archive.importing import Importer, ImportReport
from agent.archive.reading import ArchiveReader
from agent.conversation import Conversation, ConversationInfo, Turn, TurnState, WholeConversation
from agent.errors import RequestRefused
from agent.events import AgentMessage, Component, SmartCanvas
from agent.imaging.intake import CleanPicture, check_request, take_in_image
from agent.messages import ContentPart, ImageOrigin, ImagePart, PromptMessage, Role, TextPart
from agent.pictures import Picture, allot_handle
from agent.settings import OPERATOR, TurnSettings
from agent.storage.private_files import new_private_file, translated_os_errors
from agent.storage.titles import title_of

if TYPE_CHECKING:
    from agent.storage.conversations import ConversationStore
    from agent.storage.images import ImageStore
    from agent.storage.quota import Quota

# An export file older than this is removed, even if a download is still reading it.
_KEPT_S = 86_400.0
_LISTED_AT_ONCE = 200
_WORDS_OF_A_NAME = 6
_NAME_CHARACTERS = 60


@dataclass(frozen=True)
class ExportedArchive:
    """A finished export: its path, the name to offer, and its size. The caller removes the file."""

    path: Path
    name: str
    size_bytes: int

    def remove(self) -> None:
        """Remove the file. A file that is not removed is deleted by a later export, after a day."""
        self.path.unlink(missing_ok=True)


class Archive:
    """The exports and imports of one studio, run one at a time.

    Archives are written in `<home>/exports`, which only the operating system user of the studio can read, and are never
    held in memory.
    """

    def __init__(
        self,
        store: ConversationStore,
        images: ImageStore,
        home: Path,
        limits: ArchiveLimits | None = None,
        room: Quota | None = None,
    ) -> None:
        self._store = store
        self._images = images
        self._home = home
        self._limits = limits or ArchiveLimits()
        self._room = room
        self._one_at_a_time = asyncio.Semaphore(1)

    async def export_conversation(
        self, conversation_id: str, owner: str, *, language: ArchiveLanguage = "en"
    ) -> ExportedArchive:
        """Export one conversation as an archive.

        Raises RequestRefused when the owner has no such conversation or it is too large, and StorageFailure.
        """
        whole = await self._store.whole(conversation_id, owner)

        async def add_to(exporter: Exporter) -> None:
            await exporter.add(whole)

        return await self._exported(add_to, language, whole.title)

    async def export_paper(
        self, conversation_id: str, owner: str, kind: ReadableFormat, *, language: ArchiveLanguage = "en"
    ) -> ExportedArchive:
        """Export one conversation as a document for reading, which cannot be imported.

        It is a web page with its pictures embedded, or Markdown, in a ZIP with its pictures if it has any.

        Raises RequestRefused when the owner has no such conversation or it is too large, and StorageFailure.
        """
        whole = await self._store.whole(conversation_id, owner)

        async def write(file: BinaryIO) -> str:
            suffix = await ReadableExport(file, self._images, language, self._limits).write(whole, kind)
            return _file_name(whole.title, whole.updated_at, suffix)

        return await self._filed(write)

    async def export_library(self, owner: str, *, language: ArchiveLanguage = "en") -> ExportedArchive:
        """Export all conversations of the owner as one archive, the oldest first; it may be empty.

        Raises RequestRefused when they are too large for one archive, and StorageFailure.
        """

        async def add_to(exporter: Exporter) -> None:
            for conversation_id in await self._every_id(owner):
                try:
                    whole = await self._store.whole(conversation_id, owner)
                except RequestRefused:
                    # The conversation was deleted in the meantime.
                    continue
                await exporter.add(whole)

        return await self._exported(add_to, language, "library")

    async def import_archive(self, source: Path | BinaryIO, owner: str) -> ImportReport:
        """Import all conversations of an archive as new conversations of the owner.

        Raises RequestRefused when the archive is invalid or exceeds the owner's quota, and StorageFailure; nothing is
        changed then.
        """
        async with self._one_at_a_time:
            with contextlib.ExitStack() as opened:
                limits = self._limits if owner == OPERATOR else self._limits.of_visitors
                reader = await asyncio.to_thread(self._reader, source, limits, opened)
                sizes = sum(file.size_bytes for file in reader.files.values())
                # Identical pictures share one file, so use the declared counts; a false count shows at the next check.
                pictures = sum(one.picture_count for one in reader.manifest.conversations)
                if self._room is not None:
                    await self._room.check(owner, new_bytes=sizes, new_pictures=pictures)
                return await Importer(reader, self._store, self._images, self._home, owner).run()

    async def take_context(self, messages: Sequence[ContextMessage], owner: str) -> Conversation:
        """Create a conversation of the owner from messages that were exchanged elsewhere, at no cost, and return it.

        Raises RequestRefused for a text or picture that no message may contain or beyond the quota, and StorageFailure.
        """
        if self._room is not None:
            await self._room.check(owner)
        return await self._store.add_whole(owner, await _whole_of_context(messages, self._images))

    def _reader(self, source: Path | BinaryIO, limits: ArchiveLimits, opened: contextlib.ExitStack) -> ArchiveReader:
        try:
            file = opened.enter_context(source.open("rb")) if isinstance(source, Path) else source
        except OSError as error:
            raise unreadable(error.strerror or "") from error
        return opened.enter_context(contextlib.closing(ArchiveReader(file, limits)))

    async def _every_id(self, owner: str) -> list[str]:
        found: dict[str, ConversationInfo] = {}
        for offset in range(0, self._limits.files, _LISTED_AT_ONCE):
            page = await self._store.list(owner, _LISTED_AT_ONCE, offset)
            found.update((info.id, info) for info in page)
            if len(page) < _LISTED_AT_ONCE:
                break
        return [info.id for info in sorted(found.values(), key=lambda info: (info.created_at, info.id))]

    async def _exported(
        self, add_to: Callable[[Exporter], Awaitable[None]], language: ArchiveLanguage, called: str
    ) -> ExportedArchive:
        async def write(file: BinaryIO) -> str:
            exporter = Exporter(file, self._images, language, self._limits)
            try:
                await add_to(exporter)
                newest = await exporter.finish()
            except BaseException:
                exporter.abandon()
                raise
            return _file_name(called, newest)

        return await self._filed(write)

    async def _filed(self, write: Callable[[BinaryIO], Awaitable[str]]) -> ExportedArchive:
        """Return the file written by `write`, with the name it returned; the file is removed when writing fails."""
        async with self._one_at_a_time:
            with translated_os_errors():
                path, file = await asyncio.to_thread(self._new_file)
                try:
                    with file:
                        name = await write(file)
                    size_bytes = path.stat().st_size
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
        return ExportedArchive(path, name, size_bytes)

    def _new_file(self) -> tuple[Path, BinaryIO]:
        folder = self._home / "exports"
        for path in folder.glob("*.zip"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _KEPT_S:
                    path.unlink()
        path = folder / f"{secrets.token_hex(16)}.zip"
        return path, new_private_file(path)


def _file_name(called: str, newest: datetime | None, suffix: str = "zip") -> str:
    words = re.findall(r"\w+", called)[:_WORDS_OF_A_NAME]
    name = "-".join(["aivista", *words])[:_NAME_CHARACTERS]
    return f"{name}{newest.strftime('-%Y-%m-%d') if newest else ''}.{suffix}"


@dataclass(frozen=True)
class ContextMessage:
    """A message of the user or the assistant; `pictures` are pairs of a name (may be empty) and bytes."""

    is_person: bool
    text: str
    pictures: tuple[tuple[str, bytes], ...] = ()


async def _whole_of_context(messages: Sequence[ContextMessage], images: ImageStore) -> WholeConversation:
    """Return the conversation: one turn for each message of the user, with the assistant's answers to it.

    The user's pictures are uploads, the assistant's are generated pictures without a receipt; each gets the next
    handle. All are checked before the first is stored. Raises RequestRefused for a picture or a text that no message
    may contain.
    """
    taken: list[list[CleanPicture]] = []
    for message in messages:
        check_request(message.text, len(message.pictures))
        numbered = enumerate(message.pictures, 1)
        taken.append([await take_in_image(data, name or f"Picture {number}") for number, (name, data) in numbered])
    now = datetime.now(UTC)
    turns: list[Turn] = []
    pictures: list[Picture] = []
    for message, files in zip(messages, taken, strict=True):
        if message.is_person or not turns:
            turn = Turn(
                id=uuid.uuid4().hex,
                text=message.text if message.is_person else "",
                settings=TurnSettings(),
                started_at=now,
                parent=turns[-1].id if turns else None,
                state=TurnState.DONE,
            )
            turns.append(turn)
        added: list[ImagePart] = []
        for file in files:
            origin = ImageOrigin.UPLOADED if message.is_person else ImageOrigin.GENERATED
            handle = allot_handle([one.handle for one in pictures], base=None)
            measured = {"width": file.width, "height": file.height, "bit_depth": file.bit_depth, "handle": handle}
            image = (await images.write(file.data, file.mime_type, origin)).model_copy(update=measured)
            pictures.append(Picture(handle=handle, image=image, turn_id=turns[-1].id, created_at=now))
            added.append(image)
        turns[-1] = _with_message(turns[-1], message, added)
    return WholeConversation(
        title=next((title for one in turns if (title := title_of(one.text))), ""),
        created_at=now,
        updated_at=now,
        head=turns[-1].id if turns else None,
        turns=tuple(turns),
        pictures=tuple(pictures),
    )


def _with_message(turn: Turn, message: ContextMessage, added: Sequence[ImagePart]) -> Turn:
    words: tuple[ContentPart, ...] = (TextPart(text=message.text),) if message.text else ()
    if not words and not added:
        return turn
    role = Role.PROMPT if message.is_person else Role.MODEL
    update: dict[str, object] = {"messages": (*turn.messages, PromptMessage(role=role, parts=(*words, *added)))}
    if message.is_person:
        return turn.model_copy(update={**update, "uploads": tuple(added)})
    shown: list[Component] = [*turn.components]
    if message.text.strip():
        shown.append(AgentMessage(text=message.text.strip()))
    if added:
        shown.append(SmartCanvas(handles=tuple(one.handle or "" for one in added)))
    return turn.model_copy(update={**update, "components": tuple(shown)})
