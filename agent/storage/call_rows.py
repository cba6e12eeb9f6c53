"""The rows of the journal, as plain blocking calls for the database's thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, exists, insert, or_, select, update

from agent.storage.journal import CallRecord, CallState, Heard
from agent.storage.picture_slots import next_slots
from agent.storage.signatures import PLACES, Place
from agent.storage.tables import CALLS, TURNS
from agent.storage.transactions import Transactions

_C = CALLS.c
_THIS = and_(_C.turn_id == bindparam("turn"), _C.name == bindparam("call"))
_ADD = insert(CALLS)
_CHANGE = update(CALLS).where(_THIS)
_OF = select(CALLS).where(_C.turn_id == bindparam("turn")).order_by(_C.created_at)
_SENT = and_(_C.turn_id == bindparam("turn"), _C.state == CallState.SENT.value)
_LOSE = update(CALLS).where(_SENT).values(state=CallState.UNKNOWN.value, reserved_usd=0.0)
_GIVE_UP = _LOSE.where(_C.model.in_(bindparam("free", expanding=True))).values(state=CallState.CANCELLED.value)
_FORGET_ANSWERS = (
    update(CALLS).where(_C.turn_id.in_(bindparam("turns", expanding=True))).values(answer=None, signatures=None)
)
_NEXT = TURNS.alias("next")
_IS_LEFT_BEHIND = exists().where(_NEXT.c.conversation_id == TURNS.c.conversation_id, _NEXT.c.parent == TURNS.c.id)
_OLD_ANSWERS = (
    select(_C.turn_id)
    .join(TURNS, TURNS.c.id == _C.turn_id)
    .where(_C.answer.is_not(None), or_(TURNS.c.state.in_(("done", "stopped")), _IS_LEFT_BEHIND))
    .distinct()
)
# Answers of turns that are over are let go of together: each by itself would cost every turn a statement.
_TOGETHER = 32

_FIELDS = {
    *("conversation_id", "turn_id", "name", "model", "attempts", "created_at", "updated_at", "price_usd"),
    "reserved_usd",
}
_SLOTS = select(_C.name, _C.handle).where(_C.turn_id == bindparam("turn"))
_RESERVE = update(CALLS).where(_THIS)
_HAS_NO_PICTURE = _C.state.in_((CallState.QUEUED.value, CallState.FAILED.value, CallState.CANCELLED.value))
_RELEASE = (
    update(CALLS)
    .where(_C.turn_id == bindparam("turn"), _C.handle.is_not(None), _HAS_NO_PICTURE)
    .values(handle=None, position=None)
)


class CallRows:
    """The table of calls; `transactions` opens those of its database."""

    def __init__(self, transactions: Transactions) -> None:
        self._db = transactions
        self._over: list[str] = []

    def add(self, call: CallRecord) -> None:
        """Add the row of a call."""
        with self._db.writing() as connection:
            connection.execute(_ADD, {**_row(call), "answer": None, "signatures": None})

    def reserve(self, calls: Sequence[CallRecord], base: str | None) -> dict[str, str]:
        """Add the rows of calls for pictures, each with the slot of its picture; return the handles by name."""
        first = calls[0]
        with self._db.writing() as connection:
            known = {row.name: row.handle for row in connection.execute(_SLOTS, {"turn": first.turn_id})}
            new = [call for call in calls if known.get(call.name) is None]
            slots = next_slots(connection, first.conversation_id, [base] * len(new))
            for call, slot in zip(new, slots, strict=True):
                if call.name in known:
                    connection.execute(_RESERVE, {"turn": call.turn_id, "call": call.name, **slot._asdict()})
                else:
                    connection.execute(_ADD, {**_row(call), "answer": None, "signatures": None, **slot._asdict()})
                known[call.name] = slot.handle
            return {call.name: known[call.name] for call in calls}

    def release(self, turn_id: str) -> None:
        """Free the slots of the turn's calls that brought no picture, and bring none any more."""
        with self._db.writing() as connection:
            connection.execute(_RELEASE, {"turn": turn_id})

    def change(self, call: CallRecord, answer: Heard | None, places: Sequence[Place]) -> None:
        """Write the row anew; `answer` is without its large signatures, whose places are given."""
        values = {
            **_row(call),
            "answer": answer.model_dump_json() if answer else None,
            "signatures": PLACES.dump_json(tuple(places)).decode() if places else None,
        }
        with self._db.writing() as connection:
            connection.execute(_CHANGE, {"turn": call.turn_id, "call": call.name, **values})

    def of(self, turn_id: str) -> list[tuple[CallRecord, tuple[Place, ...]]]:
        """Return the calls of a turn, the oldest first, with the places of the signatures taken out."""
        with self._db.reading() as connection:
            return [_call(row._mapping) for row in connection.execute(_OF, {"turn": turn_id})]

    def let_go(self, turn_id: str) -> None:
        """Forget, sooner or later, the answers of a turn that is over: they are in its messages and pictures."""
        self._over.append(turn_id)
        if len(self._over) >= _TOGETHER:
            self._forget(self._over)
            self._over = []

    def let_go_of_all(self) -> None:
        """Forget the answers of every turn that is over."""
        with self._db.reading() as connection:
            turns = list(connection.scalars(_OLD_ANSWERS))
        if turns:
            self._forget(turns)

    def _forget(self, turns: Sequence[str]) -> None:
        with self._db.writing() as connection:
            connection.execute(_FORGET_ANSWERS, {"turns": list(turns)})


def lose_calls(connection: Connection, turn_id: str, free_models: Collection[str]) -> int:
    """Return how many calls of a dead process may have been charged: on their way then, they are `unknown` now.

    Those of `free_models` are `cancelled`: they may be made again as often as one likes.
    """
    connection.execute(_GIVE_UP, {"turn": turn_id, "free": list(free_models)})
    return connection.execute(_LOSE, {"turn": turn_id}).rowcount


def _row(call: CallRecord) -> dict[str, Any]:
    return {
        **{name: getattr(call, name) for name in _FIELDS},
        "state": call.state.value,
        "error_code": call.error_code.value if call.error_code else None,
    }


def _call(row: Any) -> tuple[CallRecord, tuple[Place, ...]]:
    call = CallRecord.model_validate(
        {
            **{name: row[name] for name in _FIELDS},
            "state": row["state"],
            "error_code": row["error_code"],
            "handle": row["handle"],
            "answer": Heard.model_validate_json(row["answer"]) if row["answer"] else None,
        }
    )
    return call, PLACES.validate_json(row["signatures"]) if row["signatures"] else ()
