"""Conversations as this process last read or wrote them: a turn does not read and check its whole past again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from agent.conversation import Conversation, Turn
from agent.pictures import Picture
from agent.storage.rows import PICTURE_COLUMNS, TURN_COLUMNS, conversation_of
from agent.storage.signatures import large_signatures
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_LIMIT = 64
_LIMIT_BYTES = 64 << 20

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
    """What one write made of a conversation: its new version, fields of its own, the turn that has begun or changed,
    and pictures, as they are now.

    Where `is_newest`, a picture that is not kept yet comes after all others.
    """

    version: int
    fields: Mapping[str, object] = {}
    begun: Turn | None = None
    turn: Turn | None = None
    pictures: tuple[Picture, ...] = ()
    is_newest: bool = True


class ConversationCache:
    """At most 64 conversations, and 64 MB of large signatures in them; the least used goes first.

    Written on the thread of the database right after each commit, read from any thread. `version_now` tells the
    version of a conversation on record, None where it cannot tell; `read_blob` reads a large signature.
    """

    def __init__(self, version_now: Callable[[str], int | None], read_blob: Callable[[str], bytes]) -> None:
        self._version_now = version_now
        self._read_blob = read_blob
        self._kept: OrderedDict[str, tuple[Conversation, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, conversation_id: str) -> Conversation | None:
        """Return what is kept of a conversation, where nobody has changed it since in any process."""
        kept = self._get(conversation_id)
        return kept if kept is not None and self._version_now(conversation_id) == kept.version else None

    def load(self, connection: Connection, conversation_id: str) -> tuple[Conversation | None, bool]:
        """Return the conversation, its pictures without the image model's answers, and whether it is deleted."""
        key, kept = {"key": conversation_id}, self._get(conversation_id)
        if kept is not None and kept.version == connection.scalar(VERSION, key):
            # Written in this process a moment ago.
            return kept, False
        self.drop(conversation_id)
        turns = connection.execute(_TURNS, key).all()
        if not turns:
            return None, False
        loaded = conversation_of(turns, connection.execute(_PICTURES, key).all(), self._read_blob)
        is_deleted = turns[0].deleted_at is not None
        # What is in memory is there for whoever it belongs to.
        if not is_deleted:
            self.put(loaded)
        return loaded, is_deleted

    def put(self, conversation: Conversation) -> None:
        """Keep a conversation that was just read or created."""
        with self._lock:
            self._drop(conversation.id)
            self._keep(conversation, sum(map(_weight, conversation.turns)))

    def apply(self, conversation_id: str, change: Change | None) -> None:
        """Apply what was just recorded, if the conversation is kept as it was one version before.

        It is read anew when it is next used where another process has written, too, or the change cannot be told.
        """
        with self._lock:
            kept = self._drop(conversation_id)
            if kept is None or change is None or kept[0].version != change.version - 1:
                return
            changed = _changed(kept[0], change)
            if changed is not None:
                new = change.begun or change.turn
                added = _weight(new) - sum(_weight(one) for one in kept[0].turns if one.id == new.id) if new else 0
                self._keep(changed, kept[1] + added)

    def drop(self, conversation_id: str) -> None:
        """Forget the conversation."""
        with self._lock:
            self._drop(conversation_id)

    def _get(self, conversation_id: str) -> Conversation | None:
        with self._lock:
            kept = self._kept.get(conversation_id)
            if kept is None:
                return None
            self._kept.move_to_end(conversation_id)
            return kept[0]

    def _drop(self, conversation_id: str) -> tuple[Conversation, int] | None:
        kept = self._kept.pop(conversation_id, None)
        if kept is not None:
            self._bytes -= kept[1]
        return kept

    def _keep(self, conversation: Conversation, weight: int) -> None:
        self._kept[conversation.id] = (conversation, weight)
        self._bytes += weight
        while len(self._kept) > _LIMIT or self._bytes > _LIMIT_BYTES:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed


def _changed(conversation: Conversation, change: Change) -> Conversation | None:
    """Return the conversation after the change. None where the record must tell in what order its pictures are now, and
    which of them are elsewhere: after a new branch, and after one that is not the newest."""
    turns, pictures, elsewhere = conversation.turns, conversation.pictures, conversation.elsewhere
    if (new := change.begun) is not None:
        if new.parent != (turns[-1].id if turns else None):
            return None
        turns = (*turns, new)
    elif (turn := change.turn) is not None:
        # One of a branch that is not shown is only on record.
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


def _weight(turn: Turn) -> int:
    return sum(len(signature) for signature in large_signatures(turn.messages))
