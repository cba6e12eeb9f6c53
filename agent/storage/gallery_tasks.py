"""Work that a search begins and need not wait for: one of a kind at a time, held until it is done.

It stands back while somebody reads. A thread that computes hands the interpreter over every few milliseconds only, and
SQLite's driver asks for it at every single row: beside a thread that never rests a page takes seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from agent.errors import AivistaError

_log = logging.getLogger(__name__)


class Tasks:
    """Tasks by name. One that fails says so in the log and fails nobody who waits for it."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[bool]] = {}
        self._readers = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    async def begin(
        self, name: Hashable, work: Callable[[], Coroutine[Any, Any, None]], patience_s: float | None = 0.0
    ) -> bool:
        """Begin the work unless it is under way; return whether it is done within `patience_s`, None for any time.

        It goes on anyhow, also when whoever waits is cancelled.
        """
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.create_task(_told(work()))
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        done, _ = await asyncio.wait({task}, timeout=patience_s)
        return any(one.result() for one in done if not one.cancelled())

    @contextmanager
    def standing_back(self) -> Iterator[None]:
        """Have what is under way wait at its next `turn`."""
        self._readers += 1
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._is_quiet.set()

    async def turn(self) -> None:
        """Return when nobody reads: to be awaited by the work itself, before each portion."""
        await self._is_quiet.wait()

    async def finish(self) -> None:
        """Wait for everything that is under way."""
        while self._under_way:
            await asyncio.wait(set(self._under_way.values()))

    async def aclose(self) -> None:
        """Stop everything."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _told(work: Coroutine[Any, Any, None]) -> bool:
    try:
        await work
    except (AivistaError, ValueError) as error:
        _log.warning("pictures are not read for searches now: %s", error)
        return False
    return True
