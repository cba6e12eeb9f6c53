"""Records in memory and pictures on the disk, for archives: what a real store does with them has tests of its own."""

from __future__ import annotations

import asyncio
import secrets
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agent import (
    Conversation,
    ConversationInfo,
    ErrorCode,
    ImageOrigin,
    ImagePart,
    Picture,
    RequestRefused,
    SearchNote,
    StorageFailure,
    WholeConversation,
    WorkspaceFile,
)
from tests.adapters.archives import Archive, ArchiveLimits, images_in, with_images
from tests.adapters.records import ImageStore
from tests.agent.archive.values import PARTS, PNGS
from tests.support.histories import LARGE_SIGNATURE, NOW, begun_turn, finished, keep_signatures, picture

FILES = (
    WorkspaceFile(
        name="Notizen/狐.md",
        content="# Füchse\n\n* rot\n".encode(),
        version=3,
        updated_at=NOW,
        written_by="agent",
        is_untrusted=True,
    ),
    WorkspaceFile(name="rows.bin", content=bytes(range(256)), version=1, updated_at=NOW, written_by="person"),
    WorkspaceFile(name="same again.md", content=b"# F\n", version=7, updated_at=NOW, written_by="person"),
)


@dataclass
class MemoryShelf:
    """Conversations of one owner, `local`; `room` is how many more fit, `stops_after` after how many it
    waits until it `may_go_on`."""

    kept: dict[str, WholeConversation] = field(default_factory=dict)
    room: int = 1000
    stops_after: int | None = None
    has_stopped: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def whole(self, conversation_id: str, owner: str) -> WholeConversation:
        if owner != "local" or conversation_id not in self.kept:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return self.kept[conversation_id]

    async def add_whole(self, owner: str, whole: WholeConversation) -> Conversation:
        if self.stops_after is not None and len(self.kept) >= self.stops_after:
            self.has_stopped.set()
            await self.may_go_on.wait()
        if not self.room:
            raise StorageFailure(ErrorCode.DISK_FULL)
        self.room -= 1
        key = secrets.token_hex(16)
        self.kept[key] = whole
        moments = {"created_at": whole.created_at, "updated_at": whole.updated_at}
        return Conversation(id=key, owner=owner, title=whole.title, **moments)

    async def remove(self, conversation_id: str, owner: str) -> None:
        del self.kept[conversation_id]

    async def named_digests(self) -> set[str]:
        return {digest for whole in self.kept.values() for digest in digests(whole)}

    async def list(self, owner: str, limit: int = 50, offset: int = 0) -> list[ConversationInfo]:
        every = [
            ConversationInfo(id=key, title=one.title, created_at=one.created_at, updated_at=one.updated_at)
            for key, one in self.kept.items()
        ]
        return every[offset : offset + limit] if owner == "local" else []


@dataclass(frozen=True)
class Place:
    """A home with its pictures, its records and its archive."""

    home: Path
    shelf: MemoryShelf
    images: ImageStore
    archive: Archive

    def files(self) -> dict[str, bytes]:
        """Return every file below the home."""
        return {str(path.relative_to(self.home)): path.read_bytes() for path in self.home.rglob("*") if path.is_file()}

    async def keep(self, *wholes: WholeConversation) -> list[str]:
        """Put conversations on record, and PNGS into the image store; return the ids."""
        for data in PNGS:
            await self.images.write(data, "image/png", ImageOrigin.GENERATED)
        await keep_signatures(self.images)
        return [(await self.shelf.add_whole("local", whole)).id for whole in wholes]


def place(home: Path, limits: ArchiveLimits | None = None, room: int = 1000) -> Place:
    """Return an empty home."""
    shelf, images = MemoryShelf(room=room), ImageStore(home)
    return Place(home, shelf, images, archive_of(shelf, images, home, limits))


def archive_of(shelf: MemoryShelf, images: Any, home: Path, limits: ArchiveLimits | None = None) -> Archive:
    """Return the archive of a shelf that stands for the records."""
    return Archive(cast(Any, shelf), images, home, limits)


def with_plain_ids(whole: WholeConversation) -> WholeConversation:
    """Return the conversation with its turns' ids made t1, t2, …: those are fresh after an import, and the files that
    uploads were stay at home.
    """
    ids = {turn.id: f"t{number}" for number, turn in enumerate(whole.turns, 1)}
    turns = tuple(
        turn.model_copy(update={"id": ids[turn.id], "parent": ids[turn.parent] if turn.parent else None})
        for turn in whole.turns
    )
    pictures = tuple(_without_file(one).model_copy(update={"turn_id": ids[one.turn_id]}) for one in whole.pictures)
    head = ids[whole.head] if whole.head is not None else None
    return whole.model_copy(update={"turns": turns, "pictures": pictures, "head": head})


def as_from_outside(whole: WholeConversation) -> WholeConversation:
    """Return the conversation with its files marked as an import marks them, whatever was said of them."""
    return whole.model_copy(
        update={"files": tuple(one.model_copy(update={"is_untrusted": True}) for one in whole.files)}
    )


def _without_file(picture: Picture) -> Picture:
    if picture.original is None:
        return picture
    return picture.model_copy(update={"original": picture.original.model_copy(update={"digest": ""})})


def kept_turns(title: str = "Füchse", signature: bytes = LARGE_SIGNATURE) -> WholeConversation:
    """Return a conversation with every kind of part, large signatures, a branch beside the one that is shown, files,
    and pictures with stars and tags."""
    first = finished(begun_turn("a", "draw 狐 \u0000 🦊"), signature=signature)
    other = finished(begun_turn("b"), "#3", signature).model_copy(update={"parent": "a"})
    shown = finished(begun_turn("c"), "#4", signature).model_copy(update={"parent": "a"})
    made = (picture(handle, turn, signature=signature) for handle, turn in (("#2", "a"), ("#3", "b"), ("#4", "c")))
    pictures = (picture("#1", "a", is_generated=False), *made)
    whole = WholeConversation(
        title=title,
        created_at=NOW,
        updated_at=NOW,
        is_named=True,
        head="c",
        turns=(first, other, shown),
        pictures=pictures,
        starred=("#2", "#4"),
        tags={"#1": ("狐",), "#4": ("Poster", "for the wall")},
        files=FILES,
    )
    turns = (
        turn.model_copy(
            update={
                "components": tuple(
                    one.model_copy(update={"suggestions_html": ""}) if isinstance(one, SearchNote) else one
                    for one in turn.components
                )
            }
        )
        for turn in whole.turns
    )
    return with_images(whole.model_copy(update={"turns": tuple(turns)}), _real)


def digests(whole: WholeConversation) -> set[str]:
    """Return the digests of all pictures that a conversation refers to."""
    return {image.digest for image in images_in(whole)}


def contents(path: Path) -> dict[str, bytes]:
    """Return every file of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _real(image: ImagePart) -> ImagePart:
    """Return the same reference to a picture that there is, by the number of its handle."""
    real = PARTS[int((image.handle or "#0").lstrip("#")) % len(PARTS)]
    return image.model_copy(update=real.model_dump(include={"digest", "md5", "size_bytes", "width", "height"}))
