"""When a call is asked again, how long in between, and when not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest

from agent.errors import AivistaError, ErrorCode, ErrorInfo, NetworkFailure, ProviderFailure, RateLimited
from agent.messages import CompletionChunk, TextPart
from agent.workflow.hearing import Answer
from agent.workflow.retrying import Breaker, Breakers, Patience, hear_patiently

OVERLOADED = ProviderFailure(ErrorCode.OVERLOADED, model="Flash")
REFUSED = NetworkFailure(ErrorCode.CONNECTION_FAILED)
CUT = NetworkFailure(ErrorCode.STREAM_CUT)
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

    async def _answer(self) -> AsyncIterator[CompletionChunk]:
        self.calls += 1
        if self._failures:
            if self._words_before:
                yield CompletionChunk(part=TextPart(text=self._words_before))
            raise self._failures.pop(0)
        yield CompletionChunk(part=TextPart(text="yes"), finish_reason="STOP")

    async def _send(self) -> None:
        self.sent += 1

    async def ask(self, *, is_text: bool = True, breaker: Breaker | None = None) -> Answer:
        async def sleep(_: float) -> None:
            return None

        return await hear_patiently(
            self._answer,
            patience=Patience(sleep=sleep, jitter=lambda low, high: high),
            breaker=breaker or Breaker(limit=100),
            model_label="Flash",
            is_text=is_text,
            on_send=self._send,
            on_pause=lambda seconds, *_: self.pauses.append(seconds),
        )


@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize("failure", [OVERLOADED, REFUSED])
async def test_what_surely_cost_nothing_is_asked_again_with_growing_pauses(
    failure: AivistaError, is_text: bool
) -> None:
    server = Server([failure, failure])
    answer = await server.ask(is_text=is_text)
    assert answer.text == "yes"
    assert server.pauses == [2.0, 4.0]
    assert server.sent == 3


async def test_the_providers_own_hint_wins() -> None:
    server = Server([RateLimited(7.0)])
    assert (await server.ask(is_text=False)).text == "yes"
    assert server.pauses == [7.0]


@pytest.mark.parametrize("failure", [RateLimited(300.0), RateLimited(None)])
async def test_a_hint_beyond_the_budget_or_none_at_all_is_told_at_once(failure: AivistaError) -> None:
    server = Server([RateLimited(30.0), failure])
    answer = await server.ask()
    assert answer.error is not None
    assert answer.error.code is ErrorCode.RATE_LIMITED
    assert server.calls == 2


async def test_four_tries_are_the_most() -> None:
    server = Server([OVERLOADED] * 9)
    answer = await server.ask()
    assert answer.error == OVERLOADED.info
    assert server.calls == 4


@pytest.mark.parametrize("failure", [BROKEN, CUT])
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


async def test_a_model_that_fails_again_and_again_is_left_alone_and_tried_once_after_a_rest() -> None:
    now = [0.0]
    breaker = Breaker(limit=5, rest_s=30.0, clock=lambda: now[0])
    failing = Server([OVERLOADED] * 100)
    await failing.ask(breaker=breaker)
    await failing.ask(breaker=breaker)
    assert failing.calls == 5
    answer = await failing.ask(breaker=breaker)
    assert failing.calls == 5
    assert answer.error == ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "Flash"})
    now[0] = 31.0
    await failing.ask(breaker=breaker)
    assert failing.calls == 6
    now[0] = 100.0
    assert (await Server([]).ask(breaker=breaker)).text == "yes"
    assert not breaker.blocks()


def test_what_the_person_or_the_policy_causes_does_not_count_against_the_model() -> None:
    breaker = Breaker(limit=1)
    breaker.note(ErrorInfo(code=ErrorCode.PICTURE_BLOCKED))
    breaker.note(ErrorInfo(code=ErrorCode.KEY_INVALID))
    assert not breaker.blocks()


def test_each_key_and_model_has_its_own_breaker() -> None:
    breakers, mine, yours = Breakers(), object(), object()
    assert breakers.of(mine, "flash") is breakers.of(mine, "flash")
    assert breakers.of(mine, "flash") is not breakers.of(yours, "flash")
    assert breakers.of(mine, "flash") is not breakers.of(mine, "pro")
