"""A cache of conversations as this process last read or wrote them, so that a turn need not reload its whole past."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cachetools import LRUCache
from sqlalchemy import Connection, bindparam, select

from agent.conversation import Conversation, Turn
from agent.pictures import Picture
from agent.storage.rows import PICTURE_COLUMNS, TURN_COLUMNS, conversation_of
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_LIMIT = 64

VERSION = select(_C.version).where(_C.id == bindparam("key"))
_TURNS = (
    select(
        *(_C.id, _C.owner, _C.title, _C.created_at, _C.updated_at, _C.is_pinned, _C.head, _C.version, _C.deleted_at),
        *TURN_COLUMNS,
    )
    .select_from(CONVERSATIONS.outerjoin(TURNS))
    .where(_C.id == bindparam("key"))
    .order_by(_T.position)
)
_PICTURES = select(*PICTURE_COLUMNS).where(_P.conversation_id == bindparam("key")).order_by(_P.position)


class Change(NamedTuple):
    """The effect of one write on a conversation: its new version, changed fields, a new or changed turn, and pictures.

    With `is_newest`, a picture that is not in the cache yet comes after all others.
    """

    version: int
    fields: Mapping[str, object] = {}
    begun: Turn | None = None
    turn: Turn | None = None
    pictures: tuple[Picture, ...] = ()
    is_newest: bool = True


class ConversationCache:
    """At most 64 conversations; the least recently used is evicted first.

    Entries are written on the database's thread right after each commit, and read from any thread. `version_now`
    returns the version of a conversation on record, or None when it cannot be read.
    """

    def __init__(self, version_now: Callable[[str], int | None]) -> None:
        self._version_now = version_now
        self._kept: LRUCache[str, Conversation] = LRUCache(_LIMIT)
        self._lock = threading.Lock()

    def get(self, conversation_id: str) -> Conversation | None:
        """Return the cached conversation if no process has changed it since; None otherwise."""
        kept = self._get(conversation_id)
        return kept if kept is not None and self._version_now(conversation_id) == kept.version else None

    def load(self, connection: Connection, conversation_id: str) -> tuple[Conversation | None, bool]:
        """Return the conversation, its pictures without the image model's answers, and whether it is soft-deleted."""
        key, kept = {"key": conversation_id}, self._get(conversation_id)
        if kept is not None and kept.version == connection.scalar(VERSION, key):
            # Written in this process a moment ago.
            return kept, False
        self.drop(conversation_id)
        turns = connection.execute(_TURNS, key).all()
        if not turns:
            return None, False
        loaded = conversation_of(turns, connection.execute(_PICTURES, key).all())
        is_deleted = turns[0].deleted_at is not None
        # A deleted conversation is not cached: cached ones are shown to their owner.
        if not is_deleted:
            self.put(loaded)
        return loaded, is_deleted

    def put(self, conversation: Conversation) -> None:
        """Keep a conversation that was just read or created."""
        with self._lock:
            self._kept[conversation.id] = conversation

    def apply(self, conversation_id: str, change: Change | None) -> None:
        """Apply a committed change if the cached version is the one right before it.

        Otherwise the entry is dropped and read again on next use: another process has written too, or the change is
        unknown.
        """
        with self._lock:
            kept = self._kept.pop(conversation_id, None)
            if kept is None or change is None or kept.version != change.version - 1:
                return
            changed = _changed(kept, change)
            if changed is not None:
                self._kept[conversation_id] = changed

    def drop(self, conversation_id: str) -> None:
        """Forget the conversation."""
        with self._lock:
            self._kept.pop(conversation_id, None)

    def _get(self, conversation_id: str) -> Conversation | None:
        with self._lock:
            return self._kept.get(conversation_id)


def _changed(conversation: Conversation, change: Change) -> Conversation | None:
    """Return the conversation after the change, or None when it must be read again.

    That is so after a new branch and after a picture that is not the newest: only the record has the order of the
    pictures, and which of them are elsewhere.
    """
    turns, pictures, elsewhere = conversation.turns, conversation.pictures, conversation.elsewhere
    if (new := change.begun) is not None:
        if new.parent != (turns[-1].id if turns else None):
            return None
        turns = (*turns, new)
    elif (turn := change.turn) is not None:
        # A turn on a branch that is not shown is only in the database.
        turns = tuple(turn if one.id == turn.id else one for one in turns)
    shown = {one.id for one in turns}
    for picture in change.pictures:
        if any(one.handle == picture.handle for one in (*pictures, *elsewhere)):
            pictures, elsewhere = _replaced(pictures, picture), _replaced(elsewhere, picture)
        elif not change.is_newest:
            return None
        elif picture.turn_id in shown:
            pictures = (*pictures, picture)
        else:
            elsewhere = (*elsewhere, picture)
    update = {**change.fields, "turns": turns, "pictures": pictures, "elsewhere": elsewhere, "version": change.version}
    return conversation.model_copy(update=update)


def _replaced(pictures: tuple[Picture, ...], new: Picture) -> tuple[Picture, ...]:
    return tuple(new if one.handle == new.handle else one for one in pictures)
