"""The conversations in use, kept in memory so that a turn does not read and check its whole past again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from agent.conversation import Conversation
from agent.storage.signatures import large_signatures

_LIMIT = 64
_LIMIT_BYTES = 64 << 20


class OpenConversations:
    """At most `limit` conversations, and `limit_bytes` of large signatures in them; the least used goes first.

    Written on the thread of the database right after each commit, read from any thread.
    """

    def __init__(self, limit: int = _LIMIT, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[str, tuple[Conversation, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, conversation_id: str) -> Conversation | None:
        """Return the conversation as it was on record when this process last read or wrote it, if it is kept."""
        with self._lock:
            kept = self._kept.get(conversation_id)
            if kept is None:
                return None
            self._kept.move_to_end(conversation_id)
            return kept[0]

    def put(self, conversation: Conversation) -> None:
        """Keep a conversation that was just read or created."""
        with self._lock:
            self._drop(conversation.id)
            self._keep(conversation, _weight(conversation))

    def change(
        self,
        conversation_id: str,
        version: int,
        change: Callable[[Conversation], Conversation | None],
        added_bytes: int = 0,
    ) -> None:
        """Apply what was just recorded, if the conversation is kept; `added_bytes` of signatures came with it.

        It is read anew when it is next used, where it was not kept as it was one `version` before: another process has
        written, too. So it is after a change that gives None: that cannot be told from what is kept.
        """
        with self._lock:
            kept = self._drop(conversation_id)
            changed = change(kept[0]) if kept is not None and kept[0].version == version - 1 else None
            if kept is not None and changed is not None:
                self._keep(changed.model_copy(update={"version": version}), kept[1] + added_bytes)

    def drop(self, conversation_id: str) -> None:
        """Forget the conversation."""
        with self._lock:
            self._drop(conversation_id)

    def _drop(self, conversation_id: str) -> tuple[Conversation, int] | None:
        kept = self._kept.pop(conversation_id, None)
        if kept is not None:
            self._bytes -= kept[1]
        return kept

    def _keep(self, conversation: Conversation, weight: int) -> None:
        self._kept[conversation.id] = (conversation, weight)
        self._bytes += weight
        while len(self._kept) > self._limit or self._bytes > self._limit_bytes:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed


def _weight(conversation: Conversation) -> int:
    return sum(len(signature) for signature in large_signatures(conversation.messages))
