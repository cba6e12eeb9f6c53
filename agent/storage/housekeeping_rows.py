"""The database as housekeeping reads it: never created, upgraded or set aside. Every call blocks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Integer, bindparam, delete, func, literal_column, select, text

from agent.errors import ErrorCode, StorageFailure
from agent.pictures import Picture
from agent.storage import purging
from agent.storage.database import engine_of, transaction
from agent.storage.rows import PICTURE_COLUMNS, picture_of
from agent.storage.tables import CALLS, CONVERSATIONS, PICTURE_VECTORS, PICTURES, TURNS, WORKSPACE_FILES
from agent.storage.upgrade import HEAD, NAME

_ROWS_AT_ONCE = 500
_SIGNATURE = '"signature_digest":"'
# Each is at most a megabyte.
_FILES_AT_ONCE = 16
_P, _F = PICTURES.c, WORKSPACE_FILES.c
_NUMBER = literal_column("workspace_files._rowid_", Integer)
_FILES = select(
    _NUMBER.label("number"), _F.name, _F.size_bytes, _F.digest, _F.content, CONVERSATIONS.c.title
).select_from(WORKSPACE_FILES.join(CONVERSATIONS))
_FORGET_WORDS = text(
    "DELETE FROM picture_words WHERE rowid IN (SELECT id FROM pictures WHERE deleted_at < :moment AND is_indexed = 1)"
).bindparams(bindparam("moment", type_=_P.deleted_at.type))
_ASTRAY = (
    text(
        "SELECT 'a turn of “' || c.title || '” follows one that is not there before it' AS what "
        "FROM turns t JOIN conversations c ON c.id = t.conversation_id "
        "LEFT JOIN turns p ON p.conversation_id = t.conversation_id AND p.id = t.parent AND p.position < t.position "
        "WHERE t.parent IS NOT NULL AND p.id IS NULL LIMIT 20"
    ),
    text(
        "SELECT '“' || c.title || '” shows a turn that is not there' AS what FROM conversations c "
        "LEFT JOIN turns t ON t.conversation_id = c.id AND t.id = c.head "
        "WHERE c.head IS NOT NULL AND t.id IS NULL LIMIT 20"
    ),
    text(
        "SELECT p.handle || ' in “' || c.title || '” is of a turn that is not there' AS what "
        "FROM pictures p JOIN conversations c ON c.id = p.conversation_id "
        "LEFT JOIN turns t ON t.conversation_id = p.conversation_id AND t.id = p.turn_id "
        "WHERE t.id IS NULL LIMIT 20"
    ),
)


class ReferencedPicture(NamedTuple):
    """A picture that is still kept: digest, handle, title of its conversation, and the digests of its other files.

    These are masks, the pasted model output, and the parts to compare.
    """

    digest: str
    handle: str
    title: str
    parts: frozenset[str]


class ReferencedFile(NamedTuple):
    """A workspace file: its name, the title of its conversation, and whether its content is intact."""

    name: str
    title: str
    size_bytes: int
    is_whole: bool


class AnotherVersion(StorageFailure):
    """The database is intact, but of a version that this Aivista cannot read."""


class RecordsOnDisk:
    """The database of a home, as it is. Raises StorageFailure when it is missing or unreadable.

    `is_writing` says whether it may be changed.
    """

    def __init__(self, home: Path, *, is_writing: bool) -> None:
        path = home / NAME
        if not path.is_file():
            raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"there is no {NAME} in {home}")
        self._engine = engine_of(path, is_writing=is_writing)
        self._reading = partial(transaction, self._engine, is_writing=False)
        self._writing = partial(transaction, self._engine, is_writing=True)

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def refuse_another_version(self) -> None:
        """Raise StorageFailure when the database has another version."""
        with self._reading() as connection:
            revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
        if revision != HEAD:
            raise AnotherVersion(
                ErrorCode.STORAGE_BROKEN,
                detail=f"{NAME} was written by another version of Aivista; please start the studio once",
            )

    def sweep(self, before: datetime) -> int:
        """Remove the conversations that were deleted before the moment; return how many."""
        ids = self.deleted_before(before)
        for one in ids:
            with self._writing() as connection:
                purging.delete_forever(connection, one, before=before)
        return len(ids)

    def deleted_before(self, moment: datetime) -> list[str]:
        """Return the conversations that were deleted before the moment."""
        with self._reading() as connection:
            return purging.deleted_before(connection, moment)

    def named_digests(self) -> set[str]:
        """Return the digest of every picture and blob that any row names, including deleted rows."""
        named: set[str] = set()
        for table in purging.tables_with_texts():
            after: int | None = 0
            while after is not None:
                with self._reading() as connection:
                    after, found = purging.named_digests(connection, table, after)
                named |= found
        return named

    def purgeable_digests(self, before: datetime) -> set[str]:
        """Return the digests of pictures deleted before the moment that no kept picture needs.

        A conversation's messages still name such a picture, but that is no reason to keep it. The result includes its
        other files: the model's output before it was pasted, and the parts to compare.
        """
        with self._reading() as connection:
            gone = connection.execute(select(*PICTURE_COLUMNS).where(_P.deleted_at < before)).all()
        mine = {digest for row in gone for digest in _shown_by(picture_of(row))}
        if not mine:
            return mine
        is_there = _P.deleted_at.is_(None) | (_P.deleted_at >= before)
        kept = self._rows(select(_P.id, _P.details).where(is_there), _P.id, _ROWS_AT_ONCE)
        return mine - purging.digests_in(row.details for row in kept)

    def forget_words(self, before: datetime) -> None:
        """Remove the words of pictures that were deleted before the moment from the full text."""
        with self._writing() as connection:
            connection.execute(_FORGET_WORDS, {"moment": before})

    def forget_vectors(self, before: datetime, *, is_dry_run: bool) -> int:
        """Remove the vectors of pictures that were deleted before the moment; return how many there are."""
        old = PICTURE_VECTORS.c.picture_id.in_(select(_P.id).where(_P.deleted_at < before))
        if is_dry_run:
            with self._reading() as connection:
                return connection.scalar(select(func.count()).select_from(PICTURE_VECTORS).where(old)) or 0
        with self._writing() as connection:
            return connection.execute(delete(PICTURE_VECTORS).where(old)).rowcount

    def pictures(self, before: datetime) -> Iterator[ReferencedPicture]:
        """Yield every picture that is not deleted, or was deleted since the moment."""
        joined = PICTURES.join(CONVERSATIONS, CONVERSATIONS.c.id == _P.conversation_id)
        found = select(_P.id, _P.digest, _P.handle, _P.details, CONVERSATIONS.c.title).select_from(joined)
        is_there = _P.deleted_at.is_(None) | (_P.deleted_at >= before)
        for row in self._rows(found.where(is_there), _P.id, _ROWS_AT_ONCE):
            yield ReferencedPicture(row.digest, row.handle, row.title, frozenset(purging.digests_in([row.details])))

    def files(self) -> Iterator[ReferencedFile]:
        """Yield the files of every workspace, including those of deleted conversations."""
        for row in self._rows(_FILES, _NUMBER, _FILES_AT_ONCE):
            is_whole = len(row.content) == row.size_bytes and hashlib.sha256(row.content).digest() == row.digest
            yield ReferencedFile(row.name, row.title, row.size_bytes, is_whole)

    def blob_digests(self) -> set[str]:
        """Return the digests of the large signatures that messages name."""
        named: set[str] = set()
        for column in (TURNS.c.messages, PICTURES.c.answer, CALLS.c.answer):
            with self._reading() as connection:
                texts = connection.scalars(select(column).where(column.contains(_SIGNATURE)))
                named.update(digest for text in texts for digest in re.findall(f'{_SIGNATURE}([0-9a-f]{{64}})"', text))
        return named

    def conversations(self) -> int:
        """Return how many conversations there are, deleted ones included."""
        with self._reading() as connection:
            return connection.scalar(select(func.count()).select_from(CONVERSATIONS)) or 0

    def complaints(self) -> list[str]:
        """Return what SQLite finds damaged in the database."""
        with self._reading() as connection:
            return [row[0] for row in connection.execute(text("PRAGMA integrity_check(20)")) if row[0] != "ok"]

    def broken_references(self) -> list[str]:
        """Return rows whose referenced row is missing, by table, and turns and pictures that cannot be reached."""
        with self._reading() as connection:
            rows = connection.execute(text("PRAGMA foreign_key_check")).all()
            astray = [row.what for statement in _ASTRAY for row in connection.execute(statement)]
        return [*(f"{row[0]}, row {row[1]}, belongs to nothing in {row[2]}" for row in rows[:20]), *astray]

    def _rows(self, statement: Any, number: Any, at_once: int) -> Iterator[Any]:
        """Yield the rows of a statement in the order of `number`, its first column, read a few at a time."""
        after = 0
        while True:
            some = statement.where(number > after).order_by(number).limit(at_once)
            with self._reading() as connection:
                rows = connection.execute(some).all()
            if not rows:
                return
            yield from rows
            after = rows[-1][0]


def _shown_by(picture: Picture) -> Iterator[str]:
    """Yield the digests of files that show only this picture."""
    yield picture.image.digest
    if picture.original is not None and picture.original.digest:
        yield picture.original.digest
    edit = picture.edit
    for image in (edit.raw, edit.before, edit.after) if edit else ():
        if image is not None:
            yield image.digest
