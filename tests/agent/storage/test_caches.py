"""Caches on a real disk: what was put comes back for a while; whatever fails is a miss, and nothing foreign runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import shutil
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.adapters.records import LIVES_S, OpenCache, cache_in
from tests.support.children import full_disk

SMALL, OTHER, LARGE, LARGE_TOO = b"small", b"other", b"large" * 40_000, b"other" * 40_000
KINDS = pytest.mark.parametrize("kind", list(LIVES_S))


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def opened(home: Path, kind: str, clock: Clock | None = None, **limits: int) -> AsyncIterator[OpenCache]:
    cache = cache_in(home, kind, clock or Clock(), **limits)
    try:
        yield cache
    finally:
        await cache.aclose()


def change_rows(cache: OpenCache, statement: str, *values: object) -> None:
    """Do to the cache's database what somebody else could do."""
    with contextlib.closing(sqlite3.connect(cache.folder / "cache.db")) as database:
        database.execute(statement, values)
        database.commit()


def files_of(cache: OpenCache) -> set[Path]:
    return set(cache.folder.glob("*/*/*.val"))


@KINDS
async def test_what_was_put_comes_back_after_a_restart_until_its_time_is_over(tmp_path: Path, kind: str) -> None:
    clock = Clock()
    async with opened(tmp_path, kind, clock) as cache:
        assert not await cache.has(SMALL)
        await asyncio.gather(*(cache.put(data) for data in (SMALL, OTHER)))
        assert (cache.folder.stat().st_mode & 0o777, await cache.has(SMALL)) == (0o700, True)
    async with opened(tmp_path, kind, clock) as cache:
        clock.now_s += LIVES_S[kind] - 10
        assert (await cache.has(SMALL), await cache.has(b"never put")) == (True, False)
        clock.now_s += LIVES_S[kind] + 20
        assert not await cache.has(SMALL)
        await cache.put(SMALL)
        for _ in range(3):
            clock.now_s += LIVES_S[kind] * 0.6
            is_there = await cache.has(SMALL)
        assert is_there is (kind == "pictures"), "a picture lives as long as it is used"


class Poison:
    """Something that runs code when pickle reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


FOREIGN = ((1, b"j{{{{"), (1, b"j1"), (1, zlib.compress(b"x")), (1, b""), (3, "text"))


@KINDS
async def test_a_row_that_somebody_else_wrote_is_a_miss_and_runs_nothing(tmp_path: Path, kind: str) -> None:
    clock = Clock()
    for mode, value in (*FOREIGN, (1, b"j" + b"[" * 100_000), (4, pickle.dumps(Poison(tmp_path / "it ran")))):
        async with opened(tmp_path, kind, clock) as cache:
            await cache.put(SMALL)
            change_rows(cache, "UPDATE Cache SET mode = ?, filename = NULL, value = ?", mode, value)
            assert not await cache.has(SMALL), (mode, value)
            await cache.put(SMALL)
            assert await cache.has(SMALL)
    assert not (tmp_path / "it ran").exists()


def rename(cache: OpenCache, name: str) -> None:
    change_rows(cache, "UPDATE Cache SET filename = ?", name)


def name_a_file_outside(cache: OpenCache, file: Path, _: Path) -> None:
    (cache.folder.parents[2] / "secret").write_bytes(file.read_bytes())
    rename(cache, "../../../secret")


def poison_file(cache: OpenCache, file: Path, _: Path) -> None:
    file.write_bytes(pickle.dumps(Poison(cache.folder.parents[2] / "it ran")))
    change_rows(cache, "UPDATE Cache SET mode = 4")


DAMAGES: dict[str, Callable[[OpenCache, Path, Path], object]] = {
    "shorter": lambda cache, file, other: os.truncate(file, 1000),
    "one bit": lambda cache, file, other: file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:]),
    "swapped": lambda cache, file, other: rename(cache, str(other.relative_to(cache.folder))),
    "replaced": lambda cache, file, other: os.replace(other, file),
    "missing": lambda cache, file, other: file.unlink(),
    "outside": name_a_file_outside,
    "poison": poison_file,
}


@KINDS
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_a_miss_never_another_s_and_can_be_put_again(
    tmp_path: Path, kind: str, damage: str
) -> None:
    async with opened(tmp_path / "home", kind) as cache:
        await cache.put(LARGE)
        [file] = files_of(cache)
        await cache.put(LARGE_TOO)
        [other] = files_of(cache) - {file}
        DAMAGES[damage](cache, file, other)
        assert not await cache.has(LARGE)
        await cache.put(LARGE)
        assert await cache.has(LARGE)
    assert not (tmp_path / "it ran").exists()
    assert (tmp_path / "secret").exists() is (damage == "outside")


@KINDS
async def test_a_disk_that_takes_nothing_fails_nobody_and_is_used_again_afterwards(tmp_path: Path, kind: str) -> None:
    async with opened(tmp_path, kind) as cache:
        await cache.put(LARGE)
        with contextlib.closing(sqlite3.connect(cache.folder / "cache.db", isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            await cache.put(SMALL)
            assert not await cache.has(SMALL)
            database.execute("ROLLBACK")
    async with opened(tmp_path, kind) as cache:
        assert await cache.has(LARGE)
        shutil.rmtree(cache.folder)
        assert not await cache.has(LARGE)
        await cache.put(OTHER)
        await cache.has(OTHER)
    async with opened(tmp_path, kind) as cache:
        await cache.put(LARGE)
        assert await cache.has(LARGE)
    home = tmp_path / "in the way"
    home.mkdir()
    (home / "cache").write_text("a file where the folder should be")
    async with opened(home, kind) as cache:
        await cache.put(SMALL)
        assert not await cache.has(SMALL)


@KINDS
async def test_a_cache_keeps_to_its_limit_and_leaves_a_nearly_full_disk_alone(tmp_path: Path, kind: str) -> None:
    many = [bytes([65 + number]) * 400_000 for number in range(30)]
    async with opened(tmp_path, kind, limit_bytes=8_000_000) as cache:
        for data in many:
            assert await cache.put(data)
        assert await cache.has(many[-1])
        assert 1_000_000 < sum(file.stat().st_size for file in files_of(cache)) <= 8_400_000
        assert not await cache.put(b"x" * 8_000_001), "and throws nothing out for it"
        assert await cache.has(many[-1])
    async with opened(tmp_path / "full", kind, floor_bytes=1 << 60) as cache:
        await cache.put(LARGE)
        assert (await cache.has(LARGE), files_of(cache)) == (False, set())


@KINDS
async def test_a_garbled_database_is_set_aside_and_made_anew(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, kind) as cache:
        cache.folder.mkdir(parents=True)
        (cache.folder / "cache.db").write_bytes(b"no database at all " * 500)
        await cache.put(SMALL)
        assert await cache.has(SMALL)
    [aside] = (tmp_path / "cache").glob("*.unreadable-*")
    assert aside.read_bytes() == b"no database at all " * 500
    assert "was unreadable" in caplog.text


async def test_values_that_a_killed_writer_left_are_removed_once_they_are_old(tmp_path: Path) -> None:
    async with opened(tmp_path, "pictures") as cache:
        await cache.put(LARGE)
    left = [cache.folder / "ab" / "cd" / name for name in ("young.val", "old.val")]
    left[0].parent.mkdir(parents=True)
    for file in left:
        file.write_bytes(b"x")
    os.utime(left[1], (0, 0))
    async with opened(tmp_path, "pictures") as cache:
        assert await cache.has(LARGE)
    assert [file.exists() for file in left] == [True, False]


@KINDS
async def test_a_disk_that_takes_no_more_fails_nobody(tmp_path: Path, kind: str) -> None:
    async with opened(tmp_path, kind) as cache:
        await cache.put(SMALL)
        with full_disk(1_000_000):
            await cache.put(b"x" * 2_000_000)
            assert not await cache.has(b"x" * 2_000_000)
