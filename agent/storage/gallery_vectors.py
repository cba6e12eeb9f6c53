"""Find pictures by vectors: of their appearance, and of their texts for each embedding model.

Vectors are made when somebody searches, for the newest pictures first, and stored as rows. Each search reads and
compares all vectors of the owner: for 20,000 this took 40 to 130 ms, so no index is needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import statistics
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from cachetools import LRUCache
from sqlalchemy import Connection, delete, insert, literal, select

from agent.errors import AivistaError, RequestRefused, StorageFailure
from agent.storage.database import Database
from agent.storage.embedding import PLAIN_WISHES, ModelPauses, TextEmbedder, cosines, embedded
from agent.storage.gallery_rows import ItemRow, ids_without_vector, rows_of
from agent.storage.images import ImageStore
from agent.storage.rows import picture_of
from agent.storage.tables import PICTURE_VECTORS, PICTURES, VECTOR_KINDS

T = TypeVar("T")

# The cosine that most pairs of unrelated texts reach differs by model; for appearance it was measured once for all.
_LOOKS = "looks"
# Large enough for a page full of pictures, whose thumbnails are then already made.
_EDGE_PX = 256
# Measured on eight photographs: 0.83 and more for the same one with 30 % more or less light, or cropped by a tenth on
# each side; for two of different things the median is 0.43, and three pairs of 28 are above this threshold.
_ALIKE = 0.6
# A request that comes meanwhile waits for so many: each large picture takes a good part of a second.
_LOOKED_AT_ONCE = 8
_MOST_LOOKS_A_SEARCH = 512
_MOST_ALIKE = 400
_READ_AT_ONCE = 32
_MOST_READ_A_SEARCH = 256
_MOST_MEANT = 40
_LONGEST_TEXT = 2000
_MOST_KEPT = 64

_V, _P = PICTURE_VECTORS.c, PICTURES.c
_log = logging.getLogger(__name__)


class Tasks:
    """Background tasks by name, which make way for reading of the records.

    A failing task logs its failure and raises nothing for those who wait.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._under_way: dict[Hashable, asyncio.Task[bool]] = {}
        self._readers = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    async def begin(
        self, name: Hashable, work: Callable[[], Coroutine[Any, Any, None]], patience_s: float | None = 0.0
    ) -> bool:
        """Start the work unless it is running; return whether it ends within `patience_s` (None: no limit).

        It continues anyway, even when the caller is cancelled.
        """
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.create_task(_logging_failure(work()))
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        done, _ = await asyncio.wait({task}, timeout=patience_s)
        return any(one.result() for one in done if not one.cancelled())

    @contextmanager
    def standing_back(self) -> Iterator[None]:
        """Make running tasks wait at their next `turn`."""
        self._readers += 1
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._is_quiet.set()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run the work on a snapshot of the records and return its result; running tasks stand back meanwhile."""
        with self.standing_back():
            return await self._db.read(work)

    async def turn(self) -> None:
        """Return when nobody reads; the work must await this before each batch."""
        await self._is_quiet.wait()

    async def finish(self) -> None:
        """Wait for all running tasks."""
        while self._under_way:
            await asyncio.wait(set(self._under_way.values()))

    async def aclose(self) -> None:
        """Cancel all tasks."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _logging_failure(work: Coroutine[Any, Any, None]) -> bool:
    try:
        await work
    except (AivistaError, ValueError) as error:
        _log.warning("pictures are not read for searches now: %s", error)
        return False
    return True


class Near(NamedTuple):
    """A picture, the digest of what its vector was made from, and the cosine."""

    id: int
    content: bytes
    cosine: float


class PictureVectors:
    """The stored vectors by `kind`: vectors of two kinds are not comparable. Raises StorageFailure.

    `content` is the digest of what a vector was made from: with another content, the vector is outdated.
    """

    def __init__(self, db: Database, tasks: Tasks) -> None:
        self._db = db
        self._read = tasks.read

    async def missing(self, kind: str, owner: str) -> list[int]:
        """Return the ids of the owner's pictures that have no vector of this kind, the newest first."""
        return await self._read(lambda on: ids_without_vector(on, owner, kind))

    async def put(self, kind: str, vectors: Mapping[int, tuple[bytes, Sequence[float]]]) -> None:
        """Store vectors, each with its content, by picture id; a picture that is gone is ignored."""

        def put(on: Connection) -> None:
            for one, (content, vector) in vectors.items():
                values = select(_P.id, literal(kind), literal(content), literal(_packed(vector))).where(_P.id == one)
                columns = ("picture_id", "kind", "content", "vector")
                on.execute(insert(PICTURE_VECTORS).prefix_with("OR REPLACE").from_select(columns, values))

        if vectors:
            await self._db.write(put, is_spare=True)

    async def current(self, kind: str, near: Sequence[Near], contents: Mapping[int, bytes]) -> list[Near]:
        """Return those that match the pictures' current contents; delete outdated ones, which are made again later."""
        stale = [one.id for one in near if contents.get(one.id, one.content) != one.content]
        if stale:
            gone = delete(PICTURE_VECTORS).where(_V.kind == kind, _V.picture_id.in_(stale))
            await self._db.write(lambda on: on.execute(gone).close(), is_spare=True)
        return [one for one in near if contents.get(one.id) == one.content]

    async def of(self, kind: str, picture_id: int, content: bytes) -> list[float] | None:
        """Return the picture's vector made from this content, or None."""
        one = select(_V.vector).where(_V.picture_id == picture_id, _V.kind == kind, _V.content == content)
        found: bytes | None = await self._read(lambda on: on.scalar(one))
        return _unpacked(found) if found is not None else None

    async def nearest(self, kind: str, owner: str, vector: Sequence[float], least: float, limit: int) -> list[Near]:
        """Return the owner's pictures with the closest vectors, above a minimal cosine, the nearest first."""
        theirs = PICTURES.join(PICTURE_VECTORS, (_V.picture_id == _P.id) & (_V.kind == kind))
        found = select(_V.picture_id, _V.content, _V.vector).select_from(theirs)

        def nearest(on: Connection) -> list[Near]:
            import numpy

            rows = on.execute(found.where(_P.owner == owner, _P.deleted_at.is_(None))).all()
            if not rows:
                return []
            all_of_them = numpy.frombuffer(b"".join(row.vector for row in rows), numpy.float32).reshape(len(rows), -1)
            likeness = all_of_them @ numpy.frombuffer(_packed(vector), numpy.float32)
            order = [int(at) for at in numpy.argsort(-likeness, kind="stable")[:limit]]
            near = (Near(rows[at].picture_id, rows[at].content, float(likeness[at])) for at in order)
            return [one for one in near if one.cosine > least]

        return await self._read(nearest)

    async def background(self, kind: str) -> float | None:
        """Return the cosine that unrelated things reach, or None when it was never measured."""
        measured = select(VECTOR_KINDS.c.background).where(VECTOR_KINDS.c.kind == kind)
        found: float | None = await self._read(lambda on: on.scalar(measured))
        return found

    async def set_background(self, kind: str, background: float) -> None:
        """Store the cosine that unrelated things reach."""
        row = insert(VECTOR_KINDS).prefix_with("OR REPLACE").values(kind=kind, background=background)
        await self._db.write(lambda on: on.execute(row).close(), is_spare=True)


def _packed(vector: Sequence[float]) -> bytes:
    """Return the vector, normalised to length 1, with 4 bytes a number."""
    import numpy

    numbers = numpy.asarray(vector, numpy.float32)
    return (numbers / numpy.linalg.norm(numbers)).astype(numpy.float32).tobytes()


def _unpacked(packed: bytes) -> list[float]:
    import numpy

    numbers: list[float] = numpy.frombuffer(packed, numpy.float32).tolist()
    return numbers


class Alike(NamedTuple):
    """The ids of similar pictures with their similarity; and whether every picture has been analysed."""

    found: dict[int, float]
    is_whole: bool


class SimilarPictures:
    """Find pictures by appearance. Every call may raise StorageFailure."""

    def __init__(self, vectors: PictureVectors, images: ImageStore, tasks: Tasks) -> None:
        self._vectors = vectors
        self._images = images
        self._tasks = tasks
        # Pictures that cannot be read; tried again after a restart.
        self._unreadable: set[int] = set()
        # How many pictures of each owner are not analysed yet.
        self._left: dict[str, int] = {}
        self._failures: dict[str, StorageFailure] = {}

    async def like(self, owner: str, picture_id: int, digest: str, patience_s: float) -> Alike:
        """Return the owner's pictures that look like this one of theirs, the most similar first, without itself.

        Pictures not analysed within `patience_s` are included next time. A picture that cannot be read is similar to
        none.
        """
        with self._tasks.standing_back():
            # First this picture, which would otherwise wait behind all others.
            looks = await self._vectors.of(_LOOKS, picture_id, bytes.fromhex(digest)) or await self._looks_of(digest)
        if looks is None:
            return Alike({}, is_whole=True)
        is_done = await self._tasks.begin((_LOOKS, owner), lambda: self._look(owner), patience_s)
        if (failure := self._failures.pop(owner, None)) is not None:
            raise failure
        near = await self._vectors.nearest(_LOOKS, owner, looks, _ALIKE, _MOST_ALIKE)
        digests = await self._digests([one.id for one in near if one.id != picture_id])
        contents = {one: bytes.fromhex(name) for one, name in digests.items()}
        found = {one.id: min(1.0, one.cosine) for one in await self._vectors.current(_LOOKS, near, contents)}
        return Alike(found, is_whole=is_done and not self._left.get(owner))

    async def _look(self, owner: str) -> None:
        try:
            missing = [one for one in await self._vectors.missing(_LOOKS, owner) if one not in self._unreadable]
            self._left[owner] = max(0, len(missing) - _MOST_LOOKS_A_SEARCH)
            for start in range(0, min(len(missing), _MOST_LOOKS_A_SEARCH), _LOOKED_AT_ONCE):
                await self._tasks.turn()
                await self._look_at(missing[start : start + _LOOKED_AT_ONCE])
        except StorageFailure as failure:
            # Unlike a text search, this one has no words to fall back on.
            self._failures[owner] = failure
            raise

    async def _look_at(self, ids: Sequence[int]) -> None:
        digests = await self._digests(ids)
        looks = dict(zip(digests, await asyncio.gather(*map(self._looks_of, digests.values())), strict=True))
        self._unreadable.update(one for one, vector in looks.items() if vector is None)
        made = {one: (bytes.fromhex(digests[one]), vector) for one, vector in looks.items() if vector is not None}
        await self._vectors.put(_LOOKS, made)

    async def _digests(self, ids: Sequence[int]) -> dict[int, str]:
        there = select(_P.id, _P.digest).where(_P.id.in_(ids), _P.deleted_at.is_(None))
        return await self._tasks.read(lambda on: {row.id: row.digest for row in on.execute(there)})

    async def _looks_of(self, digest: str) -> list[float] | None:
        try:
            thumbnail = await self._images.thumbnail(digest, _EDGE_PX)
        except RequestRefused:
            return None
        return await asyncio.to_thread(_looks_at, thumbnail)


def _looks_at(thumbnail: bytes) -> list[float] | None:
    # Pixel libraries take a while to load: the event loop must not wait for them.
    from agent.storage.appearance import appearance_vector

    return appearance_vector(thumbnail)


class PictureMeaning:
    """Find pictures by the meaning of their texts, with a given model; vectors of two models are kept apart.

    A failure here never fails a search: it is logged.
    """

    def __init__(self, vectors: PictureVectors, tasks: Tasks) -> None:
        self._vectors = vectors
        self._tasks = tasks
        self._pauses = ModelPauses()
        # A search is repeated for its next page, or while pictures are being read: its words are paid for only once.
        # By the model's kind of vectors, and the words.
        self._asked: LRUCache[tuple[str, str], list[float]] = LRUCache(_MOST_KEPT)
        # Uploads without any text.
        self._wordless: set[int] = set()

    async def closest(self, owner: str, words: str, embedder: TextEmbedder, patience_s: float) -> list[int]:
        """Return the ids of the owner's pictures about the same subject, the closest first; few, or none.

        Pictures without a vector are read in the background, some hundred after each search.
        """
        if embedder in self._pauses:
            return []
        try:
            await self._tasks.begin((_kind_of(embedder), owner), lambda: self._read_some(owner, embedder))
            async with asyncio.timeout(patience_s):
                return await self._closest(owner, words[:_LONGEST_TEXT], embedder)
        except TimeoutError:
            _log.warning("the embedding model %s takes too long; pictures are found by their words", embedder.model_id)
        except (AivistaError, ValueError) as error:
            self._pause(embedder, error)
        return []

    async def _closest(self, owner: str, words: str, embedder: TextEmbedder) -> list[int]:
        kind = _kind_of(embedder)
        background = await self._vectors.background(kind)
        vector = await self._vector_of(words, embedder) if background is not None else None
        if vector is None or background is None:
            return []
        near = await self._vectors.nearest(kind, owner, vector, background, _MOST_MEANT)
        rows = await self._tasks.read(lambda on: rows_of(on, owner, [one.id for one in near]))
        contents = {row.id: _digest_of(_text_of(row)) for row in rows}
        return [one.id for one in await self._vectors.current(kind, near, contents)]

    async def _vector_of(self, words: str, embedder: TextEmbedder) -> list[float] | None:
        """Return the vector of the text, or None when the model failed; computed even if the caller stops waiting."""
        asked = _kind_of(embedder), words

        async def ask() -> None:
            try:
                [self._asked[asked]] = await embedded([words], embedder)
            except (AivistaError, ValueError) as error:
                self._pause(embedder, error)

        if asked not in self._asked:
            # An owner may be called like the words: the task that reads their pictures has their name.
            await self._tasks.begin(("asked", *asked), ask, patience_s=None)
        return self._asked.get(asked)

    async def _read_some(self, owner: str, embedder: TextEmbedder) -> None:
        kind = _kind_of(embedder)
        try:
            missing = [one for one in await self._vectors.missing(kind, owner) if one not in self._wordless]
            missing = missing[:_MOST_READ_A_SEARCH]
            for start in range(0, len(missing), _READ_AT_ONCE):
                await self._tasks.turn()
                await self._read_these(owner, missing[start : start + _READ_AT_ONCE], embedder, kind)
        except (AivistaError, ValueError) as error:
            self._pause(embedder, error)

    async def _read_these(self, owner: str, ids: Sequence[int], embedder: TextEmbedder, kind: str) -> None:
        rows = await self._tasks.read(lambda on: rows_of(on, owner, ids))
        texts = {row.id: text for row in rows if (text := _text_of(row))}
        self._wordless.update(row.id for row in rows if row.id not in texts)
        if not texts:
            return
        if await self._vectors.background(kind) is None:
            await self._vectors.set_background(kind, await _measured(embedder))
        vectors = await embedded(list(texts.values()), embedder)
        made = zip(texts.items(), vectors, strict=True)
        await self._vectors.put(kind, {one: (_digest_of(text), vector) for (one, text), vector in made})

    def _pause(self, embedder: TextEmbedder, error: Exception) -> None:
        self._pauses.begin(embedder)
        _log.warning("pictures are found by their words, and not by meaning with %s: %s", embedder.model_id, error)


def _kind_of(embedder: TextEmbedder) -> str:
    """Return the kind that only this model's vectors have."""
    return f"{embedder.dimension}:{embedder.model_id}"


def _digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _text_of(row: ItemRow) -> str:
    """Return the text that is embedded for a picture: the request, the prompt, and the description of its content."""
    picture = picture_of(row)
    receipt = picture.receipt
    parts = (receipt.user_text, receipt.prompt) if receipt else (row.said or "",)
    # Only the beginnings: the end of a prompt describes the style, not the subject.
    return "\n".join(part.strip()[:_LONGEST_TEXT] for part in (*parts, picture.alt) if part.strip())


async def _measured(embedder: TextEmbedder) -> float:
    """Return the model's cosine of unrelated texts: nine of ten pairs of plain wishes stay below it.

    A few of the wishes say the same in two languages; they are the tenth.
    """
    vectors = await embedded(PLAIN_WISHES, embedder)
    rows = await asyncio.to_thread(cosines, vectors, vectors)
    pairs = [rows[one][other] for one, other in itertools.combinations(range(len(rows)), 2)]
    return statistics.quantiles(pairs, n=10)[-1]
