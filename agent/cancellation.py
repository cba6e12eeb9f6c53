"""Work that goes on when whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


async def shielded(work: asyncio.Future[T]) -> T:
    """Return what the work returns; it goes on when the caller is cancelled.

    What it raises after that is nobody's: since Python 3.14 `asyncio.shield` prints it with its traceback.
    """
    work.add_done_callback(_retrieve)
    await asyncio.wait({work})
    return work.result()


def _retrieve(work: asyncio.Future[Any]) -> None:
    # An error that nobody takes is printed, too.
    if not work.cancelled():
        work.exception()
