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
from agent.workflow.hearing import Answer
from agent.workflow.retrying import Breaker, Breakers, Patience, hear_patiently
from tests.support.cases import each_case

OVERLOADED = ProviderFailure(ErrorCode.OVERLOADED, model="Flash")
REFUSED = NetworkFailure(ErrorCode.CONNECTION_FAILED)
CUT = NetworkFailure(ErrorCode.STREAM_CUT)
UNSENT = NetworkFailure(ErrorCode.SENDING_FAILED)
# An event of an answer that had begun: the model has done some work by then.
BEGUN = error_from_info(OVERLOADED.info.model_copy(update={"charge": Charge.MAYBE}))
BROKEN = ProviderFailure(ErrorCode.PROVIDER_ERROR, status=500)
TIMED_OUT = ProviderFailure(ErrorCode.PROVIDER_TIMEOUT, model="Flash", seconds=300)


class Server:
    """Fails as it is told, then says yes."""

    def __init__(self, failures: Iterable[AivistaError], *, words_before: str = "") -> None:
        self._failures = list(failures)
        self._words_before = words_before
        self.calls = 0
        self.pauses: list[float] = []
        self.sent = 0

    async def answer(self) -> AsyncIterator[CompletionChunk]:
        self.calls += 1
        if self._failures:
            if self._words_before:
                yield CompletionChunk(part=TextPart(text=self._words_before))
            raise self._failures.pop(0)
        yield CompletionChunk(part=TextPart(text="yes"), finish_reason="STOP")

    async def _send(self) -> None:
        self.sent += 1

    async def ask(self, *, is_text: bool = True, breaker: Breaker | None = None, is_asked_for: bool = False) -> Answer:
        async def sleep(_: float) -> None:
            return None

        return await hear_patiently(
            self.answer,
            patience=Patience(sleep=sleep, jitter=lambda low, high: high),
            breaker=breaker or Breaker(limit=100),
            model_label="Flash",
            is_text=is_text,
            is_asked_for=is_asked_for,
            on_send=self._send,
            on_pause=lambda seconds, *_: self.pauses.append(seconds),
        )


@each_case("is_text", [True, False])
@each_case("failure", [OVERLOADED, REFUSED, RateLimited(ErrorCode.SLOW_DOWN), UNSENT])
async def test_what_surely_cost_nothing_is_asked_again_with_growing_pauses(
    failure: AivistaError, is_text: bool
) -> None:
    server = Server([failure, failure])
    answer = await server.ask(is_text=is_text)
    assert answer.text == "yes"
    assert server.pauses == [2.0, 4.0]
    assert server.sent == 3


async def test_a_hint_is_never_cut_short() -> None:
    server = Server([RateLimited(ErrorCode.RATE_LIMITED, seconds=3)])
    await server.ask()
    assert server.pauses == [3]


@pytest.mark.parametrize("failure", [BROKEN, CUT, BEGUN])
async def test_a_text_is_asked_once_more_after_an_ambiguous_failure_and_a_picture_never(failure: AivistaError) -> None:
    text, picture = Server([failure, failure]), Server([failure])
    assert (await text.ask()).error == failure.info
    assert text.calls == 2
    assert (await picture.ask(is_text=False)).error == failure.info
    assert picture.calls == 1


@pytest.mark.parametrize("is_text", [True, False])
async def test_a_timeout_is_never_repeated(is_text: bool) -> None:
    server = Server([TIMED_OUT])
    assert (await server.ask(is_text=is_text)).error == TIMED_OUT.info
    assert server.calls == 1


async def test_words_that_were_shown_are_not_shown_twice() -> None:
    server = Server([CUT], words_before="It was")
    answer = await server.ask()
    assert (answer.text, server.calls) == ("It was", 1)


class Clock:
    """Tells the seconds that a test has let pass."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(limit=5, rest_s=30.0, clock=clock)


async def open_up(breaker: Breaker) -> None:
    """Let a model fail until it is paused."""
    failing = Server([OVERLOADED] * 100)
    await failing.ask(breaker=breaker)
    last = await failing.ask(breaker=breaker)
    # The call that was on its way when it was paused says why it failed itself.
    assert (failing.calls, last.error) == (5, OVERLOADED.info)


async def test_after_the_pause_one_call_probes_the_model_and_a_success_lets_all_others_through(
    breaker: Breaker, clock: Clock
) -> None:
    await open_up(breaker)
    clock.now_s = 30.0
    assert breaker.admit() is None
    assert breaker.admit() is not None
    breaker.note(None)
    assert [breaker.admit(), breaker.admit()] == [None, None]


async def test_a_probe_that_fails_pauses_the_model_anew(breaker: Breaker, clock: Clock) -> None:
    await open_up(breaker)
    clock.now_s = 100.0
    failing = Server([OVERLOADED] * 100)
    assert (await failing.ask(breaker=breaker)).error == OVERLOADED.info
    assert failing.calls == 1
    assert breaker.admit() == 30.0


async def test_a_probe_that_is_given_up_leaves_room_for_the_next_one(breaker: Breaker, clock: Clock) -> None:
    await open_up(breaker)
    clock.now_s = 31.0

    async def stopped() -> None:
        raise asyncio.CancelledError

    server = Server([])
    with pytest.raises(asyncio.CancelledError):
        await hear_patiently(
            server.answer,
            patience=Patience(),
            breaker=breaker,
            model_label="Flash",
            is_text=True,
            on_send=stopped,
            on_pause=lambda *_: None,
        )
    assert (await server.ask(breaker=breaker)).text == "yes"


def test_a_key_that_is_gone_leaves_its_breaker_to_nobody() -> None:
    """An object that takes the place of one that is gone may have the same identity."""
    breakers = Breakers(lambda: Breaker(limit=1))
    for _ in range(50):
        breaker = breakers.of(object(), "flash")
        assert breaker.admit() is None
        breaker.note(OVERLOADED.info)


def test_each_key_and_model_has_its_own_breaker() -> None:
    breakers, mine, yours = Breakers(), object(), object()
    assert breakers.of(mine, "flash") is breakers.of(mine, "flash")
    assert breakers.of(mine, "flash") is not breakers.of(yours, "flash")
    assert breakers.of(mine, "flash") is not breakers.of(mine, "pro")
