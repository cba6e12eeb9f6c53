"""Turns and pictures in the database, as plain blocking calls for one thread.

Statements are made once: SQLAlchemy then takes their SQL from its cache, which is most of what a call costs. Whatever
changes what a `Conversation` holds gives that conversation its next version, which the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, case, func, insert, or_, select, update

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import Value
from agent.pictures import Picture
from agent.storage.call_rows import CallRows
from agent.storage.database import open_database
from agent.storage.kept_rows import KeptRows
from agent.storage.picture_slots import next_slots, reserved_handles, reserved_slot
from agent.storage.rows import (
    PICTURE_COLUMNS,
    TURN_COLUMNS,
    changed_details,
    changed_turn,
    conversation_of,
    picture_of,
    turn_of,
)
from agent.storage.sweeping import SweepRows
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS
from agent.storage.trace_rows import TraceRows
from agent.storage.transactions import Transactions
from agent.storage.turn_order import TurnOrder
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
_BEGUN_BY = select(_C.id, _C.deleted_at).where(_C.owner == bindparam("whose"), _C.request_id == bindparam("request"))
_FREE_REQUEST = update(CONVERSATIONS).where(_THIS).values(request_id=None)
_ADD_TURN = insert(TURNS).values(position=_NEXT_POSITION)
_ADD_PICTURE = insert(PICTURES).values(owner=select(_C.owner).where(_C.id == bindparam("within")).scalar_subquery())
_NEXT_VERSION = {"version": _C.version + 1}
_CHANGED = update(CONVERSATIONS).where(_THIS).values(_NEXT_VERSION).returning(_C.version)
_TOUCH = (
    update(CONVERSATIONS)
    .where(_THIS)
    .values(
        **_NEXT_VERSION,
        updated_at=bindparam("now"),
        title=func.coalesce(func.nullif(_C.title, ""), bindparam("new_title")),
        # Moments alone would not do: two writes may come to the disk in another order than they were made.
        indexed_at=None,
    )
    .returning(_C.version, _C.title)
)
# A deleted conversation takes what was on its way to it, but nothing new.
_LEAD_ON = _TOUCH.where(_C.deleted_at.is_(None)).values(head=bindparam("new_head"))
_CALL_IT = _TOUCH.values(title=case((_C.is_named, _C.title), else_=bindparam("new_title")))
_VERSION = select(_C.version).where(_THIS)
_VERSION_AND_HEAD = select(_C.version, _C.head).where(_THIS, _C.deleted_at.is_(None))
_STATE_OF = select(_T.state).where(_THIS_TURN)
# Never what another process runs now: it was taken for dead, or took the turn up.
_IS_MINE = or_(_T.state != TurnState.RUNNING.value, _T.runner == bindparam("mine"))
_FINISH = update(TURNS).where(_THIS_TURN, _IS_MINE).values(reserved_usd=0.0, is_stop_requested=False)
_AMEND = update(TURNS).where(_THIS_TURN)
_TAKE_UP = update(TURNS).where(_THIS_TURN).values(state=TurnState.RUNNING.value, is_stop_requested=False)
_REPLACE_PICTURE = update(PICTURES).where(_THIS_PICTURE, _P.digest == bindparam("content"))
_DETAILS = select(_P.details).where(_THIS_PICTURE)
_SET_DETAILS = update(PICTURES).where(_THIS_PICTURE).values(details=bindparam("new_details"), is_indexed=False)
_ONE_TURN = select(*TURN_COLUMNS).where(_THIS_TURN)
_TURNS_OF = (
    select(
        *(_C.id, _C.owner, _C.title, _C.created_at, _C.updated_at, _C.is_pinned, _C.head, _C.version, _C.deleted_at),
        *TURN_COLUMNS,
    )
    .select_from(CONVERSATIONS.outerjoin(TURNS))
    .where(_THIS)
    .order_by(_T.position)
)
_PICTURES_OF = select(*PICTURE_COLUMNS).where(_P.conversation_id == bindparam("key")).order_by(_P.position)
_BROUGHT_BY = select(*PICTURE_COLUMNS).where(
    _P.conversation_id == bindparam("key"), _P.turn_id == bindparam("turn"), _P.call == bindparam("by"), _P.call != ""
)
_LAST_POSITION = select(func.max(_P.position)).where(_P.conversation_id == bindparam("key"))
_ANSWER = select(_P.answer, _P.signatures).where(_THIS_PICTURE)
_REQUESTED = select(_T.id).where(_T.conversation_id == bindparam("key"), _T.request_id == bindparam("request"))


_NEXT = TURNS.alias("next")
_IS_OVER = or_(
    _T.state.in_((TurnState.DONE.value, TurnState.STOPPED.value)),
    # Only the newest turn of a branch may go on, whether the branch is shown or not.
    select(_NEXT.c.id).where(_NEXT.c.conversation_id == _T.conversation_id, _NEXT.c.parent == _T.id).exists(),
)
_MAY_GO_ON = select(_T.id).where(_T.id.in_(bindparam("these", expanding=True)), ~_IS_OVER)


class Loaded(NamedTuple):
    """A conversation as it is on record."""

    conversation: Conversation
    is_deleted: bool


class Written(NamedTuple):
    """The conversation's version after a write, and its title."""

    version: int
    title: str


class Begun(NamedTuple):
    """What came of beginning a turn: the write; or the turn that its request began before; or neither, where another
    turn goes first (`is_busy`) or the conversation has changed since the turn was prepared."""

    written: Written | None = None
    known_turn: str | None = None
    is_busy: bool = False


class AddedPicture(NamedTuple):
    """A picture as it is on record, the conversation's version then, and whether it is the last of its pictures.

    The version is None when it was there before.
    """

    picture: Picture
    version: int | None
    is_last: bool


class Records:
    """The open database. Raises StorageFailure when it cannot be read or written.

    `runner` is this process's sign of life, `is_alive` tells of other processes by theirs.
    """

    def __init__(
        self, home: Path, runner: str, is_alive: Callable[[str], bool], free_models: Collection[str] = ()
    ) -> None:
        engine, self.set_aside = open_database(home)
        self.db = Transactions(engine)
        self._runner = runner
        self.calls = CallRows(self.db)
        self.kept = KeptRows(self.db)
        self.words = WordRows(self.db)
        self.sweeping = SweepRows(self.db)
        self.traces = TraceRows(self.db)
        self.order = TurnOrder(self.db, runner, is_alive, free_models)

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    # Conversations

    def create(self, conversation: Conversation, request_id: str | None = None) -> str:
        """Record a conversation that has no turn yet and return its id; or that of the one that the same request of
        the same owner began before, where it is not deleted. One that is gives its request away."""
        row = conversation.model_dump(include={"id", "owner", "title", "created_at", "updated_at"})
        with self.db.writing() as connection:
            if request_id is not None:
                asked = {"whose": conversation.owner, "request": request_id}
                known = connection.execute(_BEGUN_BY, asked).one_or_none()
                if known is not None and known.deleted_at is None:
                    return str(known.id)
                if known is not None:
                    connection.execute(_FREE_REQUEST, {"key": known.id})
            connection.execute(
                _ADD_CONVERSATION, {**row, "is_named": bool(conversation.title), "request_id": request_id}
            )
        return conversation.id

    def version(self, conversation_id: str) -> int | None:
        """Return the conversation's version, None when it is gone."""
        with self.db.reading() as connection:
            found: int | None = connection.scalar(_VERSION, {"key": conversation_id})
        return found

    def load(self, conversation_id: str, read_blob: Callable[[str], bytes]) -> Loaded | None:
        """Return the conversation, its pictures without the image model's answers."""
        key = {"key": conversation_id}
        with self.db.reading() as connection:
            turns = connection.execute(_TURNS_OF, key).all()
            pictures = connection.execute(_PICTURES_OF, key).all()
        if not turns:
            return None
        return Loaded(conversation_of(turns, pictures, read_blob), turns[0].deleted_at is not None)

    # Turns

    def turn(self, conversation_id: str, turn_id: str, read_blob: Callable[[str], bytes]) -> Turn | None:
        """Return a turn of any branch."""
        with self.db.reading() as connection:
            row = connection.execute(_ONE_TURN, {"key": conversation_id, "turn": turn_id}).one_or_none()
        return turn_of(row, read_blob) if row else None

    def begin_turn(
        self,
        conversation_id: str,
        turn_row: dict[str, Any],
        pictures: Sequence[dict[str, Any]],
        title: str,
        now: datetime,
        *,
        prepared_at: int | None = None,
        place: int | None = None,
    ) -> Begun:
        """Record a turn and its uploads, when it is its turn. Raises RequestRefused when the conversation is gone.

        `prepared_at` is the version of the conversation that the turn was prepared for, `place` its place in the queue.
        """
        key = {"key": conversation_id}
        with self.db.writing() as connection:
            if turn_row["request_id"] is not None:
                known = connection.scalar(_REQUESTED, {**key, "request": turn_row["request_id"]})
                if known is not None:
                    return Begun(known_turn=known)
            if not self.order.take(connection, conversation_id, place):
                return Begun(is_busy=True)
            if prepared_at is not None and connection.scalar(_VERSION, key) not in (prepared_at, None):
                return Begun()
            if any(row["handle"] in reserved_handles(connection, conversation_id) for row in pictures):
                return Begun()
            values = {**key, "now": now, "new_title": title, "new_head": turn_row["id"]}
            written = _written(connection, _LEAD_ON, values)
            connection.execute(_ADD_TURN, {"conversation_id": conversation_id, "within": conversation_id, **turn_row})
            if pictures:
                last = connection.scalar(_LAST_POSITION, key) or 0
                rows = [{**row, "within": conversation_id, "position": last + n} for n, row in enumerate(pictures, 1)]
                connection.execute(_ADD_PICTURE, rows)
            return Begun(written)

    def take_up(self, conversation_id: str, turn: Turn, place: int | None) -> Begun:
        """Put on record that this process has a turn go on that rests in this state as the newest of the branch that is
        shown; or the turn itself as known where somebody else was first."""
        this = {"key": conversation_id, "turn": turn.id}
        with self.db.writing() as connection:
            if connection.scalar(_STATE_OF, this) != turn.state.value:
                return Begun(known_turn=turn.id)
            if not self.order.take(connection, conversation_id, place):
                return Begun(is_busy=True)
            # Read once more: another turn of a process that died may have been closed.
            shown = connection.execute(_VERSION_AND_HEAD, {"key": conversation_id}).one_or_none()
            if shown is None:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            if shown.head not in (turn.id, None):
                return Begun()
            connection.execute(_TAKE_UP, {**this, "runner": self._runner})
            version: int = connection.execute(_CHANGED, {"key": conversation_id}).scalar_one()
            return Begun(Written(version, ""))

    def finish_turn(
        self, conversation_id: str, turn_id: str, row: dict[str, Any], now: datetime, title: str = ""
    ) -> Written:
        """Write everything of a turn anew; a title is that of the conversation now, unless the person gave it one.

        Raises RequestRefused when the turn is gone, or is run by another process now.
        """
        with self.db.writing() as connection:
            statement = _CALL_IT if title else _TOUCH
            written = _written(connection, statement, {"key": conversation_id, "now": now, "new_title": title})
            values = {"key": conversation_id, "turn": turn_id, "mine": self._runner, "runner": self._runner, **row}
            if not connection.execute(_FINISH, values).rowcount:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            return written

    def amend_turn(
        self, conversation_id: str, turn_id: str, change: Callable[[Turn], Turn | None], now: datetime
    ) -> Written | None:
        """Change what a turn shows and cost, as it is on record at that moment; its messages stay as they are.

        Return None when there is no such turn, or `change` leaves it.
        """
        this = {"key": conversation_id, "turn": turn_id}
        with self.db.writing() as connection:
            row = connection.execute(_ONE_TURN, this).one_or_none()
            changed = change(turn_of(row, _no_blob)) if row is not None else None
            if changed is None:
                return None
            written = _written(connection, _TOUCH, {"key": conversation_id, "now": now, "new_title": ""})
            connection.execute(_AMEND, {**this, **changed_turn(changed)})
            return written

    def may_go_on(self, turn_ids: Sequence[str]) -> set[str]:
        """Return those of the turns that run or may go on."""
        with self.db.reading() as connection:
            return set(connection.scalars(_MAY_GO_ON, {"these": list(turn_ids)}))

    # Pictures

    def next_handles(self, conversation_id: str, count: int) -> list[str]:
        """Return the handles that so many new pictures would be given now."""
        with self.db.reading() as connection:
            return [slot.handle for slot in next_slots(connection, conversation_id, [None] * count)]

    def add_picture(
        self,
        conversation_id: str,
        picture: Picture,
        row_of: Callable[[Picture], dict[str, Any]],
        base: str | None,
        now: datetime,
    ) -> AddedPicture:
        """Record a picture under a handle that is given in this very transaction, and return it.

        The one that its paid call has brought before is returned as it is. The handle is the one that was reserved for
        that call, else the picture's own where that is free, else the next one; the same picture under the same handle
        again replaces its record. Raises RequestRefused when the conversation is gone.
        """
        key = {"key": conversation_id}
        with self.db.writing() as connection:
            known = connection.execute(_BROUGHT_BY, {**key, "turn": picture.turn_id, "by": picture.call}).one_or_none()
            if known is not None:
                return AddedPicture(picture_of(known), None, is_last=False)
            version = _written(connection, _TOUCH, {**key, "now": now, "new_title": ""}).version
            if picture.handle:
                row = row_of(picture)
                place = {**key, "name": row["handle"], "content": row["digest"]}
                if connection.execute(_REPLACE_PICTURE, {**place, **row}).rowcount:
                    return AddedPicture(picture, version, is_last=False)
            slot = reserved_slot(connection, picture.turn_id, picture.call) if picture.call else None
            if slot is None:
                (slot,) = next_slots(connection, conversation_id, [base], picture.handle)
            last = connection.scalar(_LAST_POSITION, key) or 0
            picture = picture.named(slot.handle)
            row = {**row_of(picture), "within": conversation_id, "position": slot.position}
            connection.execute(_ADD_PICTURE, row)
            return AddedPicture(picture, version, is_last=slot.position > last)

    def set_details(self, conversation_id: str, handle: str, **changes: Value | bool) -> int:
        """Record what is known of a picture later: `review`, `edit`, `drift`, `shortfall_kept`; the others stay.

        Raises RequestRefused when there is no such picture.
        """
        place = {"key": conversation_id, "name": handle}
        with self.db.writing() as connection:
            details = connection.scalar(_DETAILS, place)
            if details is None:
                raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
            connection.execute(_SET_DETAILS, {**place, "new_details": changed_details(details, **changes)})
            return _next_version(connection, conversation_id)

    def answer(self, conversation_id: str, handle: str) -> tuple[str | None, str] | None:
        """Return the image model's message and the places of its signatures as JSON, None without the picture."""
        with self.db.reading() as connection:
            row = connection.execute(_ANSWER, {"key": conversation_id, "name": handle}).one_or_none()
        return (row.answer, row.signatures) if row else None


def _written(connection: Connection, statement: Any, values: dict[str, Any]) -> Written:
    row = connection.execute(statement, values).one_or_none()
    if row is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
    return Written(row.version, row.title)


def _next_version(connection: Connection, conversation_id: str) -> int:
    version: int = connection.execute(_CHANGED, {"key": conversation_id}).scalar_one()
    return version


def _no_blob(digest: str) -> bytes:
    """Signatures are neither shown nor changed."""
    return b""
