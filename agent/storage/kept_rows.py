"""Conversations as a whole in the database: listed, named, pinned, thrown away and brought back, switched, copied.

Plain blocking calls for the database's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, bindparam, exists, func, insert, or_, select, update

from agent.conversation import ConversationInfo, WorkspaceFile
from agent.storage import gallery_rows, workspace_rows
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_OWN = and_(_C.id == bindparam("key"), _C.owner == bindparam("whose"))
_KEPT = and_(_OWN, _C.deleted_at.is_(None))
_HAS_SOMETHING = or_(_C.title != "", exists().where(_T.conversation_id == _C.id))
_LISTED = (
    select(_C.id)
    .where(_C.owner == bindparam("whose"), _C.deleted_at.is_(None), _HAS_SOMETHING)
    .order_by(_C.updated_at.desc(), _C.id)
)
_PINNED = _LISTED.where(_C.is_pinned)
_OTHERS = _LISTED.where(~_C.is_pinned).limit(bindparam("page")).offset(bindparam("start"))
_PICTURES_OF_IT = _P.conversation_id == _C.id, _P.deleted_at.is_(None)
_INFOS = select(
    *(_C.id, _C.title, _C.created_at, _C.updated_at, _C.is_pinned),
    select(func.count()).where(*_PICTURES_OF_IT).scalar_subquery().label("picture_count"),
    select(func.coalesce(func.sum(_T.price_usd), 0.0))
    .where(_T.conversation_id == _C.id)
    .scalar_subquery()
    .label("price_usd"),
    select(_P.digest)
    .where(*_PICTURES_OF_IT)
    .order_by(_P.id.desc())
    .limit(1)
    .scalar_subquery()
    .label("thumbnail_digest"),
).where(_C.id.in_(bindparam("these", expanding=True)))
# Its place in the list stays; its words are to be found anew.
_RENAME = update(CONVERSATIONS).where(_KEPT).values(title=bindparam("name"), is_named=True, indexed_at=None)
_READ_ANEW = update(PICTURES).where(_P.conversation_id == bindparam("key")).values(is_indexed=False)
_PIN = update(CONVERSATIONS).where(_KEPT).values(is_pinned=bindparam("pinned"))
_THROW_AWAY = update(CONVERSATIONS).where(_OWN).values(deleted_at=func.coalesce(_C.deleted_at, bindparam("now")))
_BRING_BACK = update(CONVERSATIONS).where(_OWN).values(deleted_at=None)
_ALL = select(_C.id).where(_C.owner == bindparam("whose"))
_GIVE = update(CONVERSATIONS).where(_OWN).values(owner=bindparam("new_owner"))
_GIVE_PICTURES = update(PICTURES).where(_P.conversation_id == bindparam("key")).values(owner=bindparam("new_owner"))
_HEAD = select(_C.head).where(_KEPT)
_PARENTS = select(_T.id, _T.parent).where(_T.conversation_id == bindparam("key")).order_by(_T.position)
_SWITCH = update(CONVERSATIONS).where(_KEPT).values(head=bindparam("new_head"))
_WHOLE = select(_C.title, _C.created_at, _C.updated_at, _C.is_named, _C.is_pinned, _C.head).where(_KEPT)
_TURNS = select(TURNS, _T.id.label("turn_id")).where(_T.conversation_id == bindparam("key")).order_by(_T.position)
_PICTURES = select(PICTURES).where(_P.conversation_id == bindparam("key")).order_by(_P.id)
_TAKEN = select(_T.id).where(_T.id.in_(bindparam("these", expanding=True)))
_ADD_CONVERSATION = insert(CONVERSATIONS)
_ADD_TURNS = insert(TURNS)
_ADD_PICTURES = insert(PICTURES)
_ORIGINAL = PICTURES.alias("original")
_DELETE_ALIKE = (
    update(PICTURES)
    .where(_P.conversation_id == bindparam("copy"))
    .values(
        deleted_at=select(_ORIGINAL.c.deleted_at)
        .where(_ORIGINAL.c.conversation_id == bindparam("copied"), _ORIGINAL.c.handle == _P.handle)
        .scalar_subquery()
    )
)


class WholeRows(NamedTuple):
    """The rows of one conversation: its own, its turns' in the order they were made, its pictures'; the tags of these
    by their ids, and the files of its workspace."""

    conversation: Row[*tuple[Any, ...]]
    turns: Sequence[Row[*tuple[Any, ...]]]
    pictures: Sequence[Row[*tuple[Any, ...]]]
    tags: Mapping[int, tuple[str, ...]]
    files: tuple[WorkspaceFile, ...]


class NewRows(NamedTuple):
    """The rows of a conversation that is to be recorded, the tags of its pictures by their handles, and its files."""

    conversation: Mapping[str, Any]
    turns: Sequence[Mapping[str, Any]]
    pictures: Sequence[Mapping[str, Any]]
    tags: Mapping[str, tuple[str, ...]]
    files: tuple[WorkspaceFile, ...]


class KeptRows:
    """The table of conversations; `transaction` opens, or joins, one of the database's."""

    def __init__(self, transaction: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._transaction = transaction

    def list(self, owner: str, limit: int, offset: int) -> list[ConversationInfo]:
        """Return the owner's conversations, the pinned first, then the newest; neither empty nor deleted ones."""
        with self._transaction() as connection:
            # Two statements, each in the order of an index: sorted together, all would be looked at.
            pinned = list(connection.scalars(_PINNED, {"whose": owner}))
            page = pinned[offset : offset + limit]
            start = max(0, offset - len(pinned))
            values = {"whose": owner, "page": limit - len(page), "start": start}
            others = list(connection.scalars(_OTHERS, values)) if len(page) < limit else []
            return _infos(connection, [*page, *others])

    def infos(self, ids: Iterable[str]) -> Sequence[ConversationInfo]:
        """Return what a list shows of these conversations, in their order."""
        with self._transaction() as connection:
            return _infos(connection, list(ids))

    def rename(self, conversation_id: str, owner: str, title: str) -> bool:
        """Return whether the owner has such a conversation, which now has that title for good."""
        with self._transaction() as connection:
            values = {"key": conversation_id, "whose": owner, "name": title}
            is_there = bool(connection.execute(_RENAME, values).rowcount)
            if is_there:
                # Its pictures are found by the title as well.
                connection.execute(_READ_ANEW, {"key": conversation_id})
        return is_there

    def pin(self, conversation_id: str, owner: str, is_pinned: bool) -> bool:
        """Return whether the owner has such a conversation, which is now pinned or not."""
        return self._changes(_PIN, conversation_id, owner, pinned=is_pinned)

    def throw_away(self, conversation_id: str, owner: str, now: datetime) -> bool:
        """Return whether the owner has such a conversation, which is now deleted, since when it first was."""
        return self._changes(_THROW_AWAY, conversation_id, owner, now=now)

    def bring_back(self, conversation_id: str, owner: str) -> bool:
        """Return whether the owner has such a conversation, which is now not deleted any more."""
        return self._changes(_BRING_BACK, conversation_id, owner)

    def hand_over(self, owner: str, new_owner: str, without: Collection[str]) -> Sequence[str]:
        """Give everything of an owner to another one but for these conversations; return the ids of what was given."""
        with self._transaction() as connection:
            given = [key for key in connection.scalars(_ALL, {"whose": owner}) if key not in without]
            for key in given:
                values = {"key": key, "whose": owner, "new_owner": new_owner}
                connection.execute(_GIVE, values)
                connection.execute(_GIVE_PICTURES, values)
        return given

    def parents(self, conversation_id: str, owner: str) -> tuple[str | None, dict[str, str | None]] | None:
        """Return the head of the owner's conversation and each turn's parent, in the order the turns were made."""
        with self._transaction() as connection:
            head = connection.execute(_HEAD, {"key": conversation_id, "whose": owner}).one_or_none()
            if head is None:
                return None
            found = connection.execute(_PARENTS, {"key": conversation_id})
            return head.head, {row.id: row.parent for row in found}

    def switch(self, conversation_id: str, owner: str, head: str) -> bool:
        """Return whether the owner has such a conversation, of which now the branch of `head` is shown."""
        return self._changes(_SWITCH, conversation_id, owner, new_head=head)

    def whole(self, conversation_id: str, owner: str) -> WholeRows | None:
        """Return all rows of the owner's conversation."""
        with self._transaction() as connection:
            own = connection.execute(_WHOLE, {"key": conversation_id, "whose": owner}).one_or_none()
            if own is None:
                return None
            key = {"key": conversation_id}
            turns, pictures = connection.execute(_TURNS, key).all(), connection.execute(_PICTURES, key).all()
            tags = gallery_rows.tags_of(connection, [row.id for row in pictures])
            return WholeRows(own, turns, pictures, tags, workspace_rows.all_of(connection, conversation_id))

    def taken(self, turn_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that turns of any conversation have: the journal goes by them alone."""
        with self._transaction() as connection:
            return set(connection.scalars(_TAKEN, {"these": list(turn_ids)}))

    def add_whole(self, new: NewRows, copy_of: str | None) -> None:
        """Record a conversation with all its rows; of a copy the pictures are deleted that are in the original."""
        key, owner = new.conversation["id"], new.conversation["owner"]
        with self._transaction() as connection:
            connection.execute(_ADD_CONVERSATION, dict(new.conversation))
            if new.turns:
                connection.execute(_ADD_TURNS, [dict(row) for row in new.turns])
            if new.pictures:
                connection.execute(_ADD_PICTURES, [dict(row) for row in new.pictures])
            gallery_rows.add_tags(connection, owner, key, new.tags)
            workspace_rows.add_all(connection, key, new.files)
            if copy_of is not None:
                connection.execute(_DELETE_ALIKE, {"copy": key, "copied": copy_of})

    def _changes(self, statement: Any, conversation_id: str, owner: str, **values: object) -> bool:
        with self._transaction() as connection:
            outcome = connection.execute(statement, {"key": conversation_id, "whose": owner, **values})
            return bool(outcome.rowcount)


def _infos(connection: Connection, ids: list[str]) -> list[ConversationInfo]:
    if not ids:
        return []
    rows = connection.execute(_INFOS, {"these": ids})
    found = {row.id: ConversationInfo(**row._mapping) for row in rows}
    return [found[one] for one in ids if one in found]
