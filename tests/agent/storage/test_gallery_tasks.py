"""Work of searches in the background: one of a kind, never lost with who began it, and never in a reader's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent.errors import ErrorCode, StorageFailure
from agent.storage.gallery_tasks import Tasks


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    one = Tasks()
    yield one
    await one.aclose()


async def test_work_stands_back_between_its_portions_while_somebody_reads(tasks: Tasks) -> None:
    portions: list[int] = []

    async def work() -> None:
        for number in range(3):
            await tasks.turn()
            portions.append(number)

    with tasks.standing_back():
        with tasks.standing_back():
            assert not await tasks.begin("words", work, 0.05)
        assert not await tasks.begin("words", work, 0.05)
        assert portions == []
    await tasks.finish()
    assert portions == [0, 1, 2]


async def test_readers_who_follow_each_other_do_not_keep_it_from_its_turn(tasks: Tasks) -> None:
    done = asyncio.Event()

    async def work() -> None:
        await tasks.turn()
        done.set()

    with tasks.standing_back():
        await tasks.begin("words", work)
        await asyncio.sleep(0)
    with tasks.standing_back():
        await done.wait()


async def test_it_goes_on_when_who_waits_for_it_gives_up(tasks: Tasks) -> None:
    gate, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await gate.wait()
        done.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await tasks.begin("words", work, patience_s=None)
    gate.set()
    assert await tasks.begin("words", work, patience_s=None)
    assert done.is_set()


async def test_work_that_fails_is_not_done_and_may_be_begun_again(
    tasks: Tasks, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> None:
        raise StorageFailure(ErrorCode.DISK_FULL)

    assert not await tasks.begin("words", fails, patience_s=None)
    assert "not read for searches now" in caplog.text

    async def works() -> None:
        pass

    assert await tasks.begin("words", works, patience_s=None)
