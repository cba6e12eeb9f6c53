"""What was found for a wish, kept on a real disk: whatever fails there is a miss and never an error."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.storage.style_cache import Found, SearchCache
from agent.storage.style_values import MatchKind, MatchReason

KEY, OTHER = "a" * 64, "b" * 64
FOUND = (Found(style_id="linocut", similarity=0.75, reason=MatchReason(kind=MatchKind.NAME, text="Linocut")),)
TTL_S = 300.0
PAUSE_S = 30.0


class Clock:
    """A clock that stands still until it is moved."""

    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> Iterator[SearchCache]:
    opened = SearchCache(tmp_path / "styles", TTL_S, clock)
    yield opened
    opened.close()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the cache's database as another process does that writes."""
    with contextlib.closing(sqlite3.connect(folder / "styles" / "cache.db", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        yield
        database.execute("ROLLBACK")


def test_what_was_put_is_found_until_its_time_is_over(cache: SearchCache, clock: Clock) -> None:
    cache.put(KEY, FOUND)
    clock.now_s += TTL_S - 1
    assert cache.get(KEY) == FOUND
    assert cache.get(OTHER) is None
    clock.now_s += 2
    assert cache.get(KEY) is None


def test_a_database_that_another_process_locks_is_a_miss_when_putting(
    cache: SearchCache, clock: Clock, tmp_path: Path
) -> None:
    cache.put(KEY, FOUND)
    with locked(tmp_path):
        cache.put(OTHER, FOUND)
    assert cache.get(KEY) is None
    clock.now_s += PAUSE_S + 1
    assert cache.get(KEY) == FOUND
    assert cache.get(OTHER) is None


def test_a_database_that_another_process_locks_is_a_miss_when_getting(
    cache: SearchCache, clock: Clock, tmp_path: Path
) -> None:
    cache.put(KEY, FOUND)
    with locked(tmp_path):
        assert cache.get(KEY) is None
    clock.now_s += PAUSE_S + 1
    assert cache.get(KEY) == FOUND


def test_a_database_that_is_locked_from_the_start_is_a_miss(cache: SearchCache, clock: Clock, tmp_path: Path) -> None:
    cache.put(KEY, FOUND)
    later = SearchCache(tmp_path / "styles", TTL_S, clock)
    with locked(tmp_path):
        later.put(OTHER, FOUND)
        assert later.get(KEY) is None
    later.close()
    assert cache.get(KEY) == FOUND
