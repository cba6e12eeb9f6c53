"""Time that passes at once: a long limit runs out without a wait, and a short one is in nobody's way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from tests.support.waiting import until

T = TypeVar("T")


@dataclass
class Standing:
    """A clock that stands until a test moves it."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Clock:
    """The clock by which the timers of the event loop and of whoever asks `time.monotonic` go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._passed_s = 0.0
        real = time.monotonic
        patch.setattr(time, "monotonic", lambda: real() + self._passed_s)

    async def move(self, seconds: float) -> None:
        """Let so much time pass for everybody who waits; who is on the way to wait gets there first."""
        for pass_s in (0.0, seconds):
            self._passed_s += pass_s
            for _ in range(20):
                await asyncio.sleep(0)

    async def rest(self, seconds: int) -> None:
        """Let so much time pass by halves of a second: who pauses for longer tells each time that it does."""
        for _ in range(2 * seconds):
            await self.move(0.5)

    async def run_out(self, work: Coroutine[Any, Any, T], is_silent: Callable[[], object], seconds: float) -> T:
        """Begin the work, let so much time pass as soon as it is silent, and return what comes of it."""
        task = asyncio.create_task(work)
        await until(is_silent)
        await self.move(seconds)
        return await task
