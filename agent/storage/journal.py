"""The journal of paid calls: a row for each, written before its bytes leave, so that nothing is ever paid twice.

    queued ─► sent ─► done | failed | unknown | cancelled

A call that was `sent` when the process died is `unknown`: it may have been charged, and only the user may repeat it. A
call of the built-in model, which costs nothing, is `cancelled` instead. A `done` call keeps its answer until its turn
is over, so that a resumed turn never repeats a call that was answered.

For the pictures of one request, a handle and a position in the conversation are reserved before the first call, in the
order of the request, so that they are numbered in that order whichever comes first. A reservation for a picture that
never came is released when its turn ends; if later pictures have higher numbers by then, it stays unused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field
from sqlalchemy import Connection, Row, and_, bindparam, exists, func, insert, or_, select, union_all, update

from agent.conversation import TurnState
from agent.errors import ErrorCode
from agent.messages import ContentPart, TokenUsage, Value
from agent.pictures import allot_handle
from agent.storage.database import Database
from agent.storage.tables import CALLS, PICTURES, TURNS

_log = logging.getLogger(__name__)


class CallState(StrEnum):
    """The state of a paid call."""

    QUEUED = "queued"
    SENT = "sent"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class CallAnswer(Value):
    """The answer of a finished call."""

    parts: tuple[ContentPart, ...] = ()
    usage: TokenUsage = TokenUsage()
    finish_reason: str = ""


class CallRecord(Value):
    """One paid call of a turn. `name` is unique in the turn and stays the same when the turn is resumed.

    `attempts` counts how often it was sent; prices are in US dollars, and `reserved_usd` is the most it may cost while
    it is under way. `handle` is that of its future picture, if it was reserved before sending.
    """

    conversation_id: str
    turn_id: str
    name: str
    model: str
    state: CallState = CallState.QUEUED
    attempts: int = 0
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    price_usd: float = 0.0
    reserved_usd: float = 0.0
    error_code: ErrorCode | None = None
    answer: CallAnswer | None = None
    handle: str | None = None


_C = CALLS.c
_ADD = insert(CALLS)
_CHANGE = update(CALLS).where(_C.turn_id == bindparam("turn"), _C.name == bindparam("call"))
_OF = (
    select(*(_C[name] for name in CallRecord.model_fields))
    .where(_C.turn_id == bindparam("turn"))
    .order_by(_C.created_at)
)
_SENT = and_(_C.turn_id == bindparam("turn"), _C.state == CallState.SENT.value)
_LOSE = update(CALLS).where(_SENT).values(state=CallState.UNKNOWN.value, reserved_usd=0.0)
_GIVE_UP = _LOSE.where(_C.model.in_(bindparam("free", expanding=True))).values(state=CallState.CANCELLED.value)
_FORGET_ANSWERS = update(CALLS).where(_C.turn_id.in_(bindparam("turns", expanding=True))).values(answer=None)
_NEXT = TURNS.alias("next")
IS_OVER = or_(
    TURNS.c.state.in_((TurnState.DONE.value, TurnState.STOPPED.value)),
    # Only the newest turn of a branch may resume, whether the branch is shown or not.
    exists().where(_NEXT.c.conversation_id == TURNS.c.conversation_id, _NEXT.c.parent == TURNS.c.id),
)
_OLD_ANSWERS = (
    select(_C.turn_id).join(TURNS, TURNS.c.id == _C.turn_id).where(_C.answer.is_not(None), IS_OVER).distinct()
)
_SLOTS = select(_C.name, _C.handle).where(_C.turn_id == bindparam("turn"))
_HAS_NO_PICTURE = _C.state.in_((CallState.QUEUED.value, CallState.FAILED.value, CallState.CANCELLED.value))
_RELEASE = (
    update(CALLS)
    .where(_C.turn_id == bindparam("turn"), _C.handle.is_not(None), _HAS_NO_PICTURE)
    .values(handle=None, position=None)
)
_P = PICTURES.c
_PICTURE_HERE = _P.conversation_id == bindparam("key")
_RESERVED_HERE = and_(_C.conversation_id == bindparam("key"), _C.handle.is_not(None))
_RESERVED_HANDLES = select(_C.handle).where(_RESERVED_HERE)
_TAKEN = union_all(select(_P.handle).where(_PICTURE_HERE), _RESERVED_HANDLES)
_LAST = union_all(
    select(func.max(_P.position)).where(_PICTURE_HERE), select(func.max(_C.position)).where(_RESERVED_HERE)
)
_RESERVED = select(_C.handle, _C.position).where(
    _C.turn_id == bindparam("turn"), _C.name == bindparam("call"), _C.handle.is_not(None)
)


class Journal:
    """The rows of every turn's paid calls. Raises StorageFailure when the database cannot be written or read."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def reserve(self, calls: Sequence[CallRecord], base: str | None) -> dict[str, str]:
        """Record planned calls for pictures, and return the handles of these pictures by call name.

        Handles are numbered in the order of the calls: in the family of `base` when the pictures are made by editing
        that one. A call that has a handle keeps it.
        """
        conversation_id, turn_id = calls[0].conversation_id, calls[0].turn_id

        def reserve(on: Connection) -> dict[str, str]:
            known = {row.name: row.handle for row in on.execute(_SLOTS, {"turn": turn_id})}
            new = [call for call in calls if known.get(call.name) is None]
            slots = next_slots(on, conversation_id, [base] * len(new))
            for call, slot in zip(new, slots, strict=True):
                if call.name in known:
                    on.execute(_CHANGE, {"turn": turn_id, "call": call.name, **slot._asdict()})
                else:
                    on.execute(_ADD, {**_row(call), **slot._asdict()})
                known[call.name] = slot.handle
            return {call.name: known[call.name] for call in calls}

        return await self._db.write(reserve)

    async def send(self, call: CallRecord, *, is_new: bool) -> None:
        """Record durably, right before the call is sent, that it is sent: the row survives a power cut.

        `is_new` says that the call has no row yet; its first row is then written here.
        """
        await self._db.write(lambda on: on.execute(_ADD, _row(call)) if is_new else _change(on, call), is_durable=True)

    def change(self, call: CallRecord) -> None:
        """Submit the new state of a call that has a row: it waits for a retry, has ended, or was given up.

        Later writes also reach the disk later.
        """
        self._soon(lambda on: _change(on, call))

    def release(self, turn_id: str) -> None:
        """Submit that the turn makes no more calls: handles reserved for pictures that never came are released."""
        self._soon(lambda on: on.execute(_RELEASE, {"turn": turn_id}))

    async def calls(self, turn_id: str) -> dict[str, CallRecord]:
        """Return the calls of a turn by name, the oldest first."""
        found = await self._db.write(lambda on: list(map(_call, on.execute(_OF, {"turn": turn_id}))))
        return {call.name: call for call in found}

    def _soon(self, record: Callable[[Connection], object]) -> None:
        self._db.write_soon(record).add_done_callback(_log_failure)


def _log_failure(written: asyncio.Future[Any]) -> None:
    # The turn's next awaited write fails in the same way and tells the user.
    error = None if written.cancelled() else written.exception()
    if error is not None:
        _log.error("a paid call could not be put on record: %s", error)


def forget_answers(connection: Connection, turn_ids: Collection[str]) -> None:
    """Delete the answers of ended turns: their messages and pictures contain them."""
    connection.execute(_FORGET_ANSWERS, {"turns": list(turn_ids)})


def turns_with_old_answers(connection: Connection) -> list[str]:
    """Return the ended turns whose answers are still stored."""
    return list(connection.scalars(_OLD_ANSWERS))


def lose_calls(connection: Connection, turn_id: str, free_models: Collection[str]) -> int:
    """Mark a dead process's calls that were under way as `unknown`; return how many may have been charged.

    Those of `free_models` become `cancelled` instead, because they can be repeated freely.
    """
    connection.execute(_GIVE_UP, {"turn": turn_id, "free": list(free_models)})
    return connection.execute(_LOSE, {"turn": turn_id}).rowcount


def _change(connection: Connection, call: CallRecord) -> None:
    """Overwrite the row of a call."""
    connection.execute(_CHANGE, {"turn": call.turn_id, "call": call.name, **_row(call)})


def _row(call: CallRecord) -> dict[str, Any]:
    # Without the handle: `reserve` gives it, and `release` takes it.
    row = call.model_dump(exclude={"answer", "handle"})
    return {**row, "answer": call.answer.model_dump_json() if call.answer else None}


def _call(row: Row[*tuple[Any, ...]]) -> CallRecord:
    answer = CallAnswer.model_validate_json(row.answer) if row.answer else None
    return CallRecord.model_validate({**row._mapping, "answer": answer})


class PictureSlot(NamedTuple):
    """A handle in a conversation, and a position among its pictures."""

    handle: str
    position: int


def next_slots(
    connection: Connection, conversation_id: str, bases: Sequence[str | None], wished: str = ""
) -> list[PictureSlot]:
    """Return the next free slots, one for each base: in the family of the edited picture, or with a new number.

    The `wished` handle is used if it is free.
    """
    key = {"key": conversation_id}
    taken = list(connection.scalars(_TAKEN, key))
    position = max((one for one in connection.scalars(_LAST, key) if one is not None), default=0)
    slots = []
    for base in bases:
        position += 1
        handle = wished if wished and wished not in taken else allot_handle(taken, base=base)
        taken.append(handle)
        slots.append(PictureSlot(handle, position))
    return slots


def reserved_handles(connection: Connection, conversation_id: str) -> set[str]:
    """Return the handles of pictures that are under way."""
    return set(connection.scalars(_RESERVED_HANDLES, {"key": conversation_id}))


def reserved_slot(connection: Connection, turn_id: str, call: str) -> PictureSlot | None:
    """Return the slot reserved for the picture of a paid call, or None."""
    row = connection.execute(_RESERVED, {"turn": turn_id, "call": call}).one_or_none()
    return PictureSlot(row.handle, row.position) if row is not None else None
