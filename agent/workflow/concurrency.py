"""A limit for concurrent turns with a fair queue, and background tasks that nobody awaits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agent.errors import ErrorCode, RequestRefused
from agent.events import Step, ThoughtLog

# With more than this many waiting per seat, a new turn would wait too long and is refused.
_MOST_WAITING_PER_SEAT = 4


@dataclass(eq=False)
class _Waiting:
    """A queued turn, and the callback for its position."""

    tell: Callable[[ThoughtLog], None]
    called: asyncio.Event = field(default_factory=asyncio.Event)


class ConcurrencyLimiter:
    """Lets at most `seats` turns run at once, first come, first served."""

    def __init__(self, seats: int) -> None:
        self.seats = seats
        self._free = seats
        self._line: list[_Waiting] = []

    @asynccontextmanager
    async def slot(self, tell: Callable[[ThoughtLog], None]) -> AsyncIterator[None]:
        """Hold a seat. `tell` receives the position in the queue, 1 for the next turn, each time it changes.

        Raises RequestRefused(STUDIO_BUSY) when too many turns are waiting already.
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
        self._announce_places(len(self._line) - 1)
        try:
            await waiting.called.wait()
        except asyncio.CancelledError:
            if waiting.called.is_set():
                # Cancelled at the moment it received its seat.
                self._give_back()
            else:
                left = self._line.index(waiting)
                del self._line[left]
                self._announce_places(left)
            raise

    def _give_back(self) -> None:
        """Give the seat to the next turn in the queue, which holds it from now on."""
        if not self._line:
            self._free += 1
            return
        self._line.pop(0).called.set()
        self._announce_places(0)

    def _announce_places(self, first: int) -> None:
        for place, waiting in enumerate(self._line[first:], first + 1):
            waiting.tell(ThoughtLog(step=Step.IN_LINE, parameters={"place": place}))


class BackgroundTasks:
    """The background tasks of a studio: references are held until they are done or the studio ends."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """Return an iterator over the tasks that are not done yet."""
        return iter(set(self._tasks))

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work as a new task."""
        # The event loop holds only weak references: a task without another reference may be garbage-collected.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, patience_s: float) -> None:
        """Wait at most `patience_s` seconds for the running tasks, and cancel the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        for task in self:
            task.cancel()
