"""Once a day what was deleted 30 days ago goes for good, and a clock that jumps takes nothing along."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.messages import ImageOrigin
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.tidying import tidy_if_due
from tests.support.histories import begun_turn, finished
from tests.support.scenes import png

START = datetime.now(UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    one = ConversationStore(tmp_path, ImageStore(tmp_path))
    await one.open()
    yield one
    await one.aclose()


async def deleted(store: ConversationStore, text: str) -> str:
    """Return a conversation of one turn that was just deleted."""
    conversation, turn = await store.create("local"), begun_turn(f"t-{text}", text)
    await store.begin_turn(conversation.id, turn)
    await store.finish_turn(conversation.id, finished(turn))
    await store.delete(conversation.id, "local")
    return conversation.id


async def left(store: ConversationStore) -> list[str]:
    return [one.title for one in await store.trash("local")]


async def test_what_was_deleted_is_kept_for_thirty_days_and_then_goes_with_its_files(
    store: ConversationStore, tmp_path: Path
) -> None:
    stored = await ImageStore(tmp_path).write(png(), "image/png", ImageOrigin.UPLOADED)
    [path] = (path for path in (tmp_path / "pictures").rglob("*") if path.is_file())
    os.utime(path, (1, 1))
    await deleted(store, "a fox")
    [one] = await store.trash("local")
    assert one.kept_until - one.deleted_at == 30 * DAY
    for days in range(31):
        tidy_if_due(tmp_path, START + days * DAY)
        assert await left(store) == ["a fox"]
    # It is due now, and goes when that has been so for a day.
    tidy_if_due(tmp_path, START + 31 * DAY)
    report = tidy_if_due(tmp_path, START + 32 * DAY)
    assert report is not None
    assert report.conversations == 1
    assert await left(store) == []
    assert not path.exists(), stored.digest


async def test_it_is_done_once_a_day(store: ConversationStore, tmp_path: Path) -> None:
    hours = [n for n in range(60) if tidy_if_due(tmp_path, START + timedelta(hours=n)) is not None]
    assert hours == [24, 48], "the first time only the time is noted"


@pytest.mark.parametrize("jump", [400 * DAY, -400 * DAY], ids=["ahead", "back"])
async def test_a_clock_that_jumps_for_less_than_a_day_removes_nothing(
    store: ConversationStore, tmp_path: Path, jump: timedelta
) -> None:
    await deleted(store, "a fox")
    for moment in (START, START + DAY, START + DAY + jump, START + 2 * DAY, START + 3 * DAY):
        tidy_if_due(tmp_path, moment)
        assert await left(store) == ["a fox"]
    for days in range(4, 33):
        tidy_if_due(tmp_path, START + days * DAY)
    assert await left(store) == [], "what is really due goes all the same"


async def test_what_is_deleted_by_a_clock_that_was_ahead_stays_in_the_trash(
    store: ConversationStore, tmp_path: Path
) -> None:
    key = await deleted(store, "a fox")
    with sqlite3.connect(tmp_path / "aivista.db") as database:
        database.execute("UPDATE conversations SET deleted_at = datetime(deleted_at, '+400 days')")
    database.close()
    tidy_if_due(tmp_path, START)
    tidy_if_due(tmp_path, START + DAY)
    assert (await store.undelete(key, "local")).title == "a fox"


async def test_what_had_cost_something_still_counts_when_it_is_gone(store: ConversationStore, tmp_path: Path) -> None:
    await deleted(store, "a fox")
    another = await store.create("ann", "Owls")
    await store.delete(another.id, "ann")
    assert await store.empty_trash("local") == 1
    assert [one.title for one in await store.trash("ann")] == ["Owls"]
    with sqlite3.connect(tmp_path / "aivista.db") as database:
        [(owner,)] = database.execute("SELECT owner FROM spend_days").fetchall()
    database.close()
    assert owner == "local"


async def test_an_export_that_nobody_fetched_goes_at_the_first_start_after_a_day(
    store: ConversationStore, tmp_path: Path
) -> None:
    exports = tmp_path / "exports"
    exports.mkdir()
    ages = {"new.zip": 12 * HOUR, "old.zip": 40 * DAY, ".half.0123abcd.part": 40 * DAY, "yesterday.zip": 25 * HOUR}
    for name, age in ages.items():
        aged(exports / name, age)
    aged(tmp_path / "exports.txt", 40 * DAY)
    tidy_if_due(tmp_path, START)
    assert [path.name for path in exports.iterdir()] == ["new.zip"]
    assert (tmp_path / "exports.txt").exists()
    # Also while the trash is not due again.
    assert tidy_if_due(tmp_path, START + 20 * HOUR) is None
    assert list(exports.iterdir()) == []


def aged(path: Path, age: timedelta) -> None:
    """Write a file that is as old as that at the start."""
    path.write_bytes(b"zip")
    at_s = (START - age).timestamp()
    os.utime(path, (at_s, at_s))
