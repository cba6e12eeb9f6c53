"""A fast stream slowed to what a page can follow, without losing or reordering anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

PAGE_INTERVAL_S = 1 / 12


@dataclass
class _Inbox(Generic[T]):
    """What has been read and not yet handed on; `ended` with the source's error, if it raised one."""

    waiting: list[T] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    error: BaseException | None = None

    async def fill(self, events: AsyncIterator[T]) -> None:
        try:
            async for event in events:
                self.waiting.append(event)
                self.changed.set()
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()
            self.changed.set()
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def take(self) -> list[T]:
        taken, self.waiting = self.waiting, []
        self.changed.clear()
        return taken


async def batches(events: AsyncIterator[T], interval_s: float = PAGE_INTERVAL_S) -> AsyncGenerator[list[T], None]:
    """Yield the events in order, in batches at least `interval_s` apart; the first and the last wait for nobody.

    Closing it stops reading the source. What the source raises is raised after the events before it.
    """
    inbox: _Inbox[T] = _Inbox()
    reader = asyncio.create_task(inbox.fill(events))
    try:
        while not inbox.ended.is_set() or inbox.waiting:
            await inbox.changed.wait()
            batch = inbox.take()
            if batch:
                yield batch
                with suppress(TimeoutError):
                    await asyncio.wait_for(inbox.ended.wait(), interval_s)
        if inbox.error is not None:
            raise inbox.error
    finally:
        reader.cancel()
        with suppress(asyncio.CancelledError):
            await reader
