"""Import of an archive: everything is checked first, then everything is imported; on a failure nothing remains."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.archive.format import (
    MIME_OF_SUFFIX,
    archive_too_large,
    changed,
    images_in,
    not_a_picture,
    signatures_in,
    unpacked,
)
from agent.archive.reading import ArchiveReader, Contents, PictureFacts, check_conversation
from agent.cancellation import shielded
from agent.conversation import WholeConversation, WorkspaceFile
from agent.errors import AivistaError, ProviderFailure
from agent.events import SearchNote
from agent.imaging.intake import probe_image
from agent.messages import ImageOrigin, ImagePart, Value
from agent.pictures import mime_type_of
from agent.storage.branches import fit_for_record

if TYPE_CHECKING:
    from agent.storage.conversations import ConversationStore
    from agent.storage.images import ImageStore


class ImportedConversation(Value):
    """A conversation that was imported, with its new id."""

    id: str
    title: str
    turn_count: int
    picture_count: int


class ImportReport(Value):
    """The result of an import, with the conversations in order.

    `picture_count` counts distinct picture files, including masks and earlier states; `lost_count` counts the pictures
    that were lost before the archive was made.
    """

    conversations: tuple[ImportedConversation, ...]
    picture_count: int
    lost_count: int


class _Cancelled(Exception):
    """The import was cancelled."""


class Importer:
    """The import of one archive for an owner."""

    def __init__(
        self, reader: ArchiveReader, store: ConversationStore, images: ImageStore, home: Path, owner: str
    ) -> None:
        self._reader = reader
        self._store = store
        self._images = images
        self._home = home
        self._owner = owner
        self._used: set[str] = set()
        self._signatures: set[str] = set()
        self._file_bytes = 0
        self._is_wanted = True

    async def run(self) -> ImportReport:
        """Check everything, then import everything.

        Raises RequestRefused when the archive is invalid, and StorageFailure when it cannot be stored; nothing of it
        remains then.
        """
        contents = await self._contents()
        for listed in self._reader.manifest.conversations:
            await asyncio.to_thread(self._check, listed.folder, contents)
        taking_in = asyncio.ensure_future(self._take_in(contents))
        try:
            return await shielded(taking_in)
        except asyncio.CancelledError:
            # Wait for the thread: a file that it is writing would otherwise remain after everything else was removed.
            self._is_wanted = False
            with contextlib.suppress(_Cancelled):
                await taking_in
            raise

    async def _take_in(self, contents: Contents) -> ImportReport:
        reader, names = self._reader, self._reader.pictures
        digests = sorted(self._used & contents.pictures.keys())
        every = (*digests, *reader.blobs)
        new = await asyncio.to_thread(lambda: [digest for digest in every if not any(self._files_of(digest))])
        added: list[ImportedConversation] = []
        secret = secrets.token_bytes(32)
        try:
            for digest in digests:
                # The origin is stored in each reference; for the file it does not matter.
                mime_type, origin = contents.pictures[digest].mime_type, ImageOrigin.UPLOADED
                await self._images.write(await asyncio.to_thread(reader.read, names[digest]), mime_type, origin)
                self._go_on()
            for digest in sorted(self._signatures):
                await self._images.write_blob(await asyncio.to_thread(reader.read, f"blobs/{digest}"))
                self._go_on()
            for listed in reader.manifest.conversations:
                whole = await asyncio.to_thread(_adapted, reader, listed.folder, contents.pictures, secret)
                conversation = await self._store.add_whole(self._owner, whole)
                counts = {"turn_count": len(whole.turns), "picture_count": len(whole.pictures)}
                added.append(ImportedConversation(id=conversation.id, title=whole.title, **counts))
                self._go_on()
        except BaseException:
            await self._undo(added, new)
            raise
        lost = len(self._used & contents.lost)
        return ImportReport(conversations=tuple(added), picture_count=len(digests), lost_count=lost)

    async def _contents(self) -> Contents:
        reader = self._reader
        pictures = reader.pictures
        facts = {digest: await self._facts(name) for digest, name in pictures.items()}
        for name in reader.files.keys() - pictures.values():
            await asyncio.to_thread(reader.read, name)
        lost = frozenset(reader.manifest.lost) - facts.keys()
        return Contents(facts, reader.blobs, lost, reader.workspace_files)

    async def _facts(self, name: str) -> PictureFacts:
        data = await asyncio.to_thread(self._reader.read, name)
        mime_type = MIME_OF_SUFFIX[name.rpartition(".")[2]]
        if mime_type_of(data) != mime_type:
            raise not_a_picture(name)
        try:
            probed = await probe_image(data)
        except ProviderFailure as error:
            raise not_a_picture(name) from error
        md5 = await asyncio.to_thread(hashlib.md5, data, usedforsecurity=False)
        return PictureFacts(md5.hexdigest(), mime_type, len(data), probed.width, probed.height, probed.bit_depth)

    def _check(self, folder: str, contents: Contents) -> None:
        conversation = self._reader.conversation(folder)
        check_conversation(conversation, contents, f"{folder}/conversation.json")
        self._used.update(image.digest for image in images_in(conversation))
        self._signatures.update(signatures_in(conversation))
        # A file that is in the archive once is stored as often as workspaces refer to it.
        self._file_bytes += sum(file.size_bytes for file in conversation.files)
        if self._file_bytes > self._reader.most_bytes:
            raise archive_too_large(self._reader.most_bytes)

    def _go_on(self) -> None:
        if not self._is_wanted:
            raise _Cancelled

    async def _undo(self, added: Iterable[ImportedConversation], new: Iterable[str]) -> None:
        for conversation in added:
            with contextlib.suppress(AivistaError):
                await self._store.remove(conversation.id, self._owner)
        # Another user may have uploaded the same picture in the meantime, so keep files that are in use. If the check
        # fails, housekeeping removes them later.
        with contextlib.suppress(AivistaError):
            named = await self._store.named_digests()
            await asyncio.to_thread(self._remove, [digest for digest in new if digest not in named])

    def _remove(self, digests: Iterable[str]) -> None:
        """Remove the files of these digests, with what was made from them."""
        for digest in digests:
            for path in self._files_of(digest):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _files_of(self, digest: str) -> list[Path]:
        return [path for name in ("pictures", "blobs") for path in (self._home / name / digest[:2]).glob(f"{digest}*")]


def _adapted(
    reader: ArchiveReader, folder: str, pictures: Mapping[str, PictureFacts], secret: bytes
) -> WholeConversation:
    """Return the conversation of a folder as it is stored here, without what is valid only in the studio of origin.

    * Turns get new ids: the journal of paid calls and the checkpoints use them as keys, and an archive could contain
      the ids of another user's turns. The records stop a turn that was running or waiting, since it has neither here.
    * Workspace files are marked as untrusted, whatever the archive says, and turns as imported (`Turn.is_imported`).
    * A provider's search suggestions are HTML that is shown unchanged; in an archive their origin is unknown, so they
      are removed.
    """
    whole = unpacked(reader.conversation(folder), reader.read)
    whole = changed(whole, ImagePart, lambda image: _as_it_is(image, pictures.get(image.digest), secret))
    whole = changed(whole, SearchNote, lambda note: note.model_copy(update={"suggestions_html": ""}))
    whole = changed(whole, WorkspaceFile, lambda file: file.model_copy(update={"is_untrusted": True}))
    return fit_for_record(whole, {turn.id for turn in whole.turns})


def _as_it_is(image: ImagePart, facts: PictureFacts | None, secret: bytes) -> ImagePart:
    """Return the reference with the real size of its file, and with the real type if it states an unknown one."""
    update: dict[str, object] = {}
    if image.mime_type not in MIME_OF_SUFFIX.values():
        update["mime_type"] = facts.mime_type if facts is not None else "image/png"
    if facts is None:
        # The digest of a picture listed as lost could be that of another user's picture.
        update["digest"] = hashlib.sha256(secret + image.digest.encode()).hexdigest()
        return image.model_copy(update=update)
    has_size = image.width is not None and image.height is not None
    size = {"width": facts.width, "height": facts.height} if has_size else {"width": None, "height": None}
    measured = {**size, "bit_depth": facts.bit_depth}
    update.update({name: value for name, value in measured.items() if getattr(image, name) != value})
    # When nothing needs to change, return the same object.
    return image.model_copy(update=update) if update else image
