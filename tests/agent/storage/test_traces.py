"""Traces on disk: written when nobody waits, kept below a limit, gone with their conversation."""

from __future__ import annotations

import logging
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.trace_rows import PackedStep, row_of, step_of
from agent.storage.traces import LIMIT_BYTES
from agent.trace import StepKind, TraceStep
from tests.support.traces import traced


@asynccontextmanager
async def opened(home: Path, limit_bytes: int = LIMIT_BYTES) -> AsyncIterator[ConversationStore]:
    store = ConversationStore(home, ImageStore(home), trace_limit_bytes=limit_bytes)
    await store.open()
    yield store
    await store.aclose()


async def keep(store: ConversationStore, conversation_id: str, *steps: TraceStep) -> None:
    for step in steps:
        store.traces.keep(conversation_id, partial(TraceStep.model_copy, step))
    await store.traces.settled()


def heavy(number: int, turn_id: str) -> TraceStep:
    """Return a step that cannot be packed into much less than 20 KB."""
    noise = random.Random(f"{turn_id} {number}").randbytes(10_000).hex()
    return traced(number, turn_id, sent={"system": noise})


def rows(home: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(home / "aivista.db") as database:
        found = database.execute("SELECT turn_id, number, size_bytes FROM trace_steps ORDER BY began_at").fetchall()
    database.close()
    return found


def test_a_step_comes_back_from_its_row_exactly() -> None:
    step = traced(7, kind=StepKind.TOOL, name="read_url", sent={"arguments": {"url": "https://狐.example", "n": 1.5}})
    row = row_of("c1", step)
    assert step_of(PackedStep(row.summary, row.contents)) == step


async def test_steps_come_back_turn_by_turn_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        one, other = await store.create("ann"), await store.create("ann")
        late, early = traced(3, "t1"), traced(1, "t1")
        await keep(store, one.id, late, traced(1, "t2"), early)
        await keep(store, other.id, traced(1, "t9"))
        assert await store.traces.steps(one.id) == (early, late, traced(1, "t2"))
        assert await store.traces.steps(one.id, ["t2"]) == (traced(1, "t2"),)
        assert await store.traces.steps(one.id, []) == ()
        summaries = await store.traces.summaries(one.id, ["t2", "t1"])
        assert [(one.turn_id, one.number) for one in summaries] == [("t2", 1), ("t1", 1), ("t1", 3)]
        assert await store.traces.step(one.id, "t1", 3) == late
        assert await store.traces.step(one.id, "t1", 2) is None
        assert await store.traces.step(other.id, "t1", 3) is None
        assert (await store.traces.next_number(one.id, "t1"), await store.traces.next_number(one.id, "t5")) == (4, 1)


async def test_nothing_is_told_before_a_pause_or_the_end_of_the_turn(tmp_path: Path) -> None:
    told: list[int] = []

    def tell() -> TraceStep:
        told.append(1)
        return traced(len(told))

    async with opened(tmp_path) as store:
        conversation = await store.create("ann")
        store.traces.keep(conversation.id, tell)
        store.traces.keep(conversation.id, tell)
        assert told == []
        store.traces.after(lambda: told.append(0))
        await store.traces.settled()
        # What comes after is done when all before it is told.
        assert told == [1, 1, 0]
        assert len(await store.traces.steps(conversation.id)) == 2


async def test_what_is_left_is_written_when_the_store_closes(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("ann")
        store.traces.keep(conversation.id, traced)
    assert len(rows(tmp_path)) == 1


async def test_a_step_that_cannot_be_told_is_logged_and_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> TraceStep:
        raise ValueError("no words for it")

    async with opened(tmp_path) as store:
        conversation = await store.create("ann")
        store.traces.keep(conversation.id, broken)
        with caplog.at_level(logging.ERROR):
            await keep(store, conversation.id, traced())
        assert await store.traces.steps(conversation.id) == (traced(),)
    assert "could not be told" in caplog.text


async def test_beyond_the_limit_the_oldest_turns_are_let_go_whole(tmp_path: Path) -> None:
    async with opened(tmp_path, limit_bytes=100_000) as store:
        conversation = await store.create("ann")
        for number in range(8):
            await keep(store, conversation.id, *(heavy(10 * number + one, f"t{number}") for one in (1, 2)))
            kept = rows(tmp_path)
            assert sum(size for _, _, size in kept) <= 100_000
        turns = [turn_id for turn_id, _, _ in kept]
    assert turns[-2:] == ["t7", "t7"]
    assert 2 <= len(set(turns)) < 8
    # The newest are kept, and no turn is kept by half.
    assert set(turns) == {f"t{number}" for number in range(8)[-len(set(turns)) :]}
    assert all(turns.count(one) == 2 for one in turns)


async def test_the_limit_counts_what_an_earlier_start_has_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("ann")
        await keep(store, conversation.id, *(heavy(number, f"t{number}") for number in range(1, 6)))
    async with opened(tmp_path, limit_bytes=60_000) as store:
        await keep(store, conversation.id, heavy(9, "t9"))
    assert [turn_id for turn_id, _, _ in rows(tmp_path)][-1] == "t9"
    assert sum(size for _, _, size in rows(tmp_path)) <= 60_000


async def test_steps_of_a_conversation_that_is_gone_are_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as store:
        gone, kept = await store.create("ann"), await store.create("ann")
        await keep(store, gone.id, traced())
        await store.remove(gone.id, "ann")
        assert rows(tmp_path) == []
        with caplog.at_level(logging.WARNING):
            store.traces.keep(gone.id, traced)
            await keep(store, kept.id, traced(turn_id="t2"))
    assert [turn_id for turn_id, _, _ in rows(tmp_path)] == ["t2"]
    assert caplog.text == ""


async def test_a_trace_keeps_no_picture_that_nothing_else_names(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("ann")
        image = {"type": "image", "digest": "a" * 64}
        await keep(store, conversation.id, traced(came={"parts": [image]}))
        assert await store.named_digests() == set()
