"""The traces: what each step of a turn sent and received, written in the background.

A finished step is serialised, compressed and written a quarter of a second later, or as soon as its turn stops running;
after a crash, only the written steps exist. Beyond a size limit, the traces of the oldest turns are deleted.

There is one row per step, with its contents compressed separately, so that one can be read without the others. Both
columns are bytes, not text: a trace names pictures, but must not keep their files alive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select

from agent.errors import AivistaError
from agent.storage.database import Database
from agent.storage.tables import CONVERSATIONS, TRACE_STEPS
from agent.trace import StepSummary, TraceStep

LIMIT_BYTES = 200 << 20
_SOON_S = 0.25
# Followers of the turn are notified of its end first.
_NOW_S = 0.005

T = TypeVar("T")
_Row = dict[str, Any]
_log = logging.getLogger(__name__)

_S = TRACE_STEPS.c
_CONTENTS = {"sent", "came", "cuts", "is_left_out"}
_THERE = select(CONVERSATIONS.c.id).where(CONVERSATIONS.c.id.in_(bindparam("these", expanding=True)))
_ALL = select(func.coalesce(func.sum(_S.size_bytes), 0))
_OF_TURNS = and_(_S.conversation_id == bindparam("key"), _S.turn_id.in_(bindparam("these", expanding=True)))
_STEPS_OF = select(_S.turn_id, _S.summary, _S.contents).where(_OF_TURNS).order_by(_S.number)
_SUMMARIES_OF = select(_S.turn_id, _S.summary).where(_OF_TURNS).order_by(_S.number)
_TURNS_OF = (
    select(_S.turn_id)
    .where(_S.conversation_id == bindparam("key"))
    .group_by(_S.turn_id)
    .order_by(func.min(_S.began_at))
)
_OF_TURN = and_(_S.conversation_id == bindparam("key"), _S.turn_id == bindparam("turn"))
_ONE = select(_S.summary, _S.contents).where(_OF_TURN, _S.number == bindparam("which"))
_LAST = select(func.coalesce(func.max(_S.number), 0)).where(_OF_TURN)
_BY_AGE = (
    select(_S.turn_id, func.sum(_S.size_bytes).label("size_bytes")).group_by(_S.turn_id).order_by(func.max(_S.began_at))
)
_LET_GO = delete(TRACE_STEPS).where(_S.turn_id.in_(bindparam("these", expanding=True)))
# Free some extra space at once: finding the oldest turns scans all rows.
_MADE_ROOM = 0.9


class Traces:
    """The steps of every turn. Reading raises StorageFailure when the database cannot be read."""

    def __init__(self, database: Database, limit_bytes: int = LIMIT_BYTES) -> None:
        self._db = database
        self._limit_bytes = limit_bytes
        self._size_bytes: int | None = None
        self._waiting: deque[Callable[[], _Row | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trace")

    # Writing

    def keep(self, conversation_id: str, tell: Callable[[], TraceStep]) -> None:
        """Queue a step that has ended. `tell` is called later, on a separate thread."""
        self._waiting.append(lambda: _row_of(conversation_id, tell()))
        self._begin_in(_SOON_S)

    def after(self, work: Callable[[], None]) -> None:
        """Run work on that thread after everything queued before, and start at once."""
        self._waiting.append(work)
        self._cancel_timer()
        self._begin_in(_NOW_S)

    async def settled(self) -> None:
        """Return when every step that has ended so far is on record."""
        if self._work is not None:
            await asyncio.wait([self._work])
        self._begin()
        if self._work is not None:
            await asyncio.wait([self._work])

    async def aclose(self) -> None:
        """Write the queued steps and stop the thread."""
        while self._waiting or self._work is not None:
            await self.settled()
        self._thread.shutdown()

    def _begin_in(self, seconds: float) -> None:
        if self._timer is None and self._work is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._cancel_timer()
        if self._work is None and self._waiting:
            self._work = asyncio.get_running_loop().create_task(self._write())
            self._work.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._work = None
        if self._waiting:
            self._begin_in(_SOON_S)

    async def _write(self) -> None:
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        packed = await asyncio.get_running_loop().run_in_executor(self._thread, _packed, batch)
        if not packed:
            return
        try:
            await self._db.write_soon(lambda on: self._add(on, packed), is_spare=True)
        except AivistaError as error:
            # The turn itself is on record; only its trace is lost.
            _log.error("steps of a turn could not be put on record: %s", error)

    def _add(self, connection: Connection, rows: Sequence[_Row]) -> None:
        """Add steps, except those of removed conversations. Beyond the limit, delete the steps of the oldest turns."""
        ids = list({row["conversation_id"] for row in rows})
        there = set(connection.scalars(_THERE, {"these": ids}))
        kept = [row for row in rows if row["conversation_id"] in there]
        if not kept:
            return
        connection.execute(insert(TRACE_STEPS), kept)
        if self._size_bytes is None:
            self._size_bytes = connection.scalar(_ALL) or 0
        else:
            self._size_bytes += sum(row["size_bytes"] for row in kept)
        if self._size_bytes > self._limit_bytes:
            self._make_room(connection, int(self._limit_bytes * _MADE_ROOM))

    def _make_room(self, connection: Connection, limit_bytes: int) -> None:
        gone = []
        # Steps of conversations removed meanwhile no longer count, so the size is summed anew.
        size_bytes = connection.scalar(_ALL) or 0
        for row in connection.execute(_BY_AGE):
            if size_bytes <= limit_bytes:
                break
            gone.append(row.turn_id)
            size_bytes -= row.size_bytes
        if gone:
            connection.execute(_LET_GO, {"these": gone})
        self._size_bytes = size_bytes

    # Reading

    async def steps(self, conversation_id: str, turn_ids: Sequence[str] | None = None) -> tuple[TraceStep, ...]:
        """Return the complete steps of these turns, or of all turns; turn by turn, the oldest first."""

        def read(on: Connection) -> list[Any]:
            these = turn_ids if turn_ids is not None else list(on.scalars(_TURNS_OF, {"key": conversation_id}))
            rows = on.execute(_STEPS_OF, {"key": conversation_id, "these": list(these)}).all()
            return _turn_by_turn(rows, these)

        found = await self._read(read)
        # Not on the database's thread, which others wait for.
        return await asyncio.to_thread(lambda: tuple(map(_step_of, found)))

    async def summaries(self, conversation_id: str, turn_ids: Sequence[str]) -> tuple[StepSummary, ...]:
        """Return one-line summaries of the steps of these turns."""
        values = {"key": conversation_id, "these": list(turn_ids)}
        found = await self._read(lambda on: _turn_by_turn(on.execute(_SUMMARIES_OF, values).all(), turn_ids))
        return tuple(StepSummary.model_validate_json(row.summary) for row in found)

    async def step(self, conversation_id: str, turn_id: str, number: int) -> TraceStep | None:
        """Return one step, or None."""
        key = {"key": conversation_id, "turn": turn_id, "which": number}
        found = await self._read(lambda on: on.execute(_ONE, key).one_or_none())
        return _step_of(found) if found is not None else None

    async def next_number(self, conversation_id: str, turn_id: str) -> int:
        """Return the number of a turn's next step."""
        key = {"key": conversation_id, "turn": turn_id}
        return await self._read(lambda on: (on.scalar(_LAST, key) or 0) + 1)

    async def _read(self, read: Callable[[Connection], T]) -> T:
        await self.settled()
        # In the write queue: it then sees steps that were handed over but are not written yet.
        return await self._db.write(read)


def _packed(batch: Sequence[Callable[[], _Row | None]]) -> list[_Row]:
    """Return the rows of a batch; a step that cannot be serialised is logged and skipped."""
    rows = []
    for work in batch:
        try:
            row = work()
        except Exception:
            _log.exception("a step of a turn could not be told")
            continue
        if row is not None:
            rows.append(row)
    return rows


def _turn_by_turn(rows: Sequence[Any], turn_ids: Sequence[str]) -> list[Any]:
    place = {turn_id: number for number, turn_id in enumerate(turn_ids)}
    return sorted(rows, key=lambda row: place[row.turn_id])


def _row_of(conversation_id: str, step: TraceStep) -> _Row:
    summary = step.model_dump_json(exclude=_CONTENTS).encode()
    contents = zlib.compress(step.model_dump_json(include=_CONTENTS).encode(), 6)
    return {
        "conversation_id": conversation_id,
        "turn_id": step.turn_id,
        "number": step.number,
        "began_at": step.began_at,
        "size_bytes": len(summary) + len(contents),
        "summary": summary,
        "contents": contents,
    }


def _step_of(row: Any) -> TraceStep:
    contents = json.loads(zlib.decompress(row.contents))
    return TraceStep.model_validate_json(json.dumps({**json.loads(row.summary), **contents}))
