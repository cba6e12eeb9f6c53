"""Remove conversations for good, and find which files rows still name. Blocking calls for the database's thread."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Integer, String, Table, bindparam, delete, literal_column, select, text

from agent.storage.spend import keep_spend
from agent.storage.tables import CHECKPOINT_TABLES, CONVERSATIONS, METADATA, TURNS

_C = CONVERSATIONS.c
_ROWS_AT_ONCE = 500
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_OWN = select(_C.id).where(_C.id == bindparam("key"), _C.owner == bindparam("whose"))
_DELETED = select(_C.id).where(_C.owner == bindparam("whose"), _C.deleted_at.is_not(None))
_OLD = select(_C.id).where(_C.deleted_at < bindparam("moment")).order_by(_C.deleted_at, _C.id)
_TURNS_OF_IT = select(TURNS.c.id).where(TURNS.c.conversation_id == bindparam("key"))
_REMOVE = (
    *(delete(table).where(table.c.thread_id.in_(_TURNS_OF_IT)) for table in CHECKPOINT_TABLES),
    text("DELETE FROM conversation_words WHERE rowid = (SELECT word_id FROM conversations WHERE id = :key)"),
    text("DELETE FROM picture_words WHERE rowid IN (SELECT id FROM pictures WHERE conversation_id = :key)"),
    delete(CONVERSATIONS).where(_C.id == bindparam("key")),
)


def digests_in(values: Iterable[object]) -> set[str]:
    """Return every digest found anywhere in the texts, whatever kind of value names it, now or later."""
    return {digest for value in values if isinstance(value, str) for digest in _DIGEST.findall(value)}


def deleted_before(connection: Connection, moment: datetime) -> list[str]:
    """Return the ids of the conversations that were deleted before the moment, the oldest first."""
    return list(connection.scalars(_OLD, {"moment": moment}))


def deleted_of(connection: Connection, owner: str) -> list[str]:
    """Return the ids of the owner's soft-deleted conversations, empty ones too."""
    return list(connection.scalars(_DELETED, {"whose": owner}))


def delete_forever(
    connection: Connection, conversation_id: str, *, owner: str | None = None, before: datetime | None = None
) -> bool:
    """Remove a soft-deleted conversation with all its rows; return whether there was one.

    It must belong to `owner` and be deleted before `before`, if these are given. Its cost is kept by owner and day.
    """
    meant = select(_C.id).where(_C.id == conversation_id, _C.deleted_at.is_not(None))
    meant = meant if owner is None else meant.where(_C.owner == owner)
    meant = meant if before is None else meant.where(_C.deleted_at < before)
    if connection.execute(meant).first() is None:
        return False
    keep_spend(connection, conversation_id)
    _remove(connection, conversation_id)
    return True


def remove(connection: Connection, conversation_id: str, owner: str) -> bool:
    """Remove the owner's conversation with all its rows; return whether there was one."""
    is_own = connection.execute(_OWN, {"key": conversation_id, "whose": owner}).first() is not None
    if is_own:
        _remove(connection, conversation_id)
    return is_own


def named_digests(connection: Connection, table: Table, after: int) -> tuple[int | None, set[str]]:
    """Return the row number to continue after, None after the last page, and the digests that a page of rows names."""
    number = literal_column(f"{table.name}._rowid_", Integer()).label("number")
    found = select(number, *_text_columns(table)).select_from(table).where(number > bindparam("after"))
    rows = connection.execute(found.order_by(number).limit(_ROWS_AT_ONCE), {"after": after}).all()
    digests = digests_in(cell for row in rows for cell in row[1:])
    return (rows[-1][0] if len(rows) == _ROWS_AT_ONCE else None), digests


def tables_with_texts() -> tuple[Table, ...]:
    """Return every table whose texts could name a digest."""
    return tuple(table for table in METADATA.sorted_tables if _text_columns(table))


def _remove(connection: Connection, conversation_id: str) -> None:
    for statement in _REMOVE:
        connection.execute(statement, {"key": conversation_id})


def _text_columns(table: Table) -> list[Any]:
    return [column for column in table.columns if isinstance(column.type, String)]
