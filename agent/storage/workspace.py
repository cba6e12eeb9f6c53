"""The workspace: the files of a conversation, stored in the database. Their names never become paths on the server.

Two names that differ only in case, or in how accents are encoded, are the same file: it keeps its first name, and is
found by either. So an exported workspace fits on any disk.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, update

from agent.conversation import WorkspaceFile, Writer
from agent.errors import ErrorCode, RequestRefused
from agent.messages import Value
from agent.storage.database import Database
from agent.storage.tables import CONVERSATIONS, WORKSPACE_FILES

if TYPE_CHECKING:
    from agent.storage.quota import Quota

NEW_FILE = 0
"""The expected version of a file that must not exist yet."""

LONGEST_NAME = 120
_SIGNS = frozenset("_.- /")
# Letters, their marks and digits, of any script.
_KINDS = frozenset("LMN")
# Letters and marks that show nothing: a name with one of them looks like another name.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
_SHOWN_CHARACTERS = 60

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


@dataclass(frozen=True)
class Limits:
    """The limits of a workspace: number of files, bytes of one file and of all files."""

    files: int = 200
    file_bytes: int = 1 << 20
    total_bytes: int = 10 << 20


class FileInfo(Value):
    """A file without its content; see `WorkspaceFile`."""

    name: str
    size_bytes: int
    version: int
    updated_at: datetime
    written_by: Writer
    is_untrusted: bool = False


class WorkspaceStore:
    """The workspaces of all conversations; the quota `room` is checked before each write."""

    def __init__(self, database: Database, limits: Limits | None = None, room: Quota | None = None) -> None:
        self._db = database
        self._limits = limits or Limits()
        self._room = room

    def of(self, conversation_id: str, owner: str) -> Workspace:
        """Return the workspace of a conversation; each call on it checks that the owner is right."""
        return Workspace(self._db, conversation_id, owner, self._limits, self._room)


@dataclass(frozen=True)
class Workspace:
    """The files of one conversation, for its owner.

    A name matches in any case, and is kept as first given. Every call raises RequestRefused: FILE_NAME_INVALID, and
    CONVERSATION_NOT_FOUND also when the conversation is deleted or belongs to another owner; and StorageFailure when
    the database cannot be read or written.
    """

    database: Database
    conversation_id: str
    owner: str
    limits: Limits = Limits()
    room: Quota | None = None

    # Reading

    async def list(self) -> tuple[FileInfo, ...]:
        """Return the files, by name."""
        return tuple((await self.database.read(self._held)).values())

    async def read(self, name: str) -> WorkspaceFile:
        """Return a file with its content. Raises RequestRefused(FILE_NOT_FOUND)."""
        called = checked_file_name(name)

        def read(on: Connection) -> WorkspaceFile:
            self._refuse_others(on)
            row = on.execute(_ONE, self._called(key_of(called))).one_or_none()
            if row is None:
                raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name=called)
            return WorkspaceFile(**row._asdict())

        return await self.database.read(read)

    async def read_text(self, name: str) -> str:
        """Return the text of a file. Raises RequestRefused: FILE_NOT_FOUND, FILE_NOT_TEXT."""
        file = await self.read(name)
        if file.text is None:
            raise RequestRefused(ErrorCode.FILE_NOT_TEXT, name=file.name)
        return file.text

    async def all_texts(self) -> dict[str, str]:
        """Return the text of every text file, by name."""

        def read(on: Connection) -> tuple[WorkspaceFile, ...]:
            self._refuse_others(on)
            return files_of(on, self.conversation_id)

        return {file.name: text for file in await self.database.read(read) if (text := file.text) is not None}

    async def size(self) -> int:
        """Return the total size of all files in bytes."""

        def read(on: Connection) -> int:
            self._refuse_others(on)
            return on.execute(_SIZE, {"within": self.conversation_id}).scalar_one()

        return await self.database.read(read)

    # Writing

    async def write(
        self,
        name: str,
        content: bytes | str,
        *,
        by: Writer,
        expected_version: int | None = None,
        is_untrusted: bool | None = None,
    ) -> FileInfo:
        """Create or overwrite a file, and return it as it is now. Text is encoded as UTF-8.

        `is_untrusted` None keeps the file's flag. Raises RequestRefused: FILE_CHANGED when its version is not the
        expected one (`NEW_FILE`: it must not exist yet), FILE_NAME_TAKEN when a folder has the name, FILE_TOO_LARGE,
        TOO_MANY_FILES, WORKSPACE_FULL, VISITOR_QUOTA_USED_UP; nothing is changed then.
        """
        called, now = checked_file_name(name), datetime.now(UTC)
        # A lone surrogate, which a model may write, has no UTF-8 encoding.
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        if len(data) > self.limits.file_bytes:
            raise RequestRefused(ErrorCode.FILE_TOO_LARGE, name=called, limit=self.limits.file_bytes >> 20)
        if self.room is not None:
            await self.room.check(self.owner, new_bytes=len(data))

        def write(on: Connection) -> FileInfo:
            held, key = self._held(on), key_of(called)
            before = held.get(key)
            _refuse_changed(before, called, expected_version)
            if before is None:
                _refuse_taken(key, called, held)
            _refuse_too_much(held, before, len(data), self.limits)
            info = FileInfo(
                name=before.name if before else called,
                size_bytes=len(data),
                version=on.execute(_NEXT_VERSION, self._mine).scalar_one(),
                updated_at=now,
                written_by=by,
                is_untrusted=bool(before and before.is_untrusted) if is_untrusted is None else is_untrusted,
            )
            row = {**info.model_dump(), "content": data, "digest": hashlib.sha256(data).digest()}
            if before is not None:
                on.execute(_REPLACE, {**self._called(key), **row})
            else:
                on.execute(_ADD, {"conversation_id": self.conversation_id, "key": key, **row})
            return info

        return await self.database.write(write, is_spare=True)

    async def rename(self, name: str, new_name: str) -> FileInfo:
        """Rename a file, perhaps only in case, and return it; nothing else changes.

        Raises RequestRefused: FILE_NOT_FOUND, FILE_NAME_TAKEN when a file or a folder has the name.
        """
        called, wanted = checked_file_name(name), checked_file_name(new_name)

        def rename(on: Connection) -> FileInfo:
            held, key, new_key = self._held(on), key_of(called), key_of(wanted)
            if key not in held:
                raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name=called)
            before = held.pop(key)
            _refuse_taken(new_key, wanted, held)
            on.execute(_RENAME, {**self._called(key), "new_key": new_key, "new_name": wanted})
            return before.model_copy(update={"name": wanted})

        return await self.database.write(rename, is_spare=True)

    async def delete(self, name: str, *, expected_version: int | None = None) -> None:
        """Delete a file for good. Raises RequestRefused: FILE_NOT_FOUND, FILE_CHANGED."""
        called = checked_file_name(name)

        def delete_it(on: Connection) -> None:
            held, key = self._held(on), key_of(called)
            if key not in held:
                raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name=called)
            _refuse_changed(held[key], called, expected_version)
            on.execute(_DELETE, self._called(key))

        await self.database.write(delete_it, is_spare=True)

    @property
    def _mine(self) -> dict[str, str]:
        return {"within": self.conversation_id, "whose": self.owner}

    def _called(self, key: str) -> dict[str, str]:
        return {"within": self.conversation_id, "called": key}

    def _refuse_others(self, connection: Connection) -> None:
        if connection.execute(_IS_MINE, self._mine).first() is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)

    def _held(self, connection: Connection) -> dict[str, FileInfo]:
        """Return the files, by key."""
        self._refuse_others(connection)
        rows = connection.execute(_INFOS, {"within": self.conversation_id}).all()
        return {row.key: FileInfo(**{name: row._mapping[name] for name in FileInfo.model_fields}) for row in rows}


def files_of(connection: Connection, conversation_id: str) -> tuple[WorkspaceFile, ...]:
    """Return the files of a conversation of any owner, by name."""
    rows = connection.execute(_FILES, {"within": conversation_id})
    return tuple(WorkspaceFile(**row._asdict()) for row in rows)


def add_files(connection: Connection, conversation_id: str, added: Sequence[WorkspaceFile]) -> None:
    """Record the files of a conversation that has none; their names and sizes must already be valid."""
    rows = []
    for one in added:
        own = {"conversation_id": conversation_id, "key": key_of(one.name), "size_bytes": one.size_bytes}
        rows.append({**one.model_dump(), **own, "digest": hashlib.sha256(one.content).digest()})
    if rows:
        connection.execute(_ADD, rows)


def _refuse_changed(before: FileInfo | None, name: str, expected_version: int | None) -> None:
    if expected_version is not None and expected_version != (before.version if before else 0):
        raise RequestRefused(ErrorCode.FILE_CHANGED, name=name)


def _refuse_taken(key: str, name: str, held: Mapping[str, FileInfo]) -> None:
    if key in held or is_in_the_way(key, held):
        raise RequestRefused(ErrorCode.FILE_NAME_TAKEN, name=name)


def _refuse_too_much(held: Mapping[str, FileInfo], before: FileInfo | None, new_bytes: int, limits: Limits) -> None:
    if before is None and len(held) >= limits.files:
        raise RequestRefused(ErrorCode.TOO_MANY_FILES, limit=limits.files)
    more_bytes = new_bytes - (before.size_bytes if before else 0)
    # An existing file may become smaller even if the workspace stays above its limit.
    if more_bytes > 0 and sum(one.size_bytes for one in held.values()) + more_bytes > limits.total_bytes:
        raise RequestRefused(ErrorCode.WORKSPACE_FULL, limit=limits.total_bytes >> 20)


def checked_file_name(name: str) -> str:
    """Return the name in Unicode's form NFC, as it is stored. Raises RequestRefused(FILE_NAME_INVALID).

    It has 1 to 120 letters and digits of any script, `_`, `.`, `-`, spaces, and `/` between folders. No part between
    slashes is empty, begins or ends with a space, or is `.` or `..`.
    """
    plain = unicodedata.normalize("NFC", name[: LONGEST_NAME * 4])
    if not is_name(plain) or len(name) > LONGEST_NAME * 4:
        raise RequestRefused(ErrorCode.FILE_NAME_INVALID, name=shown_name(name), limit=LONGEST_NAME)
    return plain


def is_name(name: str) -> bool:
    """Return whether this is a valid file name in its stored form."""
    if not 0 < len(name) <= LONGEST_NAME or not unicodedata.is_normalized("NFC", name):
        return False
    return all(map(_may_stand, name)) and ".." not in name and all(map(_is_segment, name.split("/")))


def key_of(name: str) -> str:
    """Return the key of a name: two names with the same key are the same file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def is_in_the_way(key: str, keys: Iterable[str]) -> bool:
    """Return whether one of the keys is a folder of this key, or this key is a folder of one of them."""
    return any(key.startswith(f"{other}/") or other.startswith(f"{key}/") for other in keys)


def shown_name(name: str) -> str:
    """Return an unchecked name, made safe and short for a message."""
    plain = "".join(sign if sign.isprintable() else "?" for sign in name[: _SHOWN_CHARACTERS + 1])
    return plain if len(plain) <= _SHOWN_CHARACTERS else plain[: _SHOWN_CHARACTERS - 1] + "…"


def _may_stand(sign: str) -> bool:
    return sign in _SIGNS or (unicodedata.category(sign)[0] in _KINDS and sign not in _INVISIBLE)


def _is_segment(segment: str) -> bool:
    # A mark needs a letter before it: alone it would attach to the slash.
    is_there = segment not in ("", ".") and segment == segment.strip(" ")
    return is_there and unicodedata.category(segment[0])[0] != "M"
