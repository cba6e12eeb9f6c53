"""When a call is asked again, how long in between, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from agent import (
    AivistaError,
    Charge,
    CompletionChunk,
    ErrorCode,
    NetworkFailure,
    ProviderFailure,
    RateLimited,
    TextPart,
    error_from_info,
)
from agent.workflow.model_answers import Answer, CircuitBreaker, CircuitBreakers, RetryPolicy, collect_with_retry
from tests.support.cases import each_case
from tests.support.clock import Standing

OVERLOADED = ProviderFailure(ErrorCode.OVERLOADED, model="Flash")
REFUSED = NetworkFailure(ErrorCode.CONNECTION_FAILED)
CUT = NetworkFailure(ErrorCode.STREAM_CUT)
UNSENT = NetworkFailure(ErrorCode.SENDING_FAILED)
# An event of an answer that had begun: the model has done some work by then.
BEGUN = error_from_info(OVERLOADED.info.model_copy(update={"charge": Charge.MAYBE}))


class Server:
    """Fails as it is told, then says yes."""

    def __init__(self, failures: Iterable[AivistaError], *, words_before: str = "") -> None:
        self._failures = list(failures)
        self._words_before = words_before
        self.calls = 0
        self.pauses: list[float] = []
        self.sent = 0
        self.is_stopped = False

    async def answer(self) -> AsyncIterator[CompletionChunk]:
        self.calls += 1
        if self._failures:
            if self._words_before:
                yield CompletionChunk(part=TextPart(text=self._words_before))
            raise self._failures.pop(0)
        yield CompletionChunk(part=TextPart(text="yes"), finish_reason="STOP")

    async def _send(self) -> None:
        self.sent += 1
        if self.is_stopped:
            raise asyncio.CancelledError

    async def ask(self, *, is_text: bool = True, breaker: CircuitBreaker | None = None) -> Answer:
        async def sleep(_: float) -> None:
            return None

        return await collect_with_retry(
            self.answer,
            policy=RetryPolicy(sleep=sleep, jitter=lambda low, high: high),
            breaker=breaker or CircuitBreaker(limit=100),
            model_label="Flash",
            is_text=is_text,
            on_send=self._send,
            on_pause=lambda seconds, *_: self.pauses.append(seconds),
        )


@each_case(
    ("failure", "texts", "pictures"),
    [
        *((failure, 3, 3) for failure in (OVERLOADED, REFUSED, RateLimited(ErrorCode.SLOW_DOWN), UNSENT)),
        *((failure, 2, 1) for failure in (ProviderFailure(ErrorCode.PROVIDER_ERROR, status=500), CUT, BEGUN)),
        (ProviderFailure(ErrorCode.PROVIDER_TIMEOUT, model="Flash", seconds=300), 1, 1),
    ],
)
async def test_what_surely_cost_nothing_is_asked_again_what_may_have_is_once_for_words_and_never_for_a_picture(
    failure: AivistaError, texts: int, pictures: int
) -> None:
    for is_text, calls in ((True, texts), (False, pictures)):
        server = Server([failure, failure])
        answer = await server.ask(is_text=is_text)
        pauses = {1: [], 2: [1.0], 3: [2.0, 4.0]}[calls]
        assert (server.calls, server.sent, server.pauses) == (calls, calls, pauses)
        assert (answer.text, answer.error) == (("yes", None) if calls == 3 else ("", failure.info))


async def test_a_hint_is_never_cut_short_and_words_that_were_shown_are_not_shown_twice() -> None:
    server = Server([RateLimited(ErrorCode.RATE_LIMITED, seconds=3)])
    await server.ask()
    assert server.pauses == [3]
    server = Server([CUT], words_before="It was")
    assert ((await server.ask()).text, server.calls) == ("It was", 1)


@pytest.fixture
def clock() -> Standing:
    return Standing(0.0)


@pytest.fixture
def breaker(clock: Standing) -> CircuitBreaker:
    return CircuitBreaker(limit=5, rest_s=30.0, clock=clock)


async def open_up(breaker: CircuitBreaker) -> None:
    """Let a model fail until it is paused."""
    failing = Server([OVERLOADED] * 100)
    await failing.ask(breaker=breaker)
    last = await failing.ask(breaker=breaker)
    # The call that was on its way when it was paused says why it failed itself.
    assert (failing.calls, last.error) == (5, OVERLOADED.info)


async def test_after_the_pause_one_call_probes_the_model_and_a_success_lets_all_others_through(
    breaker: CircuitBreaker, clock: Standing
) -> None:
    await open_up(breaker)
    clock.now = 30.0
    assert breaker.admit() is None
    assert breaker.admit() is not None
    breaker.note(None)
    assert [breaker.admit(), breaker.admit()] == [None, None]


async def test_a_probe_that_fails_pauses_the_model_anew_and_one_that_is_given_up_leaves_room_for_the_next(
    breaker: CircuitBreaker, clock: Standing
) -> None:
    await open_up(breaker)
    clock.now = 100.0
    failing = Server([OVERLOADED] * 100)
    assert (await failing.ask(breaker=breaker)).error == OVERLOADED.info
    assert (failing.calls, breaker.admit()) == (1, 30.0)
    clock.now = 131.0
    server = Server([])
    server.is_stopped = True
    with pytest.raises(asyncio.CancelledError):
        await server.ask(breaker=breaker)
    server.is_stopped = False
    assert (await server.ask(breaker=breaker)).text == "yes"


def test_each_key_and_model_has_its_own_breaker_and_a_key_that_is_gone_leaves_its_own_to_nobody() -> None:
    breakers, mine, yours = CircuitBreakers(), object(), object()
    assert breakers.of(mine, "flash") is breakers.of(mine, "flash")
    assert breakers.of(mine, "flash") is not breakers.of(yours, "flash")
    assert breakers.of(mine, "flash") is not breakers.of(mine, "pro")
    # An object that takes the place of one that is gone may have the same identity.
    breakers = CircuitBreakers(lambda: CircuitBreaker(limit=1))
    for _ in range(50):
        breaker = breakers.of(object(), "flash")
        assert breaker.admit() is None
        breaker.note(OVERLOADED.info)
