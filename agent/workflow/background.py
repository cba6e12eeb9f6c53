"""Work that goes on whoever stops listening: it is held on to until it is done, or the studio ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any


class BackgroundTasks:
    """The tasks of a studio that nobody waits for."""

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
