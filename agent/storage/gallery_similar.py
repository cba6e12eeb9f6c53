"""Pictures that look like another one: descriptors are made when somebody asks, the newest pictures' first."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection, select

from agent.errors import RequestRefused, StorageFailure
from agent.storage.gallery_rows import ids_of
from agent.storage.images import ImageStore
from agent.storage.own_styles import owner_key
from agent.storage.tables import PICTURES
from agent.storage.vectors import AboutVectors, VectorRow, VectorTables

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray
import logging
from collections.abc import Coroutine, Hashable, Iterator
from contextlib import contextmanager

from agent.errors import AivistaError

_log = logging.getLogger(__name__)


class Tasks:
    """Tasks by name. One that fails says so in the log and fails nobody who waits for it."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[bool]] = {}
        self._readers = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    async def begin(
        self, name: Hashable, work: Callable[[], Coroutine[Any, Any, None]], patience_s: float | None = 0.0
    ) -> bool:
        """Begin the work unless it is under way; return whether it is done within `patience_s`, None for any time.

        It goes on anyhow, also when whoever waits is cancelled.
        """
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.create_task(_told(work()))
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        done, _ = await asyncio.wait({task}, timeout=patience_s)
        return any(one.result() for one in done if not one.cancelled())

    @contextmanager
    def standing_back(self) -> Iterator[None]:
        """Have what is under way wait at its next `turn`."""
        self._readers += 1
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._is_quiet.set()

    async def turn(self) -> None:
        """Return when nobody reads: to be awaited by the work itself, before each portion."""
        await self._is_quiet.wait()

    async def finish(self) -> None:
        """Wait for everything that is under way."""
        while self._under_way:
            await asyncio.wait(set(self._under_way.values()))

    async def aclose(self) -> None:
        """Stop everything."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _told(work: Coroutine[Any, Any, None]) -> bool:
    try:
        await work
    except (AivistaError, ValueError) as error:
        _log.warning("pictures are not read for searches now: %s", error)
        return False
    return True


# Large enough for a page full of pictures, which then finds its thumbnails made.
EDGE_PX = 256
# Measured on eight photographs: 0.83 and more for the same one with 30 % more or less light, or cropped by a tenth on
# each side; 0.43 for two of different things (median), above this line for three pairs of 28.
ALIKE = 0.6
_LIGHTS, _TINTS = 4, 5
_GRID = 8
_QUARTERS, _DIRECTIONS = 2, 8
LENGTH = _LIGHTS * _TINTS * _TINTS + _GRID * _GRID + _QUARTERS * _QUARTERS * _DIRECTIONS
# What a person means by "like this one" is its colours first, then where light and dark lie, then its edges.
_SHARES = (0.5, 0.3, 0.2)
_SIDE_PX = 64
# CIELAB's a and b of ordinary pictures; beyond it everything is "very".
_TINT_REACH = 60.0
# A plain surface has no layout: its noise must not be blown up to one.
_LEAST_CONTRAST = 2.0
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


def looks_of(thumbnail: bytes) -> list[float] | None:
    """Return how a picture looks, None for one that cannot be read.

    196 numbers of length 1, so that their dot product is the likeness: the share of each colour in CIELAB (4 x 5 x 5
    bins, each pixel divided among its neighbours, by roots so that a large plain sky does not outweigh the rest), the
    lightness of an 8 x 8 grid without its mean and spread, and how strongly edges run in 8 directions in each quarter.
    Colour alone takes every sunset for every other one, layout alone a red room for a blue one; these three, and no
    more, because a person can say what each sees, they are made in 4 ms, and 100,000 of them can be compared one by
    one.
    """
    import numpy
    from PIL import Image

    try:
        with Image.open(io.BytesIO(thumbnail), formats=("WEBP",)) as picture:
            shown = Image.new("RGBA", picture.size, "white")
            shown.alpha_composite(picture.convert("RGBA"))
            small = shown.convert("RGB").resize((_SIDE_PX, _SIDE_PX), Image.Resampling.BOX)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return None
    lab = _lab(numpy.asarray(small, dtype=numpy.float32) / 255)
    parts = (_colours(lab), _layout(lab[..., 0]), _edges(lab[..., 0]))
    weighted = [part * numpy.float32(share) ** 0.5 for part, share in zip(parts, _SHARES, strict=True)]
    looks = numpy.concatenate(weighted)
    found: list[float] = (looks / numpy.linalg.norm(looks)).astype(numpy.float32).tolist()
    return found


def _lab(rgb: NDArray[Any]) -> NDArray[float32]:
    """Return CIELAB (D65) of sRGB from 0 to 1: L from 0 to 100, a and b around 0."""
    import numpy

    linear = numpy.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = linear @ numpy.asarray(matrix, dtype=numpy.float32).T / numpy.asarray([0.95047, 1.0, 1.08883])
    root = numpy.where(xyz > 0.008856, numpy.cbrt(xyz), 7.787 * xyz + 16 / 116)
    light = 116 * root[..., 1] - 16
    lab = numpy.stack([light, 500 * (root[..., 0] - root[..., 1]), 200 * (root[..., 1] - root[..., 2])], axis=-1)
    return _plain(lab)


def _colours(lab: NDArray[float32]) -> NDArray[float32]:
    import numpy

    bins = (_LIGHTS, _TINTS, _TINTS)
    places = numpy.stack(
        [lab[..., 0] / 100 * (_LIGHTS - 1)]
        + [(lab[..., axis] / (2 * _TINT_REACH) + 0.5) * (_TINTS - 1) for axis in (1, 2)],
        axis=-1,
    ).reshape(-1, 3)
    places = numpy.clip(places, 0, numpy.asarray(bins) - 1)
    low = numpy.minimum(places.astype(int), numpy.asarray(bins) - 2)
    beyond = places - low
    counts = numpy.zeros(bins, dtype=numpy.float64)
    for corner in numpy.ndindex(2, 2, 2):
        parts = numpy.where(corner, beyond, 1 - beyond).prod(axis=1)
        numpy.add.at(counts, tuple((low + corner).T), parts)
    return _plain(numpy.sqrt(counts.ravel() / counts.sum()))


def _layout(light: NDArray[float32]) -> NDArray[float32]:
    import numpy

    cell = _SIDE_PX // _GRID
    grid = light.reshape(_GRID, cell, _GRID, cell).mean(axis=(1, 3)).ravel()
    grid = grid - grid.mean()
    return _plain(grid / max(float(numpy.linalg.norm(grid)), _LEAST_CONTRAST * _GRID))


def _edges(light: NDArray[float32]) -> NDArray[float32]:
    import numpy

    down, across = numpy.gradient(light)
    strength = numpy.hypot(down, across)
    # An edge has no side: light to dark counts as dark to light.
    angle = numpy.arctan2(down, across) % numpy.pi / numpy.pi * _DIRECTIONS
    first = numpy.floor(angle).astype(int) % _DIRECTIONS
    beyond = angle - numpy.floor(angle)
    half = _SIDE_PX // _QUARTERS
    counts = numpy.zeros((_QUARTERS, _QUARTERS, _DIRECTIONS))
    rows, columns = numpy.indices(light.shape) // half
    numpy.add.at(counts, (rows, columns, first), strength * (1 - beyond))
    numpy.add.at(counts, (rows, columns, (first + 1) % _DIRECTIONS), strength * beyond)
    least = _LEAST_CONTRAST * half * half / 8
    return _plain(counts.ravel() / max(float(numpy.linalg.norm(counts)), least))


def _plain(numbers: NDArray[Any]) -> NDArray[float32]:
    import numpy

    return numpy.asarray(numbers, dtype=numpy.float32)
