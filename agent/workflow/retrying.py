"""Asking once more, and only when the provider surely did no work, or when asking twice costs next to nothing.

Every kind of call is repeated after 429 with the provider's own hint, 503, and a connection that never stood. A text
call is also repeated once after 500 and a cut stream. A picture never is: 500, 504 and a read timeout leave open
whether it was painted and charged, so the person decides.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from agent.errors import ErrorCode, ErrorInfo
from agent.messages import CompletionChunk
from agent.workflow.hearing import Answer, hear

_NO_WORK_DONE = frozenset({ErrorCode.RATE_LIMITED, ErrorCode.OVERLOADED, ErrorCode.CONNECTION_FAILED})
_ONCE_MORE_FOR_TEXT = frozenset({ErrorCode.PROVIDER_ERROR, ErrorCode.STREAM_CUT})
_LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True)
class Patience:
    """How long to go on asking: at most `tries` in all and `budget_s` of pauses; `sleep` and `jitter` are the clock's
    and the dice's, for tests."""

    tries: int = 4
    budget_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[float, float], float] = random.uniform

    def pause_s(self, error: ErrorInfo, tried: int, spent_s: float) -> float | None:
        """Return how long to wait before the next try, or None when there shall be none."""
        if tried >= self.tries or error.code not in _NO_WORK_DONE:
            return None
        if error.code is ErrorCode.RATE_LIMITED:
            pause_s = float(error.parameters.get("seconds", _LONGEST_PAUSE_S))
        else:
            pause_s = self.jitter(0.0, min(_LONGEST_PAUSE_S, 2.0**tried))
        return pause_s if spent_s + pause_s <= self.budget_s else None


@dataclass
class Breaker:
    """Stops asking a model that fails again and again: after `limit` failures within `window_s` it is left alone for
    `rest_s`, then one call tries it."""

    limit: int = 5
    window_s: float = 60.0
    rest_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _failures: deque[float] = field(default_factory=deque)
    _open_until_s: float = 0.0

    def blocks(self) -> bool:
        """Whether to fail at once instead of asking."""
        return self.clock() < self._open_until_s

    def note(self, error: ErrorInfo | None) -> None:
        """Count a call's end. Only the provider's own trouble counts against it."""
        if error is None:
            self._failures.clear()
            self._open_until_s = 0.0
            return
        if error.code not in _NO_WORK_DONE | _ONCE_MORE_FOR_TEXT:
            return
        now = self.clock()
        self._failures.append(now)
        while self._failures and now - self._failures[0] > self.window_s:
            self._failures.popleft()
        if len(self._failures) >= self.limit:
            self._open_until_s = now + self.rest_s


class Breakers:
    """One breaker for each model and key; those of one person never stop another's calls."""

    def __init__(self, make: Callable[[], Breaker] = Breaker) -> None:
        self._breakers: defaultdict[tuple[int, str], Breaker] = defaultdict(make)

    def of(self, provider: object, model_id: str) -> Breaker:
        """Return the breaker of a model behind a provider's key."""
        return self._breakers[id(provider), model_id]


async def hear_patiently(
    call: Callable[[], AsyncIterator[CompletionChunk]],
    *,
    patience: Patience,
    breaker: Breaker,
    model_label: str,
    is_text: bool,
    limit_s: float | None = None,
    on_send: Callable[[], Awaitable[None]],
    on_pause: Callable[[float, int, ErrorInfo], None],
    on_text: Callable[[str], Awaitable[None]] | None = None,
) -> Answer:
    """Return the answer of the call, asked again where that is right.

    `on_send` is awaited before each try; `on_pause` is told the seconds, how many tries there were and why the last one
    failed. No try takes longer than `limit_s`, however slowly its answer comes.

    Words that were shown are not shown twice: a stream that was cut after its first word is not repeated.
    """
    spent_s, tried, was_repeated = 0.0, 0, False
    while True:
        if breaker.blocks():
            return Answer(error=ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": model_label}))
        await on_send()
        answer = await _heard_in_time(call, limit_s, model_label, on_text)
        breaker.note(answer.error)
        tried += 1
        if answer.error is None or not answer.is_silent:
            return answer
        pause_s = patience.pause_s(answer.error, tried, spent_s)
        if pause_s is None and is_text and not was_repeated and answer.error.code in _ONCE_MORE_FOR_TEXT:
            pause_s, was_repeated = patience.jitter(0.0, 1.0), True
        if pause_s is None or spent_s + pause_s > patience.budget_s:
            return answer
        on_pause(pause_s, tried, answer.error)
        await patience.sleep(pause_s)
        spent_s += pause_s


async def _heard_in_time(
    call: Callable[[], AsyncIterator[CompletionChunk]],
    limit_s: float | None,
    model_label: str,
    on_text: Callable[[str], Awaitable[None]] | None,
) -> Answer:
    try:
        async with asyncio.timeout(limit_s):
            return await hear(call(), on_text)
    except TimeoutError:
        parameters: dict[str, str | int | float] = {"model": model_label, "seconds": f"{limit_s:g}"}
        return Answer(error=ErrorInfo(code=ErrorCode.PROVIDER_TIMEOUT, parameters=parameters))
