"""The conversations of a studio, by owner: nobody sees, or changes, those of another."""

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
    """Every call may raise StorageFailure, and RequestRefused where the owner has no such conversation.

    `is_running` says whether a turn is at work in a conversation of an owner's, `stop` stops it.
    """

    _records: ConversationStore
    _quota: Quota
    _is_running: Callable[[str, str], bool]
    _stop: Callable[[str, str], Awaitable[bool]]

    async def create(self, owner: str = "local", request_id: str | None = None) -> Conversation:
        """Return a new, empty conversation; for a `request_id`, the one that the same request of the owner began.

        It is the same one in every process, also when several ask at once, and after a restart. One that was deleted
        since is not returned: a new one is begun, and the request is that one's from then on. Raises ValueError for a
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
        """Return a page of the turns of the branch that is shown, with the pictures that they show: the newest, or
        those before the turn `before`. No other turn is read.

        Raises RequestRefused where no such turn is shown.
        """
        return await self._records.turns_page(conversation_id, owner, before, max(1, limit))

    async def list(self, owner: str = "local", limit: int = 50, offset: int = 0) -> Sequence[ConversationInfo]:
        """Return the owner's conversations, the pinned first, then the newest; neither empty nor deleted ones."""
        return await self._records.list(owner, limit, offset)

    async def pinned_and_newest(self, owner: str = "local", count: int = 50) -> Sequence[ConversationInfo]:
        """Return all pinned conversations of the owner, then the `count` newest others; neither empty nor deleted."""
        return await self._records.pinned_and_newest(owner, count)

    async def newest(self, owner: str = "local") -> str | None:
        """Return the id of the owner's conversation that changed last, pinned or not; None where none has a title."""
        return await self._records.newest(owner)

    async def search(self, query: str, owner: str = "local", limit: int = 30) -> Sequence[ConversationHit]:
        """Return the owner's conversations that hold every word of the query, the newest first, each with where."""
        return await self._records.search(owner, whole_characters(query), limit)

    async def rename(self, conversation_id: str, title: str, owner: str = "local") -> None:
        """Give a conversation a title for good. Raises RequestRefused for an empty or a too long one."""
        await self._records.rename(conversation_id, owner, whole_characters(title))

    async def pin(self, conversation_id: str, is_pinned: bool, owner: str = "local") -> None:
        """Have a conversation stand before the others in the list, or not any more."""
        await self._records.pin(conversation_id, owner, is_pinned)

    async def duplicate(self, conversation_id: str, owner: str = "local", title: str = "") -> Conversation:
        """Return a copy of a conversation with every branch, under the same title unless one is given."""
        copied = await self._records.get(conversation_id, owner)
        await self._quota.check(
            owner,
            new_bytes=sum(picture.image.size_bytes for picture in copied.pictures),
            new_pictures=len(copied.pictures),
        )
        return await self._records.duplicate(conversation_id, owner, whole_characters(title))

    async def switch_branch(self, conversation_id: str, turn_id: str, owner: str = "local") -> Conversation:
        """Return the conversation with the branch shown that holds this turn, up to its newest turn.

        Raises RequestRefused while a turn runs, and for a turn that the conversation does not have.
        """
        if self._is_running(conversation_id, owner):
            raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
        # A turn that begins just now is prepared again for the branch that is shown then.
        return await self._records.switch_branch(conversation_id, turn_id, owner)

    # The trash

    async def delete(self, conversation_id: str, owner: str = "local") -> None:
        """Stop what runs in a conversation and put it into the trash; `undelete` brings it back."""
        await self._stop(conversation_id, owner)
        await self._records.delete(conversation_id, owner)

    async def undelete(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Return a deleted conversation, which is as it was before."""
        return await self._records.undelete(conversation_id, owner)

    async def trash(self, owner: str = "local", limit: int = 50, offset: int = 0) -> Sequence[DeletedConversation]:
        """Return the deleted conversations, the one that was deleted last first. Each is kept for 30 days at least."""
        return await self._records.trash(owner, limit, offset)

    async def delete_forever(self, conversation_id: str, owner: str = "local") -> None:
        """Remove a deleted conversation for good. Raises RequestRefused when there is none of that id in the trash."""
        await self._records.delete_forever(conversation_id, owner)

    async def empty_trash(self, owner: str = "local") -> int:
        """Remove all deleted conversations for good; return how many those were."""
        return await self._records.empty_trash(owner)

    async def __call__(self, owner: str = "local", limit: int = 50, offset: int = 0) -> Sequence[ConversationInfo]:
        """Deprecated: `list`."""
        warnings.warn("use `studio.conversations.list`", DeprecationWarning, stacklevel=2)
        return await self.list(owner, limit, offset)
