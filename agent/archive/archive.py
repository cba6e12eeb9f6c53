"""Conversations taken out as one file and taken in again, or told as a list of messages: what the studio holds."""

from __future__ import annotations

import asyncio
import contextlib
import os
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
from agent.storage.private_files import make_private_folder, storage_failure
from agent.storage.titles import title_of

if TYPE_CHECKING:
    from agent.storage.conversations import ConversationStore
    from agent.storage.images import ImageStore
    from agent.storage.quota import Quota

# A download that takes longer than this is not waited for.
_KEPT_S = 86_400.0
_LISTED_AT_ONCE = 200
_WORDS_OF_A_NAME = 6
_NAME_CHARACTERS = 60


@dataclass(frozen=True)
class ExportedArchive:
    """An archive that was made: where it is, what to call it, its size. Whoever asked for it removes it."""

    path: Path
    name: str
    size_bytes: int

    def remove(self) -> None:
        """Remove the file. What nobody removes goes with a later export, after a day."""
        self.path.unlink(missing_ok=True)


class Archive:
    """Exports and imports of one studio, one at a time.

    Archives are made below `<home>/exports`, for their user's eyes alone, and never held in memory.
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
        """Return one conversation as an archive.

        Raises RequestRefused when the owner has no such conversation or it is too large, StorageFailure.
        """
        whole = await self._store.whole(conversation_id, owner)

        async def add_to(exporter: Exporter) -> None:
            await exporter.add(whole)

        return await self._exported(add_to, language, whole.title)

    async def export_paper(
        self, conversation_id: str, owner: str, kind: ReadableFormat, *, language: ArchiveLanguage = "en"
    ) -> ExportedArchive:
        """Return one conversation as a file to be read, which cannot be taken in again: a web page with its pictures in
        it, or Markdown, in a ZIP with its pictures where it has any.

        Raises RequestRefused when the owner has no such conversation or it is too large, StorageFailure.
        """
        whole = await self._store.whole(conversation_id, owner)

        async def write(file: BinaryIO) -> str:
            suffix = await ReadableExport(file, self._images, language, self._limits).write(whole, kind)
            return _file_name(whole.title, whole.updated_at, suffix)

        return await self._filed(write)

    async def export_library(self, owner: str, *, language: ArchiveLanguage = "en") -> ExportedArchive:
        """Return all conversations of the owner as one archive, the oldest first; it may be empty.

        Raises RequestRefused when they are too large for one, StorageFailure.
        """

        async def add_to(exporter: Exporter) -> None:
            for conversation_id in await self._every_id(owner):
                try:
                    whole = await self._store.whole(conversation_id, owner)
                except RequestRefused:
                    # It was deleted meanwhile.
                    continue
                await exporter.add(whole)

        return await self._exported(add_to, language, "library")

    async def import_archive(self, source: Path | BinaryIO, owner: str) -> ImportReport:
        """Take in all conversations of an archive, as new ones of the owner.

        Raises RequestRefused, and nothing is changed, when the archive is not as it should be or the owner may not keep
        as much; StorageFailure.
        """
        async with self._one_at_a_time:
            with contextlib.ExitStack() as opened:
                limits = self._limits if owner == OPERATOR else self._limits.of_visitors
                reader = await asyncio.to_thread(self._reader, source, limits, opened)
                sizes = sum(file.size_bytes for file in reader.files.values())
                # A picture that looks like another has no file of its own; whoever lies of them is found out next time.
                pictures = sum(one.picture_count for one in reader.manifest.conversations)
                if self._room is not None:
                    await self._room.check(owner, new_bytes=sizes, new_pictures=pictures)
                return await Importer(reader, self._store, self._images, self._home, owner).run()

    async def take_context(self, told: Sequence[ContextMessage], owner: str) -> Conversation:
        """Return a new conversation of the owner's that was held elsewhere. It has cost nothing here.

        Raises RequestRefused for what no message may hold, StorageFailure.
        """
        if self._room is not None:
            await self._room.check(owner)
        return await self._store.add_whole(owner, await _whole_of_context(told, self._images))

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
        """Return the file that was written, under the name that the writer gives it; nothing is left of a failure."""
        async with self._one_at_a_time:
            try:
                path, file = await asyncio.to_thread(self._new_file)
            except OSError as error:
                raise storage_failure(error) from error
            try:
                with file:
                    name = await write(file)
                size_bytes = path.stat().st_size
            except BaseException as error:
                path.unlink(missing_ok=True)
                if isinstance(error, OSError):
                    raise storage_failure(error) from error
                raise
        return ExportedArchive(path, name, size_bytes)

    def _new_file(self) -> tuple[Path, BinaryIO]:
        folder = self._home / "exports"
        make_private_folder(folder)
        for path in folder.glob("*.zip"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _KEPT_S:
                    path.unlink()
        path = folder / f"{secrets.token_hex(16)}.zip"
        return path, open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


def _file_name(called: str, newest: datetime | None, suffix: str = "zip") -> str:
    words = re.findall(r"\w+", called)[:_WORDS_OF_A_NAME]
    name = "-".join(["aivista", *words])[:_NAME_CHARACTERS]
    return f"{name}{newest.strftime('-%Y-%m-%d') if newest else ''}.{suffix}"


@dataclass(frozen=True)
class ContextMessage:
    """What somebody said: the person, or else the assistant; `pictures` are names (or nothing) and bytes."""

    is_person: bool
    text: str
    pictures: tuple[tuple[str, bytes], ...] = ()


async def _whole_of_context(told: Sequence[ContextMessage], images: ImageStore) -> WholeConversation:
    """Return the conversation: a turn for each message of the person's, with what the assistant answered to it.

    Pictures of the person's are uploads, those of the assistant's generated ones, though without a receipt; each gets
    the next handle. All are looked at before the first is stored. Raises RequestRefused for a picture or a text that
    no message may hold.
    """
    taken: list[list[CleanPicture]] = []
    for message in told:
        check_request(message.text, len(message.pictures))
        named = [(name or f"Picture {number}", data) for number, (name, data) in enumerate(message.pictures, 1)]
        taken.append([await take_in_image(data, name) for name, data in named])
    now = datetime.now(UTC)
    turns: list[Turn] = []
    pictures: list[Picture] = []
    for message, files in zip(told, taken, strict=True):
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
