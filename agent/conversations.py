"""The conversations of a studio. Each has one owner; other owners can neither read nor change it."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.conversation import Conversation, ConversationInfo, DeletedConversation, TurnsPage
from agent.errors import ErrorCode, RequestRefused
from agent.messages import whole_characters
from agent.storage.conversations import ConversationStore
from agent.storage.quota import Quota

if TYPE_CHECKING:
    from agent.storage.conversation_search import ConversationHit

_MAX_REQUEST_CHARACTERS = 200


@dataclass(frozen=True)
class Conversations:
    """The conversations of a studio, by owner.

    Every call may raise StorageFailure, and RequestRefused when the owner has no such conversation. `_is_running`
    returns whether a conversation of an owner has an active turn; `_stop` stops it.
    """

    _records: ConversationStore
    _quota: Quota
    _is_running: Callable[[str, str], bool]
    _stop: Callable[[str, str], Awaitable[bool]]

    async def create(self, owner: str = "local", request_id: str | None = None) -> Conversation:
        """Return a new, empty conversation, or the one that the owner created with the same `request_id`.

        This is idempotent across processes, concurrent calls and restarts. If that conversation was deleted since, a
        new one is created, and the `request_id` belongs to the new one from then on. Raises ValueError for a
        `request_id` that is not 1 to 200 characters long.
        """
        if request_id is not None and not 0 < len(request_id) <= _MAX_REQUEST_CHARACTERS:
            raise ValueError(f"a request id has 1 to {_MAX_REQUEST_CHARACTERS} characters, not {len(request_id)}")
        return await self._records.create(owner, request_id=request_id and whole_characters(request_id))

    async def get(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Return a conversation."""
        return await self._records.get(conversation_id, owner)

    async def turns_page(
        self, conversation_id: str, owner: str = "local", *, before: str | None = None, limit: int = 50
    ) -> TurnsPage:
        """Return a page of the shown branch's turns, with the pictures that they show.

        These are the newest turns, or those before the turn `before`; no other turn is read. Raises RequestRefused
        when the shown branch has no turn `before`.
        """
        return await self._records.turns_page(conversation_id, owner, before, max(1, limit))

    async def list(self, owner: str = "local", limit: int = 50, offset: int = 0) -> Sequence[ConversationInfo]:
        """Return the owner's conversations, pinned first, then newest first; without empty and deleted ones."""
        return await self._records.list(owner, limit, offset)

    async def pinned_and_newest(self, owner: str = "local", count: int = 50) -> Sequence[ConversationInfo]:
        """Return the owner's pinned conversations, then the `count` newest others; without empty and deleted ones."""
        return await self._records.pinned_and_newest(owner, count)

    async def newest(self, owner: str = "local") -> str | None:
        """Return the id of the owner's last changed conversation, pinned or not; None when none has a title."""
        return await self._records.newest(owner)

    async def search(self, query: str, owner: str = "local", limit: int = 30) -> Sequence[ConversationHit]:
        """Return the owner's conversations that contain every word of the query, newest first, with the locations."""
        return await self._records.search(owner, whole_characters(query), limit)

    async def rename(self, conversation_id: str, title: str, owner: str = "local") -> None:
        """Give a conversation a permanent title. Raises RequestRefused for an empty or a too long one."""
        await self._records.rename(conversation_id, owner, whole_characters(title))

    async def pin(self, conversation_id: str, is_pinned: bool, owner: str = "local") -> None:
        """Pin a conversation to the top of the list, or unpin it."""
        await self._records.pin(conversation_id, owner, is_pinned)

    async def duplicate(self, conversation_id: str, owner: str = "local", title: str = "") -> Conversation:
        """Return a copy of a conversation with every branch; it keeps the title unless `title` is given."""
        copied = (await self._records.get(conversation_id, owner)).all_pictures
        sizes = (one.image.size_bytes + (one.original.size_bytes if one.original else 0) for one in copied)
        await self._quota.check(owner, new_bytes=sum(sizes), new_pictures=len(copied))
        return await self._records.duplicate(conversation_id, owner, whole_characters(title))

    async def switch_branch(self, conversation_id: str, turn_id: str, owner: str = "local") -> Conversation:
        """Show the branch that contains this turn, up to its newest turn, and return the conversation.

        Raises RequestRefused while a turn runs, and for a turn that the conversation does not have.
        """
        if self._is_running(conversation_id, owner):
            raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
        # A turn that starts at this moment is prepared again for the branch that is shown afterwards.
        return await self._records.switch_branch(conversation_id, turn_id, owner)

    # The trash

    async def delete(self, conversation_id: str, owner: str = "local") -> None:
        """Stop the turns of a conversation and move it to the trash; `undelete` restores it."""
        await self._stop(conversation_id, owner)
        await self._records.delete(conversation_id, owner)

    async def undelete(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Restore a deleted conversation unchanged and return it."""
        return await self._records.undelete(conversation_id, owner)

    async def trash(self, owner: str = "local", limit: int = 50, offset: int = 0) -> Sequence[DeletedConversation]:
        """Return the deleted conversations, the last deleted first. Each is kept for at least 30 days."""
        return await self._records.trash(owner, limit, offset)

    async def delete_forever(self, conversation_id: str, owner: str = "local") -> None:
        """Delete a trashed conversation permanently. Raises RequestRefused when the trash has none with that id."""
        await self._records.delete_forever(conversation_id, owner)

    async def empty_trash(self, owner: str = "local") -> int:
        """Delete all trashed conversations permanently; return their number."""
        return await self._records.empty_trash(owner)

    async def __call__(self, owner: str = "local", limit: int = 50, offset: int = 0) -> Sequence[ConversationInfo]:
        """Deprecated: `list`."""
        warnings.warn("use `studio.conversations.list`", DeprecationWarning, stacklevel=2)
        return await self.list(owner, limit, offset)
