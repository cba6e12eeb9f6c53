"""A fast stream is slowed for the page; nothing is lost, nothing changes places."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from webui.pacing import PAGE_INTERVAL_S, batches, page_interval_s


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


async def test_every_event_comes_in_order_in_far_fewer_batches() -> None:
    got = [batch async for batch in batches(numbers(5000), interval_s=60)]
    assert [number for batch in got for number in batch] == list(range(5000))
    assert len(got) <= 2


async def test_the_first_event_does_not_wait_for_the_second() -> None:
    release = asyncio.Event()

    async def slow() -> AsyncIterator[str]:
        yield "first"
        await release.wait()
        yield "second"

    stream = batches(slow(), interval_s=60)
    assert await anext(stream) == ["first"]
    release.set()
    assert await anext(stream) == ["second"]


async def test_an_error_comes_after_the_events_before_it() -> None:
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise LookupError("gone")

    stream = batches(broken(), interval_s=60)
    assert await anext(stream) == [1]
    with pytest.raises(LookupError, match="gone"):
        await anext(stream)


async def test_closing_the_batches_closes_the_source() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            closed.set()

    stream = batches(endless(), interval_s=60)
    await anext(stream)
    await stream.aclose()
    assert closed.is_set()


async def test_an_empty_source_yields_nothing() -> None:
    assert [batch async for batch in batches(numbers(0))] == []


def test_a_long_thread_is_drawn_less_often_and_a_short_one_at_full_pace() -> None:
    assert page_interval_s(0) == page_interval_s(100) == PAGE_INTERVAL_S
    assert PAGE_INTERVAL_S < page_interval_s(300) < page_interval_s(600) < 0.5
