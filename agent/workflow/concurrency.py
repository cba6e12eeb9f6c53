"""So many turns at once: the others wait in one line, and each is told its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

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
        _tell(waiting, len(self._line))
        try:
            await waiting.called.wait()
        except asyncio.CancelledError:
            if waiting.called.is_set():
                # Stopped at the very moment it was called.
                self._give_back()
            else:
                left = self._line.index(waiting)
                del self._line[left]
                self._tell_from(left)
            raise

    def _give_back(self) -> None:
        """Call the next one in, who has the seat from this moment on."""
        if not self._line:
            self._free += 1
            return
        self._line.pop(0).called.set()
        self._tell_from(0)

    def _tell_from(self, first: int) -> None:
        for place, waiting in enumerate(self._line[first:], first + 1):
            _tell(waiting, place)


def _tell(waiting: _Waiting, place: int) -> None:
    waiting.tell(ThoughtLog(step=Step.IN_LINE, parameters={"place": place}))
