"""Writes that wait for the database's thread, committed together: fifty turns need not wait for fifty commits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from agent.errors import ErrorCode, StorageFailure

# What nobody waits for waits this long for company: a turn writes something every few milliseconds.
_SOON_S = 0.02


@dataclass(frozen=True)
class _Write:
    """`record` writes to the database, `remember` what was written to memory once it is committed.

    One that is `durable` is on the disk itself when it is done: a power cut does not take it back.
    """

    record: Callable[[], None]
    remember: Callable[[], None]
    done: asyncio.Future[None]
    is_durable: bool = False


class Writing:
    """A queue of writes in front of one thread; each is on record when its `write` returns.

    What waits when the thread is free goes into one transaction (`together`). If that fails, each is tried by itself,
    so that one bad write fails alone. `begin` hears before each batch whether it must be durable. When the disk is
    full, `make_room` is called, and what failed is tried once more if it made any.
    """

    def __init__(
        self,
        thread: Executor,
        together: Callable[[], AbstractContextManager[None]],
        begin: Callable[[bool], None] | None = None,
        make_room: Callable[[], bool] | None = None,
    ) -> None:
        self._thread = thread
        self._together = together
        self._begin_batch = begin
        self._make_room = make_room
        self._waiting: deque[_Write] = deque()
        self._is_at_work = False
        self._unfinished: set[asyncio.Future[None]] = set()

    async def write(
        self, record: Callable[[], None], remember: Callable[[], None], *, is_durable: bool = False
    ) -> None:
        """Write, then remember. Raises what `record` raises. Cancelling the caller does not take its write back."""
        loop = asyncio.get_running_loop()
        one = _Write(record, remember, loop.create_future(), is_durable)
        self._hand_over(one)
        self._begin(loop)
        await asyncio.shield(one.done)

    def write_soon(
        self, record: Callable[[], None], remember: Callable[[], None] | None = None
    ) -> asyncio.Future[None]:
        """Hand over a write that nobody waits for: it goes along with the next one, or alone a few milliseconds later.

        What is written afterwards comes after it. Return its end, which raises what `record` raises.
        """
        loop = asyncio.get_running_loop()
        one = _Write(record, remember or _nothing, loop.create_future())
        self._hand_over(one)
        if not self._is_at_work:
            loop.call_later(_SOON_S, self._begin, loop)
        return one.done

    def _hand_over(self, one: _Write) -> None:
        self._waiting.append(one)
        self._unfinished.add(one.done)
        one.done.add_done_callback(self._unfinished.discard)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._waiting and not self._is_at_work:
            self._is_at_work = True
            self._thread.submit(self._work, loop)

    async def finish(self) -> None:
        """Return when nothing waits any more."""
        self._begin(asyncio.get_running_loop())
        while self._unfinished:
            await asyncio.wait(self._unfinished)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        outcomes = self._written(batch)
        if any(map(_is_disk_full, outcomes)) and self._make_room is not None and self._make_room():
            failed = [number for number, outcome in enumerate(outcomes) if _is_disk_full(outcome)]
            for number, outcome in zip(failed, self._written([batch[one] for one in failed]), strict=True):
                outcomes[number] = outcome
        loop.call_soon_threadsafe(self._settle, loop, batch, outcomes)

    def _written(self, batch: list[_Write]) -> list[Exception | None]:
        if (begin := self._begin_batch) is not None:
            is_durable = any(one.is_durable for one in batch)
            error = _failure(lambda: begin(is_durable))
            if error is not None:
                return [error] * len(batch)
        if len(batch) == 1 or not self._is_recorded_together(batch):
            return [_failure(one.record) or _failure(one.remember) for one in batch]
        return [_failure(one.remember) for one in batch]

    def _is_recorded_together(self, batch: list[_Write]) -> bool:
        def record_all() -> None:
            with self._together():
                for one in batch:
                    one.record()

        return _failure(record_all) is None

    def _settle(self, loop: asyncio.AbstractEventLoop, batch: list[_Write], outcomes: list[Exception | None]) -> None:
        for one, error in zip(batch, outcomes, strict=True):
            if one.done.cancelled():
                continue
            if error is None:
                one.done.set_result(None)
            else:
                one.done.set_exception(error)
        self._is_at_work = bool(self._waiting)
        if self._is_at_work:
            self._thread.submit(self._work, loop)


def _nothing() -> None:
    pass


def _is_disk_full(error: Exception | None) -> bool:
    return isinstance(error, StorageFailure) and error.code is ErrorCode.DISK_FULL


def _failure(work: Callable[[], None]) -> Exception | None:
    """Return what the work raised: it belongs to the one who waits, and must not leave the others waiting for ever."""
    try:
        work()
    except Exception as error:
        return error
    return None
