"""Waiting for what a test means, and not for ever: a wait that runs out says what it waited for."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from time import monotonic, sleep
from typing import Any, TypeVar, overload

T = TypeVar("T")
PATIENCE_S = 60.0


@overload
async def until(condition: Callable[[], Coroutine[Any, Any, T | None]], patience_s: float = ...) -> T: ...
@overload
async def until(condition: Callable[[], T], patience_s: float = ...) -> T: ...
async def until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Return what the condition gives as soon as that is true; asked again and again. Raises TimeoutError."""
    end_s = monotonic() + patience_s
    while True:
        value = condition()
        if value := await value if inspect.isawaitable(value) else value:
            return value
        if monotonic() > end_s:
            raise _ran_out(condition, patience_s)
        await asyncio.sleep(0.01)


def wait_until(condition: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Return what the condition gives as soon as that is true; asked again and again. Raises TimeoutError."""
    end_s = monotonic() + patience_s
    while not (value := condition()):
        if monotonic() > end_s:
            raise _ran_out(condition, patience_s)
        sleep(0.01)
    return value


def join(thread: threading.Thread) -> None:
    """Return when a thread has ended. Raises TimeoutError."""
    thread.join(PATIENCE_S)
    if thread.is_alive():
        raise TimeoutError(f"the thread {thread.name} still runs after {PATIENCE_S:g} s")


def _ran_out(condition: Callable[[], object], patience_s: float) -> TimeoutError:
    try:
        words = inspect.getsource(condition) if inspect.isfunction(condition) else repr(condition)
    except OSError:
        words = repr(condition)
    return TimeoutError(f"still not so after {patience_s:g} s: {' '.join(words.split())}")
