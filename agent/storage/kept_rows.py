"""Conversations as a whole in the database: listed, named, pinned, thrown away and brought back, switched, copied.

Plain blocking calls for the database's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, bindparam, exists, func, insert, or_, select, update

from agent.conversation import ConversationInfo, DeletedConversation, WorkspaceFile
from agent.errors import ErrorCode, RequestRefused
from agent.library import KEPT_FOR
from agent.storage import gallery_rows, workspace_rows
from agent.storage.tables import CONVERSATIONS, PICTURES, TURN_QUEUE, TURNS
from agent.storage.transactions import Transactions
from agent.storage.trees import newest_below, shown

_C, _T, _P, _Q = CONVERSATIONS.c, TURNS.c, PICTURES.c, TURN_QUEUE.c
_OWN = and_(_C.id == bindparam("key"), _C.owner == bindparam("whose"))
_KEPT = and_(_OWN, _C.deleted_at.is_(None))
_HAS_SOMETHING = or_(_C.title != "", exists().where(_T.conversation_id == _C.id))
_LISTED = (
    select(_C.id)
    .where(_C.owner == bindparam("whose"), _C.deleted_at.is_(None), _HAS_SOMETHING)
    .order_by(_C.updated_at.desc(), _C.id)
)
_PINNED = _LISTED.where(_C.is_pinned)
_NEWEST = _LISTED.where(_C.title != "").limit(1)
_OTHERS = _LISTED.where(~_C.is_pinned).limit(bindparam("page")).offset(bindparam("start"))
_PICTURES_OF_IT = _P.conversation_id == _C.id, _P.deleted_at.is_(None)
_IN_TRASH = _C.owner == bindparam("whose"), _C.deleted_at.is_not(None), _HAS_SOMETHING
_TRASH = (
    select(
        *(_C.id, _C.title, _C.deleted_at),
        select(func.count()).where(*_PICTURES_OF_IT).scalar_subquery().label("picture_count"),
    )
    .where(*_IN_TRASH)
    .order_by(_C.deleted_at.desc(), _C.id)
    .limit(bindparam("page"))
    .offset(bindparam("start"))
)
_INFOS = select(
    *(_C.id, _C.title, _C.created_at, _C.updated_at, _C.is_pinned),
    select(func.count()).where(*_PICTURES_OF_IT).scalar_subquery().label("picture_count"),
    select(func.coalesce(func.sum(_T.price_usd), 0.0))
    .where(_T.conversation_id == _C.id)
    .scalar_subquery()
    .label("price_usd"),
    select(_P.digest)
    .where(*_PICTURES_OF_IT)
    .order_by(_P.position.desc())
    .limit(1)
    .scalar_subquery()
    .label("thumbnail_digest"),
).where(_C.id.in_(bindparam("these", expanding=True)))
# Its place in the list stays; its words are to be found anew.
_CHANGE = update(CONVERSATIONS).values(version=_C.version + 1).returning(_C.version)
_RENAME = _CHANGE.where(_KEPT).values(title=bindparam("name"), is_named=True, indexed_at=None)
_READ_ANEW = update(PICTURES).where(_P.conversation_id == bindparam("key")).values(is_indexed=False)
_PIN = _CHANGE.where(_KEPT).values(is_pinned=bindparam("pinned"))
_THROW_AWAY = _CHANGE.where(_OWN).values(deleted_at=func.coalesce(_C.deleted_at, bindparam("now")))
_BRING_BACK = _CHANGE.where(_OWN).values(deleted_at=None)
_ALL = select(_C.id).where(_C.owner == bindparam("whose"))
# The requests of the other owner are not this one's.
_GIVE = _CHANGE.where(_OWN).values(owner=bindparam("new_owner"), request_id=None)
_GIVE_PICTURES = update(PICTURES).where(_P.conversation_id == bindparam("key")).values(owner=bindparam("new_owner"))
_REQUESTED = select(_C.id).where(
    _C.owner == bindparam("whose"),
    _C.deleted_at.is_(None),
    or_(
        exists().where(_T.conversation_id == _C.id, _T.request_id == bindparam("request")),
        exists().where(_Q.conversation_id == _C.id, _Q.request_id == bindparam("request")),
    ),
)
_NEWEST_REQUESTED = _REQUESTED.order_by(_C.updated_at.desc(), _C.id).limit(1)
_HEAD = select(_C.head).where(_KEPT)
_PARENTS = select(_T.id, _T.parent).where(_T.conversation_id == bindparam("key")).order_by(_T.position)
_SWITCH = _CHANGE.where(_KEPT).values(head=bindparam("new_head"))
_WHOLE = select(_C.title, _C.created_at, _C.updated_at, _C.is_named, _C.is_pinned, _C.head).where(_KEPT)
_TURNS = select(TURNS, _T.id.label("turn_id")).where(_T.conversation_id == bindparam("key")).order_by(_T.position)
_PICTURES = select(PICTURES).where(_P.conversation_id == bindparam("key")).order_by(_P.position)
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
    """The table of conversations; `transactions` opens those of its database."""

    def __init__(self, transactions: Transactions) -> None:
        self._db = transactions

    def list(self, owner: str, limit: int, offset: int) -> list[ConversationInfo]:
        """Return the owner's conversations, the pinned first, then the newest; neither empty nor deleted ones."""
        with self._db.reading() as connection:
            # Two statements, each in the order of an index: sorted together, all would be looked at.
            pinned = list(connection.scalars(_PINNED, {"whose": owner}))
            page = pinned[offset : offset + limit]
            start = max(0, offset - len(pinned))
            values = {"whose": owner, "page": limit - len(page), "start": start}
            others = list(connection.scalars(_OTHERS, values)) if len(page) < limit else []
            return _infos(connection, [*page, *others])

    def pinned_and_newest(self, owner: str, count: int) -> Sequence[ConversationInfo]:
        """Return all pinned conversations of the owner, then the `count` newest others; neither empty nor deleted."""
        with self._db.reading() as connection:
            pinned = connection.scalars(_PINNED, {"whose": owner}).all()
            others = connection.scalars(_OTHERS, {"whose": owner, "page": count, "start": 0}).all()
            return _infos(connection, [*pinned, *others])

    def newest(self, owner: str) -> str | None:
        """Return the owner's conversation that changed last, of those that have a title, pinned or not."""
        with self._db.reading() as connection:
            found: str | None = connection.scalar(_NEWEST, {"whose": owner})
            return found

    def of_request(self, request_id: str, owner: str) -> str | None:
        """Return the owner's conversation in which a turn of this request is on record or waits; the newest of several,
        no deleted one."""
        with self._db.reading() as connection:
            found: str | None = connection.scalar(_NEWEST_REQUESTED, {"whose": owner, "request": request_id})
            return found

    def infos(self, ids: Iterable[str]) -> Sequence[ConversationInfo]:
        """Return what a list shows of these conversations, in their order."""
        with self._db.reading() as connection:
            return _infos(connection, list(ids))

    def trash(self, owner: str, limit: int, offset: int) -> Sequence[DeletedConversation]:
        """Return the owner's deleted conversations, the one that was deleted last first; no empty ones."""
        with self._db.reading() as connection:
            rows = connection.execute(_TRASH, {"whose": owner, "page": limit, "start": offset}).all()
        return [DeletedConversation(**row._asdict(), kept_until=row.deleted_at + KEPT_FOR) for row in rows]

    # Each returns the version of the owner's conversation after the change, None where there is no such conversation.

    def rename(self, conversation_id: str, owner: str, title: str) -> int | None:
        """Give a conversation a title for good."""
        with self._db.writing() as connection:
            values = {"key": conversation_id, "whose": owner, "name": title}
            version: int | None = connection.execute(_RENAME, values).scalar_one_or_none()
            if version is not None:
                # Its pictures are found by the title as well.
                connection.execute(_READ_ANEW, {"key": conversation_id})
        return version

    def pin(self, conversation_id: str, owner: str, is_pinned: bool) -> int | None:
        """Pin a conversation, or not any more."""
        return self._changed(_PIN, conversation_id, owner, pinned=is_pinned)

    def throw_away(self, conversation_id: str, owner: str, now: datetime) -> int | None:
        """Delete a conversation, or leave it deleted since when it first was."""
        return self._changed(_THROW_AWAY, conversation_id, owner, now=now)

    def bring_back(self, conversation_id: str, owner: str) -> int | None:
        """Have a conversation be not deleted any more."""
        return self._changed(_BRING_BACK, conversation_id, owner)

    def hand_over(self, owner: str, new_owner: str, is_busy: Callable[[Connection, str], bool]) -> Sequence[str]:
        """Give everything of an owner to another one but for conversations that are busy; return the ids of what was
        given."""
        with self._db.writing() as connection:
            theirs = list(connection.scalars(_ALL, {"whose": owner}))
            given = [key for key in theirs if not is_busy(connection, key)]
            for key in given:
                values = {"key": key, "whose": owner, "new_owner": new_owner}
                connection.execute(_GIVE, values)
                connection.execute(_GIVE_PICTURES, values)
        return given

    def switch(self, conversation_id: str, owner: str, turn_id: str, is_busy: Callable[[Connection], bool]) -> None:
        """Have the branch of the owner's conversation be shown that holds the turn, up to its newest descendant.

        A turn of the branch that is shown changes nothing. Raises RequestRefused: CONVERSATION_NOT_FOUND,
        TURN_NOT_FOUND, CONVERSATION_BUSY where `is_busy` says so.
        """
        with self._db.writing() as connection:
            head = connection.execute(_HEAD, {"key": conversation_id, "whose": owner}).one_or_none()
            if head is None:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            parents = {row.id: row.parent for row in connection.execute(_PARENTS, {"key": conversation_id})}
            if turn_id not in parents:
                raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
            if turn_id in shown(head.head, parents).path:
                return
            if is_busy(connection):
                raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
            values = {"key": conversation_id, "whose": owner, "new_head": newest_below(turn_id, parents)}
            connection.execute(_SWITCH, values)

    def whole(self, conversation_id: str, owner: str) -> WholeRows | None:
        """Return all rows of the owner's conversation."""
        with self._db.reading() as connection:
            own = connection.execute(_WHOLE, {"key": conversation_id, "whose": owner}).one_or_none()
            if own is None:
                return None
            key = {"key": conversation_id}
            turns, pictures = connection.execute(_TURNS, key).all(), connection.execute(_PICTURES, key).all()
            tags = gallery_rows.tags_of(connection, [row.id for row in pictures])
            return WholeRows(own, turns, pictures, tags, workspace_rows.all_of(connection, conversation_id))

    def taken(self, turn_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that turns of any conversation have: the journal goes by them alone."""
        with self._db.reading() as connection:
            return set(connection.scalars(_TAKEN, {"these": list(turn_ids)}))

    def add_whole(self, new: NewRows, copy_of: str | None) -> None:
        """Record a conversation with all its rows; of a copy the pictures are deleted that are in the original."""
        key, owner = new.conversation["id"], new.conversation["owner"]
        with self._db.writing() as connection:
            connection.execute(_ADD_CONVERSATION, dict(new.conversation))
            if new.turns:
                connection.execute(_ADD_TURNS, [dict(row) for row in new.turns])
            if new.pictures:
                connection.execute(_ADD_PICTURES, [dict(row) for row in new.pictures])
            gallery_rows.add_tags(connection, owner, key, new.tags)
            workspace_rows.add_all(connection, key, new.files)
            if copy_of is not None:
                connection.execute(_DELETE_ALIKE, {"copy": key, "copied": copy_of})

    def _changed(self, statement: Any, conversation_id: str, owner: str, **values: object) -> int | None:
        with self._db.writing() as connection:
            outcome = connection.execute(statement, {"key": conversation_id, "whose": owner, **values})
            version: int | None = outcome.scalar_one_or_none()
            return version


def _infos(connection: Connection, ids: list[str]) -> list[ConversationInfo]:
    if not ids:
        return []
    rows = connection.execute(_INFOS, {"these": ids})
    found = {row.id: ConversationInfo(**row._asdict()) for row in rows}
    return [found[one] for one in ids if one in found]
