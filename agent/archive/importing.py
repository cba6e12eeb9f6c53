"""An archive on its way in: all of it is looked at first, then all of it is taken in, or nothing is left of it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import uuid
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from agent.archive.format import (
    MIME_OF_SUFFIX,
    ArchivedConversation,
    archive_too_large,
    images_in,
    not_a_picture,
    suffix_of,
    unpacked,
    with_images,
    without_file,
)
from agent.archive.reading import ArchiveReader, Contents, PictureFacts, check_conversation
from agent.conversation import Turn, WholeConversation
from agent.errors import AivistaError, ProviderFailure
from agent.events import Component, SearchNote
from agent.imaging.intake import probe_image
from agent.messages import ImageOrigin, ImagePart, Value
from agent.pictures import Picture

if TYPE_CHECKING:
    from agent.storage.conversations import ConversationStore
    from agent.storage.images import ImageStore

_KNOWN_TYPES = frozenset(MIME_OF_SUFFIX.values())
_FOLDERS = ("pictures", "blobs")


class ImportedConversation(Value):
    """A conversation that was taken in, under its new id."""

    id: str
    title: str
    turn_count: int
    picture_count: int


class ImportReport(Value):
    """What an archive brought: its conversations in their order, how many different files of pictures (masks and
    earlier states among them), and how many pictures were lost before the archive was made."""

    conversations: tuple[ImportedConversation, ...]
    picture_count: int
    lost_count: int


class _Unwanted(Exception):
    """Whoever asked for the import has gone."""


class Importer:
    """Takes one archive in for an owner."""

    def __init__(
        self, reader: ArchiveReader, store: ConversationStore, images: ImageStore, home: Path, owner: str
    ) -> None:
        self._reader = reader
        self._store = store
        self._images = images
        self._home = home
        self._owner = owner
        self._used: set[str] = set()
        self._file_bytes = 0
        self._is_wanted = True

    async def run(self) -> ImportReport:
        """Check everything, then take everything in.

        Raises RequestRefused of an archive that is not as it should be, StorageFailure when it cannot be kept; nothing
        of it is there then.
        """
        contents = await self._contents()
        for listed in self._reader.manifest.conversations:
            await asyncio.to_thread(self._check, listed.folder, contents)
        taking_in = asyncio.ensure_future(self._take_in(contents))
        try:
            return await asyncio.shield(taking_in)
        except asyncio.CancelledError:
            # What a thread writes just now would be there after everything else is gone: it is waited for.
            self._is_wanted = False
            with contextlib.suppress(_Unwanted):
                await taking_in
            raise

    async def _take_in(self, contents: Contents) -> ImportReport:
        digests = sorted(self._used & contents.pictures.keys())
        new = await asyncio.to_thread(NewFiles, self._home, [*digests, *self._reader.blobs])
        added: list[ImportedConversation] = []
        try:
            await self._keep_pictures(digests)
            await self._keep_conversations(Adoption(contents), added)
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
        suffix = name.rpartition(".")[2]
        if suffix_of(data) != suffix:
            raise not_a_picture(name)
        try:
            probed = await probe_image(data)
        except ProviderFailure as error:
            raise not_a_picture(name) from error
        md5 = await asyncio.to_thread(_md5, data)
        return PictureFacts(md5, MIME_OF_SUFFIX[suffix], len(data), probed.width, probed.height, probed.bit_depth)

    def _check(self, folder: str, contents: Contents) -> None:
        conversation = self._reader.conversation(folder)
        check_conversation(conversation, contents, f"{folder}/conversation.json")
        self._used.update(image.digest for image in images_in(conversation))
        # A file that stands in the archive once is kept as often as workspaces name it.
        self._file_bytes += sum(file.size_bytes for file in conversation.files)
        if self._file_bytes > self._reader.most_bytes:
            raise archive_too_large(self._reader.most_bytes)

    async def _keep_pictures(self, digests: Iterable[str]) -> None:
        names = self._reader.pictures
        for digest in digests:
            name = names[digest]
            data = await asyncio.to_thread(self._reader.read, name)
            # The origin stands in each reference; of the file it says nothing.
            await self._images.write(data, MIME_OF_SUFFIX[name.rpartition(".")[2]], ImageOrigin.UPLOADED)
            self._go_on()

    async def _keep_conversations(self, adoption: Adoption, added: list[ImportedConversation]) -> None:
        for listed in self._reader.manifest.conversations:
            whole = await asyncio.to_thread(self._adopted, listed.folder, adoption)
            conversation = await self._store.add_whole(self._owner, whole)
            counts = {"turn_count": len(whole.turns), "picture_count": len(whole.pictures)}
            added.append(ImportedConversation(id=conversation.id, title=whole.title, **counts))
            self._go_on()

    def _go_on(self) -> None:
        if not self._is_wanted:
            raise _Unwanted

    def _adopted(self, folder: str, adoption: Adoption) -> WholeConversation:
        archived: ArchivedConversation = self._reader.conversation(folder)
        return adoption.adopted(unpacked(archived, self._reader.blob, self._reader.workspace_file))

    async def _undo(self, added: Iterable[ImportedConversation], new: NewFiles) -> None:
        for conversation in added:
            with contextlib.suppress(AivistaError):
                await self._store.remove(conversation.id, self._owner)
        # Somebody else may have sent the very same picture meanwhile.
        named: set[str] = set()
        with contextlib.suppress(AivistaError):
            named = await self._store.named_digests()
        await asyncio.to_thread(new.remove, named)


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class NewFiles:
    """Files named by digests that were not there before. Calls block: run them on a thread."""

    def __init__(self, home: Path, digests: Iterable[str]) -> None:
        self._home = home
        self._digests = [digest for digest in digests if not any(self._files_of(digest))]

    def remove(self, spared: Set[str]) -> None:
        """Remove the files that came since, with what was made from them, but for those of some digests."""
        for digest in self._digests:
            for path in self._files_of(digest) if digest not in spared else ():
                with contextlib.suppress(OSError):
                    path.unlink()

    def _files_of(self, digest: str) -> list[Path]:
        return [path for name in _FOLDERS for path in (self._home / name / digest[:2]).glob(f"{digest}*")]


class Adoption:
    """What makes the conversations of one archive ours: what only their first home could make good of stays behind.

    * Turns get ids of our own: the journal of paid calls and the checkpoints go by them, and an archive could name
      somebody else's. That a turn which ran or waited is stopped, since it has neither here, is up to the records.
    * What its files hold came from outside, whatever it says of them, as do its turns (`Turn.is_imported`).
    * A provider's search suggestions are HTML, shown as they came; of an archive nobody can say where they came from.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._secret = secrets.token_bytes(32)

    def adopted(self, whole: WholeConversation) -> WholeConversation:
        """Return the conversation as it goes on record."""
        ids = {turn.id: uuid.uuid4().hex for turn in whole.turns}
        whole = with_images(whole, self._image)
        turns = tuple(_adopted_turn(turn, ids) for turn in whole.turns)
        pictures = tuple(_adopted_picture(one, ids) for one in whole.pictures)
        head = ids[whole.head] if whole.head is not None else None
        files = tuple(one.model_copy(update={"is_untrusted": True}) for one in whole.files)
        return whole.model_copy(update={"turns": turns, "pictures": pictures, "head": head, "files": files})

    def _image(self, image: ImagePart) -> ImagePart:
        """Return the reference with the size and, where it claims none of ours, the type that its file has."""
        facts = self._contents.pictures.get(image.digest)
        if facts is None:
            # Somebody else's picture may have the digest of one that is said to be lost.
            digest = hashlib.sha256(self._secret + image.digest.encode()).hexdigest()
            return image.model_copy(update={"digest": digest, "mime_type": _known_type(image.mime_type)})
        update = _measured(image, facts)
        return image.model_copy(update=update) if update else image


def _measured(image: ImagePart, facts: PictureFacts) -> dict[str, object]:
    update: dict[str, object] = {}
    if image.width is not None and image.height is not None:
        if (image.width, image.height) != (facts.width, facts.height):
            update |= {"width": facts.width, "height": facts.height}
    elif image.width is not None or image.height is not None:
        update |= {"width": None, "height": None}
    if image.mime_type not in _KNOWN_TYPES:
        update["mime_type"] = facts.mime_type
    if image.bit_depth != facts.bit_depth:
        update["bit_depth"] = facts.bit_depth
    return update


def _known_type(mime_type: str) -> str:
    return mime_type if mime_type in _KNOWN_TYPES else "image/png"


def _adopted_picture(picture: Picture, ids: Mapping[str, str]) -> Picture:
    # An archive could name the file that somebody else has sent.
    original = without_file(picture.original) if picture.original is not None else None
    return picture.model_copy(update={"turn_id": ids[picture.turn_id], "original": original})


def _adopted_turn(turn: Turn, ids: Mapping[str, str]) -> Turn:
    components = tuple(map(_adopted_component, turn.components))
    parent = ids[turn.parent] if turn.parent is not None else None
    return turn.model_copy(update={"id": ids[turn.id], "parent": parent, "components": components})


def _adopted_component(component: Component) -> Component:
    return component.model_copy(update={"suggestions_html": ""}) if isinstance(component, SearchNote) else component
