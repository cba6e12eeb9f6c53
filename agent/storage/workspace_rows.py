"""The files of workspaces in the database, as plain blocking calls for its thread. Each is given a connection.

Every call asks first whether the conversation is the owner's and there: RequestRefused(CONVERSATION_NOT_FOUND) if not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, update

from agent.conversation import WorkspaceFile, Writer
from agent.errors import ErrorCode, RequestRefused
from agent.storage.tables import CONVERSATIONS, WORKSPACE_FILES
from agent.storage.workspace import FileInfo, Limits, Place
from agent.storage.workspace_names import is_in_the_way, key_of

_C, _F = CONVERSATIONS.c, WORKSPACE_FILES.c
_MINE = and_(_C.id == bindparam("within"), _C.owner == bindparam("whose"), _C.deleted_at.is_(None))
_HERE = _F.conversation_id == bindparam("within")
_THIS = and_(_HERE, _F.key == bindparam("called"))
_IS_MINE = select(_C.id).where(_MINE)
_NEXT_VERSION = update(CONVERSATIONS).where(_MINE).values(file_version=_C.file_version + 1).returning(_C.file_version)
_INFO = (_F.name, _F.size_bytes, _F.version, _F.updated_at, _F.written_by, _F.is_untrusted)
_INFOS = select(_F.key, *_INFO).where(_HERE).order_by(_F.key)
_FILE = (_F.name, _F.version, _F.updated_at, _F.written_by, _F.is_untrusted, _F.content)
_FILES = select(*_FILE).where(_HERE).order_by(_F.key)
_ONE = select(*_FILE).where(_THIS)
_SIZE = select(func.coalesce(func.sum(_F.size_bytes), 0)).where(_HERE)
_ADD = insert(WORKSPACE_FILES)
_REPLACE = update(WORKSPACE_FILES).where(_THIS)
_RENAME = update(WORKSPACE_FILES).where(_THIS).values(key=bindparam("new_key"), name=bindparam("new_name"))
_DELETE = delete(WORKSPACE_FILES).where(_THIS)


class Writing(NamedTuple):
    """What is to be written; `is_untrusted` None leaves that as it is."""

    name: str
    content: bytes
    by: Writer
    is_untrusted: bool | None
    expected_version: int | None
    now: datetime


def infos(connection: Connection, place: Place) -> tuple[FileInfo, ...]:
    """Return the files without what they hold, by name."""
    return tuple(_held(connection, place).values())


def files(connection: Connection, place: Place) -> tuple[WorkspaceFile, ...]:
    """Return the files with what they hold, by name."""
    _hold_own(connection, place)
    return all_of(connection, place.conversation_id)


def all_of(connection: Connection, conversation_id: str) -> tuple[WorkspaceFile, ...]:
    """Return the files of a conversation whoever it belongs to, by name."""
    rows = connection.execute(_FILES, {"within": conversation_id})
    return tuple(WorkspaceFile(**row._asdict()) for row in rows)


def file(connection: Connection, place: Place, name: str) -> WorkspaceFile:
    """Return one file. Raises RequestRefused(FILE_NOT_FOUND)."""
    _hold_own(connection, place)
    row = connection.execute(_ONE, _called(place, key_of(name))).one_or_none()
    if row is None:
        raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name=name)
    return WorkspaceFile(**row._asdict())


def size(connection: Connection, place: Place) -> int:
    """Return how many bytes all files hold together."""
    _hold_own(connection, place)
    found: int = connection.execute(_SIZE, {"within": place.conversation_id}).scalar_one()
    return found


def write(connection: Connection, place: Place, new: Writing, limits: Limits) -> FileInfo:
    """Write a file, a new one or another content of one that is there, and return it as it is now.

    Raises RequestRefused: FILE_CHANGED, FILE_NAME_TAKEN, TOO_MANY_FILES, WORKSPACE_FULL.
    """
    held, key = _held(connection, place), key_of(new.name)
    before = held.get(key)
    _refuse_changed(before, new.name, new.expected_version)
    if before is None:
        _refuse_taken(key, new.name, held)
    _refuse_too_much(held, before, len(new.content), limits)
    info = FileInfo(
        name=before.name if before else new.name,
        size_bytes=len(new.content),
        version=connection.execute(_NEXT_VERSION, _values(place)).scalar_one(),
        updated_at=new.now,
        written_by=new.by,
        is_untrusted=_is_untrusted(new, before),
    )
    row = {**info.model_dump(), "content": new.content, "digest": hashlib.sha256(new.content).digest()}
    if before is not None:
        connection.execute(_REPLACE, {**_called(place, key), **row})
    else:
        connection.execute(_ADD, {"conversation_id": place.conversation_id, "key": key, **row})
    return info


def rename(connection: Connection, place: Place, name: str, new_name: str) -> FileInfo:
    """Give a file another name and return it; it is in every other way as it was.

    Raises RequestRefused: FILE_NOT_FOUND, FILE_NAME_TAKEN.
    """
    held, key, new_key = _held(connection, place), key_of(name), key_of(new_name)
    if key not in held:
        raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name=name)
    before = held.pop(key)
    _refuse_taken(new_key, new_name, held)
    connection.execute(_RENAME, {**_called(place, key), "new_key": new_key, "new_name": new_name})
    return before.model_copy(update={"name": new_name})


def remove(connection: Connection, place: Place, name: str, expected_version: int | None) -> None:
    """Delete a file. Raises RequestRefused: FILE_NOT_FOUND, FILE_CHANGED."""
    held, key = _held(connection, place), key_of(name)
    if key not in held:
        raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name=name)
    _refuse_changed(held[key], name, expected_version)
    connection.execute(_DELETE, _called(place, key))


def add_all(connection: Connection, conversation_id: str, added: Sequence[WorkspaceFile]) -> None:
    """Record the files of a conversation that has none; their names and sizes are those of a workspace already."""
    if added:
        connection.execute(_ADD, [_row(conversation_id, one) for one in added])


def _row(conversation_id: str, one: WorkspaceFile) -> dict[str, object]:
    own = {"conversation_id": conversation_id, "key": key_of(one.name), "size_bytes": one.size_bytes}
    return {**one.model_dump(), **own, "digest": hashlib.sha256(one.content).digest()}


def _values(place: Place) -> dict[str, str]:
    return {"within": place.conversation_id, "whose": place.owner}


def _called(place: Place, key: str) -> dict[str, str]:
    return {"within": place.conversation_id, "called": key}


def _hold_own(connection: Connection, place: Place) -> None:
    if connection.execute(_IS_MINE, _values(place)).first() is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)


def _held(connection: Connection, place: Place) -> dict[str, FileInfo]:
    _hold_own(connection, place)
    rows = connection.execute(_INFOS, {"within": place.conversation_id}).all()
    return {row.key: FileInfo(**{name: row._mapping[name] for name in FileInfo.model_fields}) for row in rows}


def _refuse_changed(before: FileInfo | None, name: str, expected_version: int | None) -> None:
    if expected_version is not None and expected_version != (before.version if before else 0):
        raise RequestRefused(ErrorCode.FILE_CHANGED, name=name)


def _refuse_taken(key: str, name: str, held: Mapping[str, FileInfo]) -> None:
    if key in held or is_in_the_way(key, held):
        raise RequestRefused(ErrorCode.FILE_NAME_TAKEN, name=name)


def _refuse_too_much(held: Mapping[str, FileInfo], before: FileInfo | None, new_bytes: int, limits: Limits) -> None:
    if before is None and len(held) >= limits.files:
        raise RequestRefused(ErrorCode.TOO_MANY_FILES, limit=limits.files)
    whole = sum(one.size_bytes for one in held.values()) - (before.size_bytes if before else 0) + new_bytes
    # What is there already may become smaller, whatever it comes to.
    if whole > limits.total_bytes and new_bytes > (before.size_bytes if before else 0):
        raise RequestRefused(ErrorCode.WORKSPACE_FULL, limit=limits.total_bytes >> 20)


def _is_untrusted(new: Writing, before: FileInfo | None) -> bool:
    if new.is_untrusted is not None:
        return new.is_untrusted
    return before is not None and before.is_untrusted
