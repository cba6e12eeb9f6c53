from __future__ import annotations

import asyncio
import contextlib
import glob
import hashlib
import logging
import os
import pickle
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.storage.cache import HistoryImageCache
from tests.support.children import run_child

HOUR_S = 3600.0
SMALL, LARGE = b"small", b"large" * 40_000


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def opened(
    home: Path,
    *,
    limit_bytes: int = 1 << 30,
    memory_limit_bytes: int = 64 << 20,
    free_space_floor_bytes: int = 0,
    clock: Clock | None = None,
) -> AsyncIterator[HistoryImageCache]:
    cache = HistoryImageCache(
        home,
        limit_bytes=limit_bytes,
        memory_limit_bytes=memory_limit_bytes,
        free_space_floor_bytes=free_space_floor_bytes,
        clock=clock or Clock(),
    )
    try:
        yield cache
    finally:
        await cache.aclose()


def folder(home: Path) -> Path:
    return home / "cache" / "history_images"


def change_rows(home: Path, statement: str, *values: object) -> None:
    """Do to the cache's database what somebody else could do."""
    with contextlib.closing(sqlite3.connect(folder(home) / "cache.db")) as database:
        database.execute(statement, values)
        database.commit()


def exists(path: Path) -> bool:
    return path.exists()


def value_files(home: Path) -> list[str]:
    return sorted(glob.glob(f"{folder(home)}/*/*/*.val"))


@pytest.mark.parametrize("data", [SMALL, LARGE, b""], ids=["small", "large", "empty"])
async def test_a_picture_comes_back_after_a_restart(tmp_path: Path, data: bytes) -> None:
    async with opened(tmp_path) as cache:
        assert await cache.put(md5_of(data), data, "image/png")
        assert await cache.get(md5_of(data)) == (data, "image/png")
    async with opened(tmp_path) as cache:
        assert await cache.contains(md5_of(data))
        assert await cache.get(md5_of(data)) == (data, "image/png")
        assert not await cache.contains("f" * 32)
        assert await cache.get("f" * 32) is None


async def test_the_folder_is_private_and_the_key_says_what_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(SMALL), SMALL, "image/png")
    assert os.stat(folder(tmp_path)).st_mode & 0o777 == 0o700
    with contextlib.closing(sqlite3.connect(folder(tmp_path) / "cache.db")) as database:
        keys = [row[0] for row in database.execute("SELECT key FROM Cache")]
    assert keys == [f"aivista:cache:history_image_{md5_of(SMALL)}"]


async def test_a_picture_lives_for_two_hours_after_its_last_use(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock) as cache:
        await cache.put(md5_of(SMALL), SMALL, "image/png")
        for _ in range(3):
            clock.now_s += 1.9 * HOUR_S
            assert await cache.get(md5_of(SMALL)) is not None
        clock.now_s += 1.9 * HOUR_S
        assert await cache.contains(md5_of(SMALL))
        clock.now_s += 1.9 * HOUR_S
        assert await cache.contains(md5_of(SMALL))
        clock.now_s += 2 * HOUR_S
        assert not await cache.contains(md5_of(SMALL))
        assert await cache.get(md5_of(SMALL)) is None
    async with opened(tmp_path) as cache:
        assert await cache.get(md5_of(SMALL)) is None


async def test_a_read_moves_the_end_on_disk_as_well(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(SMALL), SMALL, "image/png")
    change_rows(tmp_path, "UPDATE Cache SET expire_time = expire_time - 7000")
    async with opened(tmp_path) as cache:
        assert await cache.get(md5_of(SMALL)) is not None
    change_rows(tmp_path, "UPDATE Cache SET expire_time = expire_time - 7000")
    async with opened(tmp_path) as cache:
        assert await cache.contains(md5_of(SMALL))


async def test_a_wall_clock_that_jumps_ahead_ends_the_entry_and_it_can_be_put_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(SMALL), SMALL, "image/png")
        change_rows(tmp_path, "UPDATE Cache SET expire_time = expire_time - 10800")
        assert await cache.get(md5_of(SMALL)) is None
        assert not await cache.contains(md5_of(SMALL))
        assert await cache.put(md5_of(SMALL), SMALL, "image/png")
        assert await cache.get(md5_of(SMALL)) is not None


@pytest.mark.parametrize("change", ["truncated", "swapped", "missing"])
async def test_a_damaged_file_is_a_miss_and_never_another_picture(tmp_path: Path, change: str) -> None:
    other = b"other" * 40_000
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(LARGE), LARGE, "image/png")
        (path,) = value_files(tmp_path)
        await cache.put(md5_of(other), other, "image/png")
        (second,) = set(value_files(tmp_path)) - {path}
        match change:
            case "truncated":
                os.truncate(path, 1000)
            case "swapped":
                os.replace(second, path)
            case _:
                os.unlink(path)
        assert await cache.get(md5_of(LARGE)) is None
        assert await cache.put(md5_of(LARGE), LARGE, "image/png")
        assert await cache.get(md5_of(LARGE)) == (LARGE, "image/png")


class Poison:
    """When it is unpickled, a file appears."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


@pytest.mark.parametrize("in_file", [False, True], ids=["in the row", "in a file"])
async def test_a_poisoned_row_is_refused_and_no_code_runs(tmp_path: Path, in_file: bool) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(LARGE), LARGE, "image/png")
        poison = pickle.dumps(Poison(str(tmp_path / "it ran")))
        if in_file:
            (path,) = value_files(tmp_path)
            await asyncio.to_thread(Path(path).write_bytes, poison)
            change_rows(tmp_path, "UPDATE Cache SET mode = 4")
        else:
            change_rows(tmp_path, "UPDATE Cache SET mode = 4, filename = NULL, value = ?", poison)
        assert await cache.get(md5_of(LARGE)) is None
        assert not exists(tmp_path / "it ran")
        assert await cache.put(md5_of(LARGE), LARGE, "image/png")
        assert await cache.get(md5_of(LARGE)) == (LARGE, "image/png")


@pytest.mark.parametrize("name", ["../../../secret", "{home}/secret", "ab/cd/../../../../secret"])
async def test_a_row_cannot_name_a_file_outside_the_folder(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    async with opened(home) as cache:
        await cache.put(md5_of(LARGE), LARGE, "image/png")
        secret = home / "secret"
        await asyncio.to_thread(secret.write_bytes, LARGE)
        change_rows(home, "UPDATE Cache SET filename = ?", name.format(home=home))
        assert await cache.get(md5_of(LARGE)) is None
        assert await cache.put(md5_of(LARGE), LARGE, "image/png")
        assert exists(secret)


async def test_a_garbled_database_is_set_aside_and_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder(tmp_path).mkdir(parents=True)
    rubbish = b"no database at all " * 500
    (folder(tmp_path) / "cache.db").write_bytes(rubbish)
    orphan = folder(tmp_path) / "ab" / "cd"
    orphan.mkdir(parents=True)
    with caplog.at_level(logging.WARNING):
        async with opened(tmp_path) as cache:
            assert await cache.put(md5_of(SMALL), SMALL, "image/png")
            assert await cache.get(md5_of(SMALL)) == (SMALL, "image/png")
    (aside,) = glob.glob(f"{tmp_path}/cache/*.unreadable-*")
    assert await asyncio.to_thread(Path(aside).read_bytes) == rubbish
    assert "set aside" in caplog.text
    assert not exists(orphan)


async def test_values_that_a_killed_writer_left_are_removed_once_they_are_old(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(LARGE), LARGE, "image/png")
    young, old = folder(tmp_path) / "ab" / "cd" / "young.val", folder(tmp_path) / "ab" / "cd" / "old.val"
    young.parent.mkdir(parents=True)
    young.write_bytes(b"x")
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    async with opened(tmp_path) as cache:
        assert await cache.get(md5_of(LARGE)) is not None
    assert (exists(young), exists(old)) == (True, False)


async def kept_in_memory(cache: HistoryImageCache) -> bool:
    is_kept = await cache.put(md5_of(SMALL), SMALL, "image/png")
    return is_kept and await cache.contains(md5_of(SMALL)) and await cache.get(md5_of(SMALL)) == (SMALL, "image/png")


async def test_a_cache_that_another_process_locks_falls_back_to_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(LARGE), LARGE, "image/png")
        with contextlib.closing(sqlite3.connect(folder(tmp_path) / "cache.db", isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            with caplog.at_level(logging.WARNING):
                assert await kept_in_memory(cache)
            database.execute("ROLLBACK")
        assert len(caplog.records) == 1
    async with opened(tmp_path) as cache:
        assert await cache.get(md5_of(LARGE)) is not None
        assert await cache.get(md5_of(SMALL)) is None


async def test_a_cache_that_is_locked_from_the_start_falls_back_to_memory_and_recovers(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(LARGE), LARGE, "image/png")
    async with opened(tmp_path, clock=clock) as cache:
        with contextlib.closing(sqlite3.connect(folder(tmp_path) / "cache.db", isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            assert await kept_in_memory(cache)
            assert await cache.get(md5_of(LARGE)) is None
            database.execute("ROLLBACK")
        clock.now_s += 60
        assert await cache.get(md5_of(LARGE)) == (LARGE, "image/png")


async def test_a_folder_that_cannot_be_made_falls_back_to_memory(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    async with opened(tmp_path) as cache:
        assert await kept_in_memory(cache)


async def test_a_folder_deleted_while_running_never_raises(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(LARGE), LARGE, "image/png")
        shutil.rmtree(folder(tmp_path))
        assert await cache.get(md5_of(LARGE)) is None
        assert await kept_in_memory(cache)


async def test_a_nearly_full_disk_is_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path, free_space_floor_bytes=1 << 60) as cache:
        assert await kept_in_memory(cache)
        assert value_files(tmp_path) == []
    async with opened(tmp_path) as cache:
        assert await cache.get(md5_of(SMALL)) is None


def test_a_disk_that_takes_no_more_falls_back_to_memory(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agent.storage.cache import HistoryImageCache

async def main():
    cache = HistoryImageCache(Path(sys.argv[1]), free_space_floor_bytes=0)
    print(await cache.put("a" * 32, b"first", "image/png"))
    print(await cache.put("b" * 32, b"x" * 2_000_000, "image/png"))
    print(len((await cache.get("b" * 32)).data), await cache.contains("a" * 32))
    await cache.aclose()

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path), max_file_bytes=1_000_000)
    assert child.stdout.split() == ["True", "True", "2000000", "True"], child.stderr
    assert "in memory" in child.stderr


async def test_the_memory_keeps_to_its_limit(tmp_path: Path) -> None:
    pictures = [bytes([n]) * 400_000 for n in range(4)]
    async with opened(tmp_path, free_space_floor_bytes=1 << 60, memory_limit_bytes=1_000_000) as cache:
        assert all([await cache.put(md5_of(data), data, "image/png") for data in pictures])
        assert [await cache.get(md5_of(data)) is not None for data in pictures] == [False, False, True, True]
        assert not await cache.put("a" * 32, b"x" * 1_000_001, "image/png")
        assert await cache.get("a" * 32) is None


async def test_the_disk_keeps_to_its_limit_and_throws_out_what_was_not_used(tmp_path: Path) -> None:
    pictures = [bytes([n]) * 400_000 for n in range(60)]
    async with opened(tmp_path, limit_bytes=8_000_000) as cache:
        for data in pictures:
            assert await cache.put(md5_of(data), data, "image/png")
            assert await cache.get(md5_of(pictures[0])) is not None
        assert sum(os.stat(path).st_size for path in value_files(tmp_path)) <= 8_400_000
        assert await cache.get(md5_of(pictures[-1])) is not None


async def test_one_picture_larger_than_the_cache_may_hold_is_not_kept_and_throws_nothing_out(tmp_path: Path) -> None:
    async with opened(tmp_path, limit_bytes=1_000_000) as cache:
        await cache.put(md5_of(SMALL), SMALL, "image/png")
        assert not await cache.put("a" * 32, b"x" * 1_000_001, "image/png")
        assert await cache.get(md5_of(SMALL)) is not None


async def test_a_picture_put_a_moment_ago_is_known_without_the_disk(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(md5_of(SMALL), SMALL, "image/png")
        change_rows(tmp_path, "DELETE FROM Cache")
        assert await cache.contains(md5_of(SMALL))
        assert await cache.get(md5_of(SMALL)) is None
        assert not await cache.contains(md5_of(SMALL))


async def test_many_at_once_are_all_kept(tmp_path: Path) -> None:
    pictures = [bytes([n]) * 50_000 for n in range(40)]
    async with opened(tmp_path) as cache:
        assert all(await asyncio.gather(*(cache.put(md5_of(data), data, "image/png") for data in pictures)))
        found = await asyncio.gather(*(cache.get(md5_of(data)) for data in pictures))
    assert [one.data for one in found if one] == pictures
