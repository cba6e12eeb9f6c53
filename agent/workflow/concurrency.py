"""So many turns at once, the others in one line, each told its place; and work that goes on though nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agent.errors import ErrorCode, RequestRefused
from agent.events import Step, ThoughtLog

# Whoever comes when more than this for each seat wait would wait too long to be glad of it.
_MOST_WAITING_PER_SEAT = 4


@dataclass(eq=False)
class _Waiting:
    """One in the line, and who hears of its place."""

    tell: Callable[[ThoughtLog], None]
    called: asyncio.Event = field(default_factory=asyncio.Event)


class ConcurrencyLimiter:
    """`seats` turns are at work at once, first come, first served."""

    def __init__(self, seats: int) -> None:
        self.seats = seats
        self._free = seats
        self._line: list[_Waiting] = []

    @asynccontextmanager
    async def slot(self, tell: Callable[[ThoughtLog], None]) -> AsyncIterator[None]:
        """Hold a seat. `tell` hears of the place in the line, 1 for whoever comes next, each time it changes.

        Raises RequestRefused(STUDIO_BUSY) when too many wait already.
        """
        await self._taken(tell)
        try:
            yield
        finally:
            self._give_back()

    async def _taken(self, tell: Callable[[ThoughtLog], None]) -> None:
        if self._free:
            self._free -= 1
            return
        if len(self._line) >= self.seats * _MOST_WAITING_PER_SEAT:
            raise RequestRefused(ErrorCode.STUDIO_BUSY, count=self.seats + len(self._line))
        waiting = _Waiting(tell)
        self._line.append(waiting)
        _announce(waiting, len(self._line))
        try:
            await waiting.called.wait()
        except asyncio.CancelledError:
            if waiting.called.is_set():
                # Stopped at the very moment it was called.
                self._give_back()
            else:
                left = self._line.index(waiting)
                del self._line[left]
                self._announce_places(left)
            raise

    def _give_back(self) -> None:
        """Call the next one in, who has the seat from this moment on."""
        if not self._line:
            self._free += 1
            return
        self._line.pop(0).called.set()
        self._announce_places(0)

    def _announce_places(self, first: int) -> None:
        for place, waiting in enumerate(self._line[first:], first + 1):
            _announce(waiting, place)


def _announce(waiting: _Waiting, place: int) -> None:
    waiting.tell(ThoughtLog(step=Step.IN_LINE, parameters={"place": place}))


class BackgroundTasks:
    """The tasks of a studio that nobody waits for: held on to until they are done, or the studio ends."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """The tasks that are not done yet."""
        return iter(set(self._tasks))

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work as a task of its own."""
        # The event loop itself would let go of a task that nobody holds.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, patience_s: float) -> None:
        """Wait for what is under way, at most so long, and cancel the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        for task in self:
            task.cancel()
