"""The records below a home."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from agent import GalleryQuery, Housekeeping, ImageOrigin, Picture, Studio, Turn, TurnState
from agent.storage import checkpoints
from agent.storage.conversations import ConversationStore
from agent.storage.disk_reserve import DiskReserve
from agent.storage.images import ImageStore
from agent.storage.rows import picture_row, turn_row
from agent.storage.workspace import Limits as WorkspaceLimits
from agent.storage.workspace import WorkspaceStore


def faults_in(home: Path) -> tuple[object, ...]:
    """Return what `aivista check` finds wrong."""
    return tuple(Housekeeping(home).check().findings)


def turns_with_checkpoints(home: Path) -> set[str]:
    """Return the turns of which a checkpoint is kept, as another reader of the file finds them."""
    with contextlib.closing(sqlite3.connect(f"file:{home / checkpoints.NAME}?mode=ro", uri=True)) as database:
        return {name for (name,) in database.execute("SELECT DISTINCT thread_id FROM checkpoints")}


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
    async with contextlib.aclosing(ConversationStore(home, ImageStore(home))) as store:
        await store.open()
        kept = [(await store.create(owner)).id for _ in conversations]
        for name, turns in zip(kept, conversations, strict=True):
            for turn, pictures in turns:
                uploads = [one for one in pictures if one.image.origin is ImageOrigin.UPLOADED]
                await store.begin_turn(name, turn.model_copy(update={"state": TurnState.RUNNING}), uploads)
                for one in pictures:
                    if one not in uploads:
                        await store.add_picture(name, one)
                await store.finish_turn(name, turn)
    return kept
