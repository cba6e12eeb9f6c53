"""The traces: what each step of a turn was sent and answered, written when nobody waits for it.

A step that has ended is told, packed and written a quarter of a second later, or as soon as its turn rests; after a
sudden end of the process those are there that were written. Traces of the oldest turns are let go of beyond a limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from agent.errors import AivistaError
from agent.storage.writing import Writing
from agent.trace import StepSummary, TraceStep

if TYPE_CHECKING:
    from agent.storage.trace_rows import StepRow, TraceRows

LIMIT_BYTES = 200 << 20
_SOON_S = 0.25
# Whoever follows the turn hears of its end first.
_NOW_S = 0.005

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Traces:
    """The steps of every turn. Reading raises StorageFailure when the database cannot be read."""

    def __init__(self, writing: Writing, rows: Callable[[], TraceRows], limit_bytes: int = LIMIT_BYTES) -> None:
        self._writing = writing
        self._rows = rows
        self._limit_bytes = limit_bytes
        self._waiting: deque[Callable[[], StepRow | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    # Writing

    def keep(self, conversation_id: str, tell: Callable[[], TraceStep]) -> None:
        """Take a step that has ended. `tell` is called later, on a thread of its own."""

        def packed() -> StepRow:
            from agent.storage.trace_rows import row_of

            return row_of(conversation_id, tell())

        self._waiting.append(packed)
        self._begin_in(_SOON_S)

    def after(self, work: Callable[[], None]) -> None:
        """Take work to be done on that thread when all that was handed over before is told, and begin at once."""

        def done() -> None:
            work()

        self._waiting.append(done)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._begin_in(_NOW_S)

    async def settled(self) -> None:
        """Return when every step that has ended until now is on record."""
        if self._work is not None:
            await asyncio.wait([self._work])
        self._begin()
        if self._work is not None:
            await asyncio.wait([self._work])

    async def aclose(self) -> None:
        """Write what is left."""
        while self._waiting or self._work is not None:
            await self.settled()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def _begin_in(self, seconds: float) -> None:
        if self._timer is None and self._work is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._work is None and self._waiting:
            self._work = asyncio.get_running_loop().create_task(self._write())
            self._work.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._work = None
        if self._waiting:
            self._begin_in(_SOON_S)

    async def _write(self) -> None:
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="trace")
        packed = await asyncio.get_running_loop().run_in_executor(self._thread, _packed, batch)
        if not packed:
            return
        rows = self._rows()
        try:
            await self._writing.write_soon(lambda: rows.add(packed, self._limit_bytes))
        except AivistaError as error:
            # The turn itself is on record; only what it was made of is lost.
            _log.error("steps of a turn could not be put on record: %s", error)

    # Reading

    async def steps(self, conversation_id: str, turn_ids: Sequence[str] | None = None) -> tuple[TraceStep, ...]:
        """Return the whole steps of these turns, or of all; turn by turn, the oldest first."""
        from agent.storage.trace_rows import step_of

        found = await self._read(lambda: self._rows().steps(conversation_id, turn_ids))
        return await asyncio.to_thread(lambda: tuple(map(step_of, found)))

    async def summaries(self, conversation_id: str, turn_ids: Sequence[str]) -> tuple[StepSummary, ...]:
        """Return the steps of these turns in a line each."""
        found = await self._read(lambda: self._rows().summaries(conversation_id, turn_ids))
        return tuple(map(StepSummary.model_validate_json, found))

    async def step(self, conversation_id: str, turn_id: str, number: int) -> TraceStep | None:
        """Return one step."""
        from agent.storage.trace_rows import step_of

        found = await self._read(lambda: self._rows().step(conversation_id, turn_id, number))
        return step_of(found) if found is not None else None

    async def next_number(self, conversation_id: str, turn_id: str) -> int:
        """Return the number of a turn's next step."""
        return await self._read(lambda: self._rows().next_number(conversation_id, turn_id))

    async def _read(self, read: Callable[[], T]) -> T:
        await self.settled()
        found: list[T] = []
        await self._writing.write(lambda: found.append(read()), _nothing)
        return found[-1]


def _packed(batch: Sequence[Callable[[], StepRow | None]]) -> list[StepRow]:
    """Return the rows of a batch; a step that cannot be told is logged, and the others go on."""
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


def _nothing() -> None:
    pass
