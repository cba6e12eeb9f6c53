"""The rows of the traces, as plain blocking calls for the database's thread.

A row a step, its contents packed by themselves: a step is on record when it has ended, and one that is opened is read
without the others. Both are bytes, not text: a trace names pictures and keeps none of them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select

from agent.storage.tables import CONVERSATIONS, TRACE_STEPS
from agent.storage.transactions import Transactions
from agent.trace import TraceStep

_S = TRACE_STEPS.c
_CONTENTS = {"sent", "came", "cuts", "is_left_out"}
_ADD = insert(TRACE_STEPS)
_THERE = select(CONVERSATIONS.c.id).where(CONVERSATIONS.c.id.in_(bindparam("these", expanding=True)))
_ALL = select(func.coalesce(func.sum(_S.size_bytes), 0))
_OF_TURNS = and_(_S.conversation_id == bindparam("key"), _S.turn_id.in_(bindparam("these", expanding=True)))
_ORDER = (_S.number,)
_STEPS_OF = select(_S.turn_id, _S.summary, _S.contents).where(_OF_TURNS).order_by(*_ORDER)
_SUMMARIES_OF = select(_S.turn_id, _S.summary).where(_OF_TURNS).order_by(*_ORDER)
_TURNS_OF = (
    select(_S.turn_id)
    .where(_S.conversation_id == bindparam("key"))
    .group_by(_S.turn_id)
    .order_by(func.min(_S.began_at))
)
_ONE = select(_S.summary, _S.contents).where(
    _S.conversation_id == bindparam("key"), _S.turn_id == bindparam("turn"), _S.number == bindparam("which")
)
_LAST = select(func.coalesce(func.max(_S.number), 0)).where(
    _S.conversation_id == bindparam("key"), _S.turn_id == bindparam("turn")
)
_BY_AGE = (
    select(_S.turn_id, func.sum(_S.size_bytes).label("size_bytes")).group_by(_S.turn_id).order_by(func.max(_S.began_at))
)
_LET_GO = delete(TRACE_STEPS).where(_S.turn_id.in_(bindparam("these", expanding=True)))
# Room is made for a while at once: to find the oldest, all are looked through.
_MADE_ROOM = 0.9


class PackedStep(NamedTuple):
    """What a row holds of a step."""

    summary: bytes
    contents: bytes


class StepRow(NamedTuple):
    """A step as its row."""

    conversation_id: str
    turn_id: str
    number: int
    began_at: datetime
    size_bytes: int
    summary: bytes
    contents: bytes


def row_of(conversation_id: str, step: TraceStep) -> StepRow:
    """Return the row of a step."""
    summary = step.model_dump_json(exclude=_CONTENTS).encode()
    contents = zlib.compress(step.model_dump_json(include=_CONTENTS).encode(), 6)
    size_bytes = len(summary) + len(contents)
    return StepRow(conversation_id, step.turn_id, step.number, step.began_at, size_bytes, summary, contents)


class TraceRows:
    """The table of steps; `transactions` opens those of its database."""

    def __init__(self, transactions: Transactions) -> None:
        self._db = transactions
        self._size_bytes: int | None = None

    def add(self, rows: Sequence[StepRow], limit_bytes: int) -> None:
        """Add steps, but for those of a conversation that is gone. Beyond the limit the oldest turns' are let go."""
        with self._db.writing() as connection:
            ids = list({row.conversation_id for row in rows})
            there = set(connection.scalars(_THERE, {"these": ids}))
            kept = [row._asdict() for row in rows if row.conversation_id in there]
            if not kept:
                return
            connection.execute(_ADD, kept)
            if self._size_bytes is None:
                self._size_bytes = connection.scalar(_ALL) or 0
            else:
                self._size_bytes += sum(row["size_bytes"] for row in kept)
            if self._size_bytes > limit_bytes:
                self._make_room(connection, int(limit_bytes * _MADE_ROOM))

    def steps(self, conversation_id: str, turn_ids: Sequence[str] | None) -> list[PackedStep]:
        """Return the whole steps of these turns, or of all, turn by turn."""
        with self._db.reading() as connection:
            if turn_ids is None:
                turn_ids = list(connection.scalars(_TURNS_OF, {"key": conversation_id}))
            rows = connection.execute(_STEPS_OF, {"key": conversation_id, "these": list(turn_ids)}).all()
        return [PackedStep(row.summary, row.contents) for row in _turn_by_turn(rows, turn_ids)]

    def summaries(self, conversation_id: str, turn_ids: Sequence[str]) -> list[bytes]:
        """Return the steps of these turns without their contents, turn by turn."""
        with self._db.reading() as connection:
            rows = connection.execute(_SUMMARIES_OF, {"key": conversation_id, "these": list(turn_ids)}).all()
        return [row.summary for row in _turn_by_turn(rows, turn_ids)]

    def step(self, conversation_id: str, turn_id: str, number: int) -> PackedStep | None:
        """Return one step."""
        key = {"key": conversation_id, "turn": turn_id, "which": number}
        with self._db.reading() as connection:
            row = connection.execute(_ONE, key).one_or_none()
        return PackedStep(row.summary, row.contents) if row is not None else None

    def next_number(self, conversation_id: str, turn_id: str) -> int:
        """Return the number of a turn's next step."""
        with self._db.reading() as connection:
            return (connection.scalar(_LAST, {"key": conversation_id, "turn": turn_id}) or 0) + 1

    def _make_room(self, connection: Connection, limit_bytes: int) -> None:
        gone = []
        # Of conversations that were removed meanwhile nothing is left to be counted.
        size_bytes = connection.scalar(_ALL) or 0
        for row in connection.execute(_BY_AGE):
            if size_bytes <= limit_bytes:
                break
            gone.append(row.turn_id)
            size_bytes -= row.size_bytes
        if gone:
            connection.execute(_LET_GO, {"these": gone})
        self._size_bytes = size_bytes


def _turn_by_turn(rows: Sequence[Any], turn_ids: Sequence[str]) -> list[Any]:
    place = {turn_id: number for number, turn_id in enumerate(turn_ids)}
    return sorted(rows, key=lambda row: place[row.turn_id])


def step_of(packed: PackedStep) -> TraceStep:
    """Return the step; not on the database's thread, where others wait."""
    contents = json.loads(zlib.decompress(packed.contents))
    return TraceStep.model_validate_json(json.dumps({**json.loads(packed.summary), **contents}))
