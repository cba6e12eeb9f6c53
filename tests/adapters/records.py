"""The records below a home, the gallery over them, and what keeps them in order: check, daily round and backups."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import agent.storage
from agent import (
    Backups,
    CheckProblem,
    Gallery,
    GalleryFoundBy,
    GalleryItem,
    GalleryQuery,
    Housekeeping,
    ImageOrigin,
    Picture,
    Studio,
    Turn,
    TurnState,
)
from agent.library import moment_cursor
from agent.storage import checkpoints
from agent.storage.backups import Backup
from agent.storage.conversations import ConversationStore
from agent.storage.database import HEAD, migrate, open_database
from agent.storage.disk_reserve import DiskReserve
from agent.storage.gallery_index import FOLDER as INDEX_FOLDER
from agent.storage.gallery_words import read_some
from agent.storage.images import ImageStore
from agent.storage.rows import picture_row, turn_row
from agent.storage.tidying import tidy_if_due
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


def first_start(home: Path) -> Path:
    """Return the database of a home as a first start makes it."""
    open_database(home)[0].dispose()
    return home / "aivista.db"


def migrated(path: Path) -> Path:
    """Return one as all migrations make it, one after the other."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrate(connection, None)
    engine.dispose()
    return path


def is_newest() -> bool:
    """Return whether the revision that a first start writes is that of the last migration."""
    config = Config()
    config.set_main_option("script_location", str(Path(agent.storage.__path__[0]) / "migrations"))
    return ScriptDirectory.from_config(config).get_current_head() == HEAD
