"""Waiting for work that continues when the waiting task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

T = TypeVar("T")


async def shielded(work: asyncio.Future[T]) -> T:
    """Return the result of the work; the work continues when the caller is cancelled.

    An error that it raises after that is ignored. Since Python 3.14 `asyncio.shield` prints such an error with its
    traceback, so it is not used here.
    """
    work.add_done_callback(_retrieve)
    await asyncio.wait({work})
    return work.result()


async def on_thread(threads: Executor, work: Callable[[], T]) -> T:
    """Run the work on a thread and return its result; it stays in the queue when the caller is cancelled."""
    return await shielded(asyncio.get_running_loop().run_in_executor(threads, work))


def _retrieve(work: asyncio.Future[Any]) -> None:
    # asyncio also prints an error that is never retrieved.
    if not work.cancelled():
        work.exception()
