"""The workspace: the files of a conversation, in the database. No name of theirs ever leads to the server's disk."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agent.conversation import WorkspaceFile, Writer
from agent.errors import ErrorCode, RequestRefused
from agent.messages import Value
from agent.storage.workspace_names import checked_file_name

if TYPE_CHECKING:
    from agent.storage.conversations import ConversationStore
    from agent.storage.quota import Quota

T = TypeVar("T")

NEW_FILE = 0
"""The version that is expected of a file which must not be there yet."""


@dataclass(frozen=True)
class Limits:
    """What a workspace may hold at most: how many files, and bytes of one and of all of them."""

    files: int = 200
    file_bytes: int = 1 << 20
    total_bytes: int = 10 << 20


class Place(NamedTuple):
    """Which conversation, and who asks for its files."""

    conversation_id: str
    owner: str


class FileInfo(Value):
    """A file without what it holds; see `WorkspaceFile`."""

    name: str
    size_bytes: int
    version: int
    updated_at: datetime
    written_by: Writer
    is_untrusted: bool = False


class WorkspaceStore:
    """The workspaces of every conversation; `room` is asked before anything is written."""

    def __init__(self, records: ConversationStore, limits: Limits | None = None, room: Quota | None = None) -> None:
        self._records = records
        self._limits = limits or Limits()
        self._room = room

    def of(self, conversation_id: str, owner: str) -> Workspace:
        """Return the workspace of a conversation; each call on it asks whether that is the owner's."""
        return Workspace(self._records, Place(conversation_id, owner), self._limits, self._room)


@dataclass(frozen=True)
class Workspace:
    """The files of one conversation, for its owner.

    A name is found whatever its case, and is kept as it was first given (`workspace_names`). Every call raises
    RequestRefused: FILE_NAME_INVALID, and CONVERSATION_NOT_FOUND also when the conversation is deleted or somebody
    else's; and StorageFailure when the database cannot be read or written.
    """

    records: ConversationStore
    place: Place
    limits: Limits = Limits()
    room: Quota | None = None

    # Reading

    async def list(self) -> tuple[FileInfo, ...]:
        """Return what files there are, by name."""
        from agent.storage import workspace_rows

        return await self.records.read(lambda on: workspace_rows.infos(on, self.place))

    async def read(self, name: str) -> WorkspaceFile:
        """Return a file with what it holds. Raises RequestRefused(FILE_NOT_FOUND)."""
        from agent.storage import workspace_rows

        called = checked_file_name(name)
        return await self.records.read(lambda on: workspace_rows.file(on, self.place, called))

    async def read_text(self, name: str) -> str:
        """Return the text of a file. Raises RequestRefused: FILE_NOT_FOUND, FILE_NOT_TEXT."""
        file = await self.read(name)
        if file.text is None:
            raise RequestRefused(ErrorCode.FILE_NOT_TEXT, name=file.name)
        return file.text

    async def all_texts(self) -> dict[str, str]:
        """Return the text of every file that is one, by name."""
        from agent.storage import workspace_rows

        files = await self.records.read(lambda on: workspace_rows.files(on, self.place))
        return {file.name: text for file in files if (text := file.text) is not None}

    async def size(self) -> int:
        """Return how many bytes all files hold together."""
        from agent.storage import workspace_rows

        return await self.records.read(lambda on: workspace_rows.size(on, self.place))

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
        """Write a file, a new one or in the place of what it holds, and return it as it is now. Text becomes UTF-8.

        A file that `is_untrusted` stays so when nothing is said of that. Raises RequestRefused: FILE_CHANGED when its
        version is not the expected one (`NEW`: it must not be there yet), FILE_NAME_TAKEN when a folder has the name,
        FILE_TOO_LARGE, TOO_MANY_FILES, WORKSPACE_FULL, VISITOR_QUOTA_USED_UP; nothing is changed then.
        """
        from agent.storage import workspace_rows

        called = checked_file_name(name)
        # Half a character, which a model may write, has no UTF-8.
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        if len(data) > self.limits.file_bytes:
            raise RequestRefused(ErrorCode.FILE_TOO_LARGE, name=called, limit=self.limits.file_bytes >> 20)
        if self.room is not None:
            await self.room.check(self.place.owner, new_bytes=len(data))
        new = workspace_rows.Writing(called, data, by, is_untrusted, expected_version, datetime.now(UTC))
        return await self.records.in_transaction(lambda on: workspace_rows.write(on, self.place, new, self.limits))

    async def rename(self, name: str, new_name: str) -> FileInfo:
        """Give a file another name, or the same in another case, and return it.

        Raises RequestRefused: FILE_NOT_FOUND, FILE_NAME_TAKEN when a file or a folder has the name.
        """
        from agent.storage import workspace_rows

        called, wanted = checked_file_name(name), checked_file_name(new_name)
        return await self.records.in_transaction(lambda on: workspace_rows.rename(on, self.place, called, wanted))

    async def delete(self, name: str, *, expected_version: int | None = None) -> None:
        """Delete a file for good. Raises RequestRefused: FILE_NOT_FOUND, FILE_CHANGED."""
        from agent.storage import workspace_rows

        called = checked_file_name(name)
        await self.records.in_transaction(lambda on: workspace_rows.remove(on, self.place, called, expected_version))
