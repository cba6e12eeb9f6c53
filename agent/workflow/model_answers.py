"""Collects the chunks of a model call into one answer, and retries the call where that is safe.

It retries only if the provider certainly did no work, or if a repeated call costs next to nothing. Every kind of call
is retried after 429, 503, and a request that did not arrive completely, after the delay that the provider states. A
text call is also retried once after 500 and a broken connection. An image call is not: after these errors, a read
timeout or a partial answer, the picture may have been generated and charged, so the user decides.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, TypeAlias

from cachetools import LRUCache

from agent.errors import AivistaError, Charge, ErrorCode, ErrorInfo
from agent.messages import (
    CompletionChunk,
    ContentPart,
    GroundingPart,
    ImagePart,
    PromptMessage,
    Role,
    TextPart,
    TokenUsage,
    ToolCallPart,
    is_visible,
)

# Called with each piece of streamed text, and whether it is a thought.
OnText: TypeAlias = Callable[[str, bool], Awaitable[None]]


@dataclass
class Answer:
    """The result of one call: the parts in order, the usage, and the error if it failed."""

    parts: list[ContentPart] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    finish_reason: str = ""
    error: ErrorInfo | None = None

    @property
    def message(self) -> PromptMessage:
        """The answer as a message of the history."""
        return PromptMessage(role=Role.MODEL, parts=tuple(self.parts))

    @property
    def text(self) -> str:
        """The visible text, empty if nothing of it is visible."""
        text = self.message.text.strip()
        return text if is_visible(text) else ""

    @property
    def is_silent(self) -> bool:
        """Whether the answer contains nothing but thoughts."""
        return all(isinstance(part, TextPart) and part.is_thought for part in self.parts)

    @property
    def calls(self) -> list[ToolCallPart]:
        """The tool calls, in order."""
        return [part for part in self.parts if isinstance(part, ToolCallPart)]

    @property
    def pictures(self) -> list[ImagePart]:
        """All pictures, each once, in order; a duplicate keeps its last position."""
        found = {part.digest: part for part in reversed(self.parts) if isinstance(part, ImagePart)}
        return list(reversed(found.values()))

    @property
    def picture(self) -> ImagePart | None:
        """The result of an image model: its last picture."""
        return next(reversed(self.pictures), None)

    @property
    def grounding(self) -> GroundingPart:
        """The queries and sources of a search, empty without a search."""
        return next((part for part in reversed(self.parts) if isinstance(part, GroundingPart)), GroundingPart())


async def _collect_stream(
    chunks: AsyncIterator[CompletionChunk],
    on_text: OnText | None,
    *,
    limit_s: float | None,
    idle_s: float | None,
    begins_late: bool,
    model_label: str,
) -> Answer:
    """Collect the chunks of one call. A failure is not raised: it becomes the answer's `error`; earlier parts are kept.

    Each piece of text is passed to `on_text` as it arrives, with whether it is a thought. Adjacent unsigned texts are
    joined; a signed part stays separate, because a signature belongs to its part and position. The call is given up
    when nothing arrives for `idle_s`, or when it has not ended after `limit_s`. With `begins_late` only `limit_s`
    applies until the first chunk.
    """
    answer = Answer()
    words: list[TextPart] = []
    try:
        async with asyncio.timeout(limit_s) as deadline, asyncio.timeout(None if begins_late else idle_s) as silence:
            async for chunk in chunks:
                if idle_s is not None:
                    silence.reschedule(asyncio.get_running_loop().time() + idle_s)
                part = chunk.part
                if isinstance(part, TextPart):
                    if on_text is not None and part.text:
                        await on_text(part.text, part.is_thought)
                    if words and not _can_join(words[-1], part):
                        answer.parts.append(_joined(words))
                    words.append(part)
                elif part is not None:
                    answer.parts += [_joined(words)] if words else []
                    answer.parts.append(part)
                _note_end(answer, chunk)
    except AivistaError as error:
        answer.error = error.info
    except TimeoutError:
        if silence.expired():
            answer.error = ErrorInfo(code=ErrorCode.NODE_TIMEOUT, parameters={"seconds": f"{idle_s:g}"})
        elif deadline.expired():
            parameters: dict[str, str | int | float] = {"model": model_label, "seconds": f"{limit_s:g}"}
            answer.error = ErrorInfo(code=ErrorCode.ANSWER_TOO_SLOW, parameters=parameters)
        else:
            raise
    finally:
        answer.parts += [_joined(words)] if words else []
        # An unclosed generator would keep its HTTP stream open until garbage collection.
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
    if answer.error is None and not (answer.text or answer.calls or answer.pictures):
        answer.error = ErrorInfo(code=ErrorCode.EMPTY_ANSWER)
    return answer


def json_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a model's text, ignoring a code fence or text around it, or None."""
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1], strict=False) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _note_end(answer: Answer, chunk: CompletionChunk) -> None:
    if chunk.usage is not None:
        answer.usage = chunk.usage
    if chunk.finish_reason:
        answer.finish_reason = chunk.finish_reason
    if chunk.error is not None:
        answer.error = chunk.error


def _joined(words: list[TextPart]) -> TextPart:
    """Return the collected texts as one part, and clear the list."""
    part = words[0] if len(words) == 1 else words[0].model_copy(update={"text": "".join(one.text for one in words)})
    words.clear()
    return part


def _can_join(last: TextPart, part: TextPart) -> bool:
    return last.is_thought == part.is_thought and not last.is_signed and not part.is_signed


_NO_WORK_DONE = frozenset(
    {
        ErrorCode.RATE_LIMITED,
        ErrorCode.SLOW_DOWN,
        ErrorCode.OVERLOADED,
        ErrorCode.CONNECTION_FAILED,
        ErrorCode.SENDING_FAILED,
    }
)
_ONCE_MORE_FOR_TEXT = _NO_WORK_DONE | {ErrorCode.PROVIDER_ERROR, ErrorCode.STREAM_CUT}
_LONGEST_PAUSE_S = 30.0
_MOST_BREAKERS = 256


@dataclass(frozen=True)
class RetryPolicy:
    """The limits of retries: at most `tries` attempts in all and `budget_s` seconds of pauses.

    `sleep` and `jitter` can be replaced in tests."""

    tries: int = 4
    budget_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[float, float], float] = random.uniform

    def pause_s(self, error: ErrorInfo, tried: int, spent_s: float) -> float | None:
        """Return the seconds to wait before the next attempt, or None when there must be none."""
        if tried >= self.tries or error.code not in _NO_WORK_DONE or error.charged is not Charge.NO:
            return None
        hint_s = error.retry_after_s
        pause_s = hint_s if hint_s is not None else self.jitter(0.0, min(_LONGEST_PAUSE_S, 2.0**tried))
        return pause_s if spent_s + pause_s <= self.budget_s else None


@dataclass
class CircuitBreaker:
    """Stops calls to a model that fails repeatedly.

    While it is closed, every call may be made. After `limit` failures within `window_s` it opens for `rest_s`: calls
    fail immediately. Then it is half-open: one call probes the model, and other calls fail until the probe ends. A
    success closes it, a failure opens it again. A call that the user explicitly requests probes immediately.
    """

    limit: int = 5
    window_s: float = 60.0
    rest_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _failures: deque[float] = field(default_factory=deque)
    _open_until_s: float | None = None
    _is_probing: bool = False

    def admit(self, *, is_asked_for: bool = False) -> float | None:
        """Return None when a call may be made now, else the seconds until the next probe.

        An admitted call must end with `note` or `release`.
        """
        if self._open_until_s is None:
            return None
        left_s = self._open_until_s - self.clock()
        if self._is_probing or (left_s > 0 and not is_asked_for):
            return max(left_s, 1.0)
        self._is_probing = True
        return None

    def note(self, error: ErrorInfo | None) -> None:
        """Count the end of a call. Only failures of the provider itself count."""
        was_probing, self._is_probing = self._is_probing, False
        if error is None:
            self._failures.clear()
            self._open_until_s = None
            return
        if error.code not in _ONCE_MORE_FOR_TEXT:
            return
        now = self.clock()
        self._failures.append(now)
        while now - self._failures[0] > self.window_s:
            self._failures.popleft()
        if was_probing or len(self._failures) >= self.limit:
            self._open_until_s = now + self.rest_s

    def release(self) -> None:
        """Withdraw a call that was cancelled before it ended."""
        self._is_probing = False


class CircuitBreakers:
    """One breaker for each model and key, so that one user's failures never stop another user's calls."""

    def __init__(self, make: Callable[[], CircuitBreaker] = CircuitBreaker) -> None:
        self._make = make
        # The key has the provider's `id`, which is unique because the value holds a reference to the provider.
        self._breakers: LRUCache[tuple[int, str], tuple[object, CircuitBreaker]] = LRUCache(_MOST_BREAKERS)

    def of(self, provider: object, model_id: str) -> CircuitBreaker:
        """Return the breaker of a model for a provider, which has one API key."""
        return self._breakers.setdefault((id(provider), model_id), (provider, self._make()))[1]


def paused(model_label: str, breaker: CircuitBreaker, left_s: float) -> ErrorInfo:
    """Return the error for a call that a breaker stopped: nothing was sent."""
    parameters: dict[str, str | int | float] = {"model": model_label, "count": breaker.limit, "seconds": ceil(left_s)}
    return ErrorInfo(code=ErrorCode.MODEL_PAUSED, parameters=parameters)


async def collect_with_retry(
    call: Callable[[], AsyncIterator[CompletionChunk]],
    *,
    policy: RetryPolicy,
    breaker: CircuitBreaker,
    model_label: str,
    is_text: bool,
    limit_s: float | None = None,
    idle_s: float | None = None,
    begins_late: bool = False,
    is_asked_for: bool = False,
    on_send: Callable[[], Awaitable[object]],
    on_pause: Callable[[float, int, ErrorInfo], None],
    on_text: OnText | None = None,
) -> Answer:
    """Return the answer of the call, retried where that is safe.

    `on_send` is awaited before each attempt; `on_pause` receives the seconds of the pause, the number of attempts so
    far, and the last error. No attempt takes longer than `limit_s`, nor is it silent for longer than `idle_s`; with
    `begins_late`, `idle_s` counts only from the first chunk. With `is_asked_for` the user wants the call even though
    the model is paused.

    No text is shown twice: a stream that broke after its first visible part is not retried.
    """
    spent_s, tried, was_repeated, usage = 0.0, 0, False, TokenUsage()
    answer: Answer | None = None
    while True:
        left_s = breaker.admit(is_asked_for=is_asked_for and not tried)
        if left_s is not None:
            # If the breaker opened while this call waited for a retry, the last attempt's error explains more.
            return answer or Answer(error=paused(model_label, breaker, left_s))
        try:
            await on_send()
            answer = await _collect_stream(
                call(), on_text, limit_s=limit_s, idle_s=idle_s, begins_late=begins_late, model_label=model_label
            )
        except BaseException:
            breaker.release()
            raise
        breaker.note(answer.error)
        tried += 1
        # The usage of failed attempts is paid as well.
        answer.usage = usage = usage + answer.usage
        if answer.error is None or not answer.is_silent:
            return answer
        pause_s = policy.pause_s(answer.error, tried, spent_s)
        # A text call may be repeated once, although it may have been charged.
        may_repeat = is_text and answer.error.charged is Charge.MAYBE and answer.error.code in _ONCE_MORE_FOR_TEXT
        if pause_s is None and may_repeat and not was_repeated:
            pause_s, was_repeated = policy.jitter(0.0, 1.0), True
        if pause_s is None or spent_s + pause_s > policy.budget_s:
            return answer
        on_pause(pause_s, tried, answer.error)
        await policy.sleep(pause_s)
        spent_s += pause_s
