"""Conversations in the database, as plain blocking calls for one thread.

Statements are made once: SQLAlchemy then takes their SQL from its cache, which is most of what a call costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, case, exists, func, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import DesignRuleBroken, ErrorCode, RequestRefused
from agent.messages import ImageOrigin, Value
from agent.storage.call_rows import CallRows
from agent.storage.database import open_database, record_failure, set_durability
from agent.storage.kept_rows import KeptRows
from agent.storage.rows import changed_details, conversation_of, turn_of
from agent.storage.sweeping import SweepRows
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS
from agent.storage.trace_rows import TraceRows
from agent.storage.word_rows import WordRows

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_THIS = _C.id == bindparam("key")
_THIS_TURN = and_(_T.conversation_id == bindparam("key"), _T.id == bindparam("turn"))
_THIS_PICTURE = and_(_P.conversation_id == bindparam("key"), _P.handle == bindparam("name"))

_NEXT_POSITION = (
    select(func.coalesce(func.max(_T.position), -1) + 1)
    .where(_T.conversation_id == bindparam("within"))
    .scalar_subquery()
)
_ADD_CONVERSATION = insert(CONVERSATIONS)
_ADD_TURN = insert(TURNS).values(position=_NEXT_POSITION)
_ADD_PICTURE = insert(PICTURES).values(owner=select(_C.owner).where(_C.id == bindparam("within")).scalar_subquery())
_TOUCH = (
    update(CONVERSATIONS)
    .where(_THIS)
    .values(
        updated_at=bindparam("now"),
        title=func.coalesce(func.nullif(_C.title, ""), bindparam("new_title")),
        # Moments alone would not do: two writes may come to the disk in another order than they were made.
        indexed_at=None,
    )
)
# A deleted conversation takes what was on its way to it, but nothing new.
_LEAD_ON = _TOUCH.where(_C.deleted_at.is_(None)).values(head=bindparam("new_head"))
_CALL_IT = _TOUCH.values(title=case((_C.is_named, _C.title), else_=bindparam("new_title"))).returning(_C.title)
_FINISH = update(TURNS).where(_THIS_TURN)
_REPLACE_PICTURE = update(PICTURES).where(_THIS_PICTURE, _P.digest == bindparam("content"))
_DETAILS = select(_P.details).where(_THIS_PICTURE)
_SET_DETAILS = update(PICTURES).where(_THIS_PICTURE).values(details=bindparam("new_details"), is_indexed=False)
_MARK = update(PICTURES).where(_THIS_PICTURE).values(is_marked=bindparam("marked"))
_TURN = (
    *(_T.id.label("turn_id"), _T.parent, _T.text, _T.state, _T.started_at, _T.price_usd),
    *(_T.messages, _T.signatures, _T.components, _T.details),
)
_ONE_TURN = select(*_TURN).where(_THIS_TURN)
_TURNS_OF = (
    select(
        *(_C.id, _C.owner, _C.title, _C.created_at, _C.updated_at, _C.is_pinned, _C.head, _C.deleted_at, *_TURN),
    )
    .select_from(CONVERSATIONS.outerjoin(TURNS))
    .where(_THIS)
    .order_by(_T.position)
)
_PICTURES_OF = (
    select(_P.handle, _P.turn_id, _P.created_at, _P.is_marked, _P.receipt, _P.details, _P.deleted_at)
    .where(_P.conversation_id == bindparam("key"))
    .order_by(_P.id)
)
_ANSWER = select(_P.answer, _P.signatures).where(_THIS_PICTURE)
_RUNNING = (
    select(_T.conversation_id, _T.id, _T.runner, _T.started_at)
    .where(_T.state == TurnState.RUNNING.value)
    .order_by(_T.started_at)
)
_MADE_IN = (
    select(_P.handle)
    .where(
        _P.conversation_id == bindparam("key"),
        _P.turn_id == bindparam("turn"),
        _P.origin != ImageOrigin.UPLOADED.value,
    )
    .order_by(_P.id)
)
_ABANDON = update(TURNS).where(_THIS_TURN, _T.state == TurnState.RUNNING.value)
_REQUESTED = select(_T.id).where(_T.conversation_id == bindparam("key"), _T.request_id == bindparam("request"))


_NEXT = TURNS.alias("next")
# Only the newest turn of a branch may go on, whether the branch is shown or not.
_RESTING = select(_T.id).where(
    _T.state.not_in((TurnState.DONE.value, TurnState.STOPPED.value)),
    ~exists().where(_NEXT.c.conversation_id == _T.conversation_id, _NEXT.c.parent == _T.id),
)


class RunningTurn(NamedTuple):
    """A turn that is on record as running, and the sign of life of the process that ran it."""

    conversation_id: str
    turn_id: str
    runner: str
    started_at: datetime


class Loaded(NamedTuple):
    """A conversation as it is on record."""

    conversation: Conversation
    is_deleted: bool


class Records:
    """The open database. Raises StorageFailure when it cannot be read or written."""

    def __init__(self, home: Path) -> None:
        self._engine, self.set_aside = open_database(home)
        # One for all, as there is one thread: to take it from the pool for each costs as much as a statement.
        self._connection: Connection | None = None
        self._joint: Connection | None = None
        self._is_durable = False
        self.calls = CallRows(self.transaction)
        self.kept = KeptRows(self.transaction)
        self.words = WordRows(self.transaction)
        self.sweeping = SweepRows(self.transaction)
        self.traces = TraceRows(self.transaction)

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()

    def begin_batch(self, is_durable: bool) -> None:
        """Have the next transactions be on the disk itself when they are committed, or only in the system's hands."""
        if is_durable != self._is_durable:
            set_durability(self._connected(), is_durable)
            self._is_durable = is_durable

    @contextmanager
    def together(self) -> Iterator[None]:
        """Put every write of the block into one transaction: all of them are on record, or none."""
        with self.transaction() as connection:
            self._joint = connection
            try:
                yield
            finally:
                self._joint = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction, or join the one that several writes share."""
        if self._joint is not None:
            yield self._joint
            return
        try:
            with self._connected().begin():
                yield self._connected()
        except DBAPIError as error:
            raise record_failure(error) from error

    def _connected(self) -> Connection:
        if self._connection is None:
            try:
                self._connection = self._engine.connect()
            except DBAPIError as error:
                raise record_failure(error) from error
        return self._connection

    def create(self, conversation: Conversation) -> None:
        """Record a conversation that has no turn yet."""
        row = conversation.model_dump(include={"id", "owner", "title", "created_at", "updated_at"})
        with self.transaction() as connection:
            connection.execute(_ADD_CONVERSATION, {**row, "is_named": bool(conversation.title)})

    def load(self, conversation_id: str, read_blob: Callable[[str], bytes]) -> Loaded | None:
        """Return the conversation, its pictures without the image model's answers."""
        key = {"key": conversation_id}
        with self.transaction() as connection:
            turns = connection.execute(_TURNS_OF, key).all()
            pictures = connection.execute(_PICTURES_OF, key).all()
        if not turns:
            return None
        return Loaded(conversation_of(turns, pictures, read_blob), turns[0].deleted_at is not None)

    def turn(self, conversation_id: str, turn_id: str, read_blob: Callable[[str], bytes]) -> Turn | None:
        """Return a turn of any branch."""
        with self.transaction() as connection:
            row = connection.execute(_ONE_TURN, {"key": conversation_id, "turn": turn_id}).one_or_none()
        return turn_of(row, read_blob) if row else None

    def begin_turn(
        self,
        conversation_id: str,
        turn_row: dict[str, Any],
        pictures: Sequence[dict[str, Any]],
        title: str,
        now: datetime,
    ) -> None:
        """Record a turn and its uploads. Raises RequestRefused when the conversation is gone."""
        with self.transaction() as connection:
            _lead_on(connection, conversation_id, title, turn_row["id"], now)
            connection.execute(_ADD_TURN, {"conversation_id": conversation_id, "within": conversation_id, **turn_row})
            if pictures:
                connection.execute(_ADD_PICTURE, [{"within": conversation_id, **row} for row in pictures])

    def requested_turn(self, conversation_id: str, request_id: str) -> str | None:
        """Return the id of the turn that was sent under this name, if there is one."""
        with self.transaction() as connection:
            found: str | None = connection.scalar(_REQUESTED, {"key": conversation_id, "request": request_id})
        return found

    def finish_turn(
        self, conversation_id: str, turn_id: str, row: dict[str, Any], now: datetime, title: str = ""
    ) -> str | None:
        """Write everything of a turn anew. Return what the conversation is called now, when there is a title for it.

        The person's own title stays. Raises RequestRefused when the turn is gone.
        """
        with self.transaction() as connection:
            called = None
            if title:
                called = _call_it(connection, conversation_id, title, now)
            else:
                _touch(connection, conversation_id, "", now)
            if not connection.execute(_FINISH, {"key": conversation_id, "turn": turn_id, **row}).rowcount:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            return called

    def add_picture(self, conversation_id: str, row: dict[str, Any], now: datetime) -> None:
        """Record a picture; the same one under the same handle again replaces its record.

        Raises RequestRefused when the conversation is gone, DesignRuleBroken when another picture has the handle.
        """
        with self.transaction() as connection:
            _touch(connection, conversation_id, "", now)
            place = {"key": conversation_id, "name": row["handle"], "content": row["digest"]}
            if connection.execute(_REPLACE_PICTURE, {**place, **row}).rowcount:
                return
            try:
                connection.execute(_ADD_PICTURE, {"within": conversation_id, **row})
            except IntegrityError as error:
                raise DesignRuleBroken(f"two pictures were given the handle {row['handle']}") from error

    def set_details(self, conversation_id: str, handle: str, **changes: Value | bool) -> None:
        """Record what is known of a picture later: `review`, `edit`, `drift`, `shortfall_kept`; the others stay.

        Raises RequestRefused when there is no such picture.
        """
        place = {"key": conversation_id, "name": handle}
        with self.transaction() as connection:
            details = connection.scalar(_DETAILS, place)
            if details is None:
                raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
            connection.execute(_SET_DETAILS, {**place, "new_details": changed_details(details, **changes)})

    def mark_picture(self, conversation_id: str, handle: str, is_marked: bool) -> None:
        """Record the mark. Raises RequestRefused when there is no such picture."""
        with self.transaction() as connection:
            values = {"key": conversation_id, "name": handle, "marked": is_marked}
            if not connection.execute(_MARK, values).rowcount:
                raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)

    def answer(self, conversation_id: str, handle: str) -> tuple[str | None, str] | None:
        """Return the image model's message and the places of its signatures as JSON, None without the picture."""
        with self.transaction() as connection:
            row = connection.execute(_ANSWER, {"key": conversation_id, "name": handle}).one_or_none()
        return (row.answer, row.signatures) if row else None

    def running_turns(self) -> tuple[RunningTurn, ...]:
        """Return the turns on record as running, the oldest first."""
        with self.transaction() as connection:
            return tuple(RunningTurn(*row) for row in connection.execute(_RUNNING))

    def resting_turns(self) -> tuple[str, ...]:
        """Return the ids of the turns that run or may go on."""
        with self.transaction() as connection:
            return tuple(connection.scalars(_RESTING))

    def made_in(self, turn: RunningTurn) -> tuple[str, ...]:
        """Return the handles of the pictures that the turn made, in order."""
        with self.transaction() as connection:
            return tuple(connection.scalars(_MADE_IN, {"key": turn.conversation_id, "turn": turn.turn_id}))

    def abandon(self, turn: RunningTurn, components: str) -> bool:
        """Return whether the turn was still on record as running; it is now interrupted and shows the components."""
        place = {"key": turn.conversation_id, "turn": turn.turn_id}
        values = {"state": TurnState.INTERRUPTED.value, "components": components}
        with self.transaction() as connection:
            return connection.execute(_ABANDON, {**place, **values}).rowcount > 0


def _touch(connection: Connection, conversation_id: str, title: str, now: datetime) -> None:
    values = {"key": conversation_id, "now": now, "new_title": title}
    if not connection.execute(_TOUCH, values).rowcount:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)


def _lead_on(connection: Connection, conversation_id: str, title: str, turn_id: str, now: datetime) -> None:
    """Let the conversation go on with a new turn, which is its newest from now on."""
    values = {"key": conversation_id, "now": now, "new_title": title, "new_head": turn_id}
    if not connection.execute(_LEAD_ON, values).rowcount:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)


def _call_it(connection: Connection, conversation_id: str, title: str, now: datetime) -> str:
    values = {"key": conversation_id, "now": now, "new_title": title}
    called: str | None = connection.execute(_CALL_IT, values).scalar_one_or_none()
    if called is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
    return called
