"""Pictures that look like another one: descriptors are made when somebody asks, the newest pictures' first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection, select

from agent.errors import RequestRefused, StorageFailure
from agent.storage.gallery_index import AboutVectors, VectorRow, VectorTables
from agent.storage.gallery_looks import ALIKE, EDGE_PX, LENGTH, looks_of
from agent.storage.gallery_rows import ids_of
from agent.storage.gallery_tasks import Tasks
from agent.storage.images import ImageStore
from agent.storage.own_styles import owner_key
from agent.storage.tables import PICTURES

T = TypeVar("T")

TABLE = "looks"
_ABOUT = AboutVectors(dimension=LENGTH)
# Whoever comes meanwhile waits for so many: large pictures take a good part of a second each.
_AT_ONCE = 8
_MOST_A_SEARCH = 512
_MOST_FOUND = 400


class Reading(Protocol):
    """Something that is read from the records, off the event loop."""

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        """Return what the work returns."""
        ...


class Alike(NamedTuple):
    """The ids of pictures that look like one, with how much; and whether every picture has been looked at."""

    found: dict[int, float]
    is_whole: bool


class SimilarPictures:
    """Finds pictures by their looks. `thread` is where the tables are used. Every call may raise StorageFailure."""

    def __init__(
        self, tables: VectorTables, thread: Executor, images: ImageStore, reading: Reading, tasks: Tasks
    ) -> None:
        self._tables = tables
        self._thread = thread
        self._images = images
        self._reading = reading
        self._tasks = tasks
        # Pictures that cannot be read; tried again after the next start.
        self._unreadable: set[int] = set()
        # How many pictures each owner has that were not looked at yet.
        self._left: dict[str, int] = {}
        self._failures: dict[str, StorageFailure] = {}

    async def like(self, owner: str, picture_id: int, digest: str, patience_s: float) -> Alike:
        """Return the owner's pictures that look like this one of theirs, the most alike first, without itself.

        Those not looked at within `patience_s` are there the next time. A picture that cannot be read is like none.
        """
        with self._tasks.standing_back():
            # Before all others, behind which it would have to wait.
            looks = await self._guarded(lambda: self._tables.vector_of(TABLE, picture_id, digest))
            looks = looks or await self._looks_of(digest)
        if looks is None:
            return Alike({}, is_whole=True)
        is_done = await self._tasks.begin((TABLE, owner), lambda: self._look(owner), patience_s)
        if (failure := self._failures.pop(owner, None)) is not None:
            raise failure
        name = owner_key(owner)
        near = await self._guarded(lambda: self._tables.nearest(TABLE, name, looks, _MOST_FOUND))
        alike = [one for one in near if one.cosine >= ALIKE and one.id != picture_id]
        digests = await self._reading(lambda connection: _digests(connection, [one.id for one in alike]))
        stale = [one.id for one in alike if digests.get(one.id) != one.content]
        await self._guarded(lambda: self._tables.forget(TABLE, stale))
        found = {one.id: min(1.0, one.cosine) for one in alike if digests.get(one.id) == one.content}
        return Alike(found, is_whole=is_done and not self._left.get(owner))

    async def _look(self, owner: str) -> None:
        try:
            await self._look_at_missing(owner)
        except StorageFailure as failure:
            # There are no words to go by instead.
            self._failures[owner] = failure
            raise

    async def _look_at_missing(self, owner: str) -> None:
        missing = await self._missing(owner)
        self._left[owner] = max(0, len(missing) - _MOST_A_SEARCH)
        for start in range(0, min(len(missing), _MOST_A_SEARCH), _AT_ONCE):
            await self._tasks.turn()
            await self._look_at(owner, missing[start : start + _AT_ONCE])

    async def _look_at(self, owner: str, ids: Sequence[int]) -> None:
        digests = await self._reading(lambda connection: _digests(connection, ids))
        looks = await asyncio.gather(*(self._looks_of(digest) for digest in digests.values()))
        rows = [
            VectorRow(one, owner_key(owner), digest, vector)
            for (one, digest), vector in zip(digests.items(), looks, strict=True)
            if vector is not None
        ]
        self._unreadable.update(one for one, vector in zip(digests, looks, strict=True) if vector is None)
        await self._guarded(lambda: self._tables.add(TABLE, _ABOUT, rows))

    async def _missing(self, owner: str) -> list[int]:
        ids = await self._reading(lambda connection: ids_of(connection, owner))
        known = await self._guarded(lambda: self._tables.known(TABLE).copy())
        return [one for one in ids if one not in known and one not in self._unreadable]

    async def _looks_of(self, digest: str) -> list[float] | None:
        try:
            thumbnail = await self._images.thumbnail(digest, EDGE_PX)
        except RequestRefused:
            return None
        return await asyncio.to_thread(looks_of, thumbnail)

    async def _guarded(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._tables.guarded, work)


def _digests(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """Return the digests of the pictures that are not deleted."""
    statement = select(PICTURES.c.id, PICTURES.c.digest).where(PICTURES.c.id.in_(ids), PICTURES.c.deleted_at.is_(None))
    return {row.id: row.digest for row in connection.execute(statement)}
