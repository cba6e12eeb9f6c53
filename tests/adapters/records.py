"""The records below a home, gallery, caches and calls beside them, and what keeps them in order: check and backups."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from langgraph.checkpoint.base import empty_checkpoint

from agent import (
    Backups,
    CheckProblem,
    Gallery,
    GalleryFoundBy,
    GalleryItem,
    GalleryQuery,
    Housekeeping,
    ImageOrigin,
    MatchKind,
    Picture,
    RedactingFilter,
    Studio,
    Turn,
    TurnState,
    Value,
    plain_text,
    secrets_of,
    urls_in,
)
from agent.library import MatchReason, moment_cursor
from agent.moved import MOVED
from agent.redaction import HIDDEN, TOO_DEEP, object_without_secrets, without_homes, without_secrets
from agent.storage.backups import Backup
from agent.storage.cache import answers, history_images
from agent.storage.checkpoints import Checkpoints
from agent.storage.database import Database, open_database
from agent.storage.gallery_words import read_some
from agent.storage.housekeeping import tidy_if_due
from agent.storage.images import ImageStore
from agent.storage.journal import CallRecord, CallState
from agent.storage.private_files import DiskReserve
from agent.storage.records import Records
from agent.storage.rows import picture_row, turn_row
from agent.storage.workspace import Limits as WorkspaceLimits
from agent.storage.workspace import WorkspaceStore
from agent.workflow.live import KEPT_S, RecentTurns
from agent.workflow.sponsoring import SPONSOR_ACCOUNT, WINDOW_S, TurnRateLimiter
from agent.workflow.state import CHECKPOINTED


def faults_in(home: Path) -> tuple[object, ...]:
    """Return what `aivista check` finds wrong."""
    return tuple(Housekeeping(home).check().findings)


def turns_with_checkpoints(home: Path) -> set[str]:
    """Return the turns of which a checkpoint is kept, as another reader of the database finds them."""
    with contextlib.closing(sqlite3.connect(f"file:{home / 'aivista.db'}?mode=ro", uri=True)) as database:
        return {name for (name,) in database.execute("SELECT DISTINCT thread_id FROM checkpoints")}


def lose_checkpoints(home: Path) -> None:
    """Take the checkpoints of every turn away."""
    _lose(home, "DELETE FROM checkpoints")


def lose_vectors(home: Path) -> None:
    """Take all away that pictures are compared by."""
    _lose(home, "DELETE FROM picture_vectors")


def _lose(home: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(home / "aivista.db", isolation_level=None)) as database:
        database.execute(statement)


async def pictures_in_gallery(studio: Studio, owner: str) -> list[tuple[str, str]]:
    """Return the pictures of an owner's gallery, each as its conversation and its handle, in no order."""
    found, query = [], GalleryQuery()
    while True:
        page = await studio.gallery.page(owner, query)
        found += [(item.conversation_id, item.picture.handle) for item in page.items]
        if page.next is None:
            return sorted(found)
        query = GalleryQuery(after=page.next)


async def gallery_ids(studio: Studio, owner: str) -> dict[str, int]:
    """Return the gallery's ids of an owner's pictures on its first page, by handle."""
    return {item.picture.handle: item.id for item in (await studio.gallery.page(owner, GalleryQuery())).items}


async def keep(home: Path, owner: str, *conversations: Sequence[tuple[Turn, Sequence[Picture]]]) -> list[str]:
    """Put conversations on record, each as its turns with their pictures; return their ids. No picture has a file."""
    async with contextlib.aclosing(Records(home, ImageStore(home))) as store:
        await store.open()
        kept = [(await store.conversations.create(owner)).id for _ in conversations]
        for name, turns in zip(kept, conversations, strict=True):
            for turn, pictures in turns:
                uploads = [one for one in pictures if one.image.origin is ImageOrigin.UPLOADED]
                await store.turns.begin(name, turn.model_copy(update={"state": TurnState.RUNNING}), uploads)
                for one in pictures:
                    if one not in uploads:
                        await store.conversations.add_picture(name, one)
                await store.turns.finish(name, turn)
    return kept


def first_start(home: Path) -> Path:
    """Return the database of a home as its first start with this version makes it."""
    open_database(home)[0].dispose()
    return home / "aivista.db"


FOLDERS = {"answers": "answers", "pictures": "history_images"}
LIVES_S = {"answers": 3600, "pictures": 7200}


@dataclass(frozen=True)
class OpenCache:
    """A cache that is open. `put` says whether it took the data, `has` whether it gives exactly that back."""

    folder: Path
    put: Callable[[bytes], Awaitable[bool]]
    has: Callable[[bytes], Awaitable[bool]]
    aclose: Callable[[], Awaitable[None]]


def cache_in(
    home: Path, kind: str, clock: Callable[[], float], limit_bytes: int = 1 << 30, floor_bytes: int = 0
) -> OpenCache:
    """Open one of the caches."""
    is_pictures = kind == "pictures"
    made = history_images if is_pictures else answers
    cache = made(home, limit_bytes=limit_bytes, free_space_floor_bytes=floor_bytes, clock=clock)

    def name(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    async def has(data: bytes) -> bool:
        kept = await cache.get(name(data), is_renewed=is_pictures)
        assert kept in (None, data), "what was put under another name"
        return kept is not None

    return OpenCache(home / "cache" / FOLDERS[kind], lambda data: cache.put(name(data), data), has, cache.aclose)


class ForeignValue(Value):
    """Something that a checkpoint of ours never holds; `made` tells of every one that was."""

    made: ClassVar[list[str]] = []

    text: str

    def model_post_init(self, context: Any) -> None:
        """Note that there is one more."""
        self.made.append(self.text)


async def foreign_values_made_of_a_checkpoint(home: Path, *, is_allowed: bool) -> list[str]:
    """Write a checkpoint with a value of a type that is not ours, read it, and return what was made of it."""
    await _write(home, ForeignValue(text="rm -rf"))
    ForeignValue.made.clear()
    await _read(home, (*CHECKPOINTED, *([ForeignValue] if is_allowed else [])))
    return ForeignValue.made


async def kept_of_an_earlier_version(home: Path, value: Any, module: str) -> Any:
    """Write a checkpoint as when the value's type stood in another module, and return what is read of it now."""
    kind = type(value)
    now, kind.__module__ = kind.__module__, module
    try:
        await _write(home, value)
    finally:
        kind.__module__ = now
    return await _read(home, CHECKPOINTED)


_CONFIG: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}


async def _write(home: Path, value: Any) -> None:
    async with _checkpoints(home, (*CHECKPOINTED, ForeignValue)) as writer:
        kept: Any = {**empty_checkpoint(), "channel_values": {"branch:to:executor": None, "value": value}}
        await writer.aput(_CONFIG, kept, {"source": "loop", "step": 1}, {})
        await writer.written()


async def _read(home: Path, values: Sequence[type]) -> Any:
    async with _checkpoints(home, values) as reader:
        found = await reader.aget_tuple(_CONFIG)
    assert found is not None
    return found.checkpoint["channel_values"]["value"]


@contextlib.asynccontextmanager
async def _checkpoints(home: Path, values: Sequence[type]) -> AsyncIterator[Checkpoints]:
    db = Database(home, lambda: False)
    await db.open()
    yield Checkpoints(db, values)
    await db.aclose(lambda: None)
