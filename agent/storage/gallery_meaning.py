"""Pictures found by what their words mean: vectors are asked of a model when somebody searches, and kept by model."""

from __future__ import annotations

import asyncio
import itertools
import logging
import statistics
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from agent.errors import AivistaError
from agent.pictures import Picture
from agent.storage.gallery_rows import ItemRow, ids_of, rows_of
from agent.storage.gallery_similar import Reading, Tasks
from agent.storage.own_styles import owner_key
from agent.storage.rows import picture_of
from agent.storage.style_meaning import PLAIN_WISHES, TextEmbedder, checked, cosines
from agent.storage.vectors import AboutVectors, EmbeddingModel, VectorRow, VectorTables, digest_of, table_of_model

T = TypeVar("T")

_AT_ONCE = 32
_MOST_A_SEARCH = 256
_MOST_FOUND = 40
_LONGEST_TEXT = 2000
# How long a model is left alone after it failed: not every search need wait for it.
_PAUSE_S = 60.0

_MOST_KEPT = 64

_log = logging.getLogger(__name__)


class _Asked(NamedTuple):
    """Words put to a model."""

    model: EmbeddingModel
    words: str


class PictureMeaning:
    """Finds pictures by what is said of them, with whatever model is given; those of two models are kept apart.

    `thread` is where the tables are used. Nothing here fails a search: what goes wrong is in the log.
    """

    def __init__(
        self,
        tables: VectorTables,
        thread: Executor,
        reading: Reading,
        tasks: Tasks,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tables = tables
        self._thread = thread
        self._reading = reading
        self._tasks = tasks
        self._clock = clock
        self._paused_until_s: WeakKeyDictionary[TextEmbedder, float] = WeakKeyDictionary()
        # A search is made again for its next picture, or while pictures are being read: its words are paid for once.
        self._vectors: OrderedDict[_Asked, list[float]] = OrderedDict()
        # Uploads that nothing is said of.
        self._wordless: set[int] = set()

    async def closest(self, owner: str, words: str, embedder: TextEmbedder, patience_s: float) -> list[int]:
        """Return the ids of the owner's pictures that are about the same, the closest first; few, or none.

        What the model has not read yet is read in the background, some hundred pictures after each search.
        """
        if self._clock() < self._paused_until_s.get(embedder, float("-inf")):
            return []
        model = EmbeddingModel(id=embedder.model_id, dimension=embedder.dimension)
        try:
            await self._tasks.begin((model, owner), lambda: self._read_some(owner, embedder, model))
            async with asyncio.timeout(patience_s):
                return await self._closest(owner, words[:_LONGEST_TEXT], embedder, model)
        except TimeoutError:
            _log.warning("the embedding model %s takes too long; pictures are found by their words", model.id)
        except (AivistaError, ValueError) as error:
            self._pause(embedder, model, error)
        return []

    async def _closest(self, owner: str, words: str, embedder: TextEmbedder, model: EmbeddingModel) -> list[int]:
        name = table_of_model(model)
        about = await self._guarded(lambda: self._tables.about(name))
        if about is None:
            return []
        vector = await self._vector_of(_Asked(model, words), embedder)
        if vector is None:
            return []
        near = await self._guarded(lambda: self._tables.nearest(name, owner_key(owner), vector, _MOST_FOUND))
        close = [one for one in near if one.cosine > about.background]
        rows = await self._reading(lambda connection: rows_of(connection, owner, [one.id for one in close]))
        contents = {row.id: digest_of(_text_of(row)) for row in rows}
        stale = [one.id for one in close if one.id in contents and contents[one.id] != one.content]
        await self._guarded(lambda: self._tables.forget(name, stale))
        return [one.id for one in close if contents.get(one.id) == one.content]

    async def _vector_of(self, asked: _Asked, embedder: TextEmbedder) -> list[float] | None:
        """Return the vector of what is asked, None when the model failed; it comes also when nobody waits any more."""
        if asked not in self._vectors:
            await self._tasks.begin(asked, lambda: self._ask(asked, embedder), patience_s=None)
        return self._vectors.get(asked)

    async def _ask(self, asked: _Asked, embedder: TextEmbedder) -> None:
        try:
            self._vectors[asked] = (await _embedded([asked.words], embedder, asked.model))[0]
        except (AivistaError, ValueError) as error:
            self._pause(embedder, asked.model, error)
        while len(self._vectors) > _MOST_KEPT:
            self._vectors.popitem(last=False)

    async def _read_some(self, owner: str, embedder: TextEmbedder, model: EmbeddingModel) -> None:
        try:
            await self._read(owner, embedder, model)
        except (AivistaError, ValueError) as error:
            self._pause(embedder, model, error)

    async def _read(self, owner: str, embedder: TextEmbedder, model: EmbeddingModel) -> None:
        name = table_of_model(model)
        known = await self._guarded(lambda: self._tables.known(name).copy())
        ids = await self._reading(lambda connection: ids_of(connection, owner))
        missing = [one for one in ids if one not in known and one not in self._wordless][:_MOST_A_SEARCH]
        for start in range(0, len(missing), _AT_ONCE):
            await self._tasks.turn()
            await self._read_these(owner, missing[start : start + _AT_ONCE], embedder, model)

    async def _read_these(self, owner: str, ids: Sequence[int], embedder: TextEmbedder, model: EmbeddingModel) -> None:
        rows = await self._reading(lambda connection: rows_of(connection, owner, ids))
        texts = {row.id: text for row in rows if (text := _text_of(row))}
        self._wordless.update(row.id for row in rows if row.id not in texts)
        if not texts:
            return
        name = table_of_model(model)
        about = await self._guarded(lambda: self._tables.about(name)) or await _measured(embedder, model)
        vectors = await _embedded(list(texts.values()), embedder, model)
        added = [
            VectorRow(one, owner_key(owner), digest_of(text), vector)
            for (one, text), vector in zip(texts.items(), vectors, strict=True)
        ]
        await self._guarded(lambda: self._tables.add(name, about, added))

    def _pause(self, embedder: TextEmbedder, model: EmbeddingModel, error: Exception) -> None:
        self._paused_until_s[embedder] = self._clock() + _PAUSE_S
        _log.warning("pictures are found by their words, and not by meaning with %s: %s", model.id, error)

    async def _guarded(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._tables.guarded, work)


def _text_of(row: ItemRow) -> str:
    return meaning_text(picture_of(row), row.said)


def meaning_text(picture: Picture, said: str | None) -> str:
    """Return what is embedded of a picture: what was asked, what was painted, and what it shows."""
    receipt = picture.receipt
    parts = (receipt.user_text, receipt.prompt) if receipt else (said or "",)
    # By its beginning: at its end a prompt says how, and not what.
    return "\n".join(part.strip()[:_LONGEST_TEXT] for part in (*parts, picture.alt) if part.strip())


async def _embedded(texts: Sequence[str], embedder: TextEmbedder, model: EmbeddingModel) -> list[list[float]]:
    vectors = await embedder.embed(texts)
    checked(vectors, len(texts), model)
    return vectors


async def _measured(embedder: TextEmbedder, model: EmbeddingModel) -> AboutVectors:
    """Return the model's own idea of unlike: the cosine that nine of ten pairs of plain wishes do not reach.

    A few of the wishes say the same in two languages; they are the tenth.
    """
    vectors = await _embedded(PLAIN_WISHES, embedder, model)
    rows = await asyncio.to_thread(cosines, vectors, vectors)
    pairs = [rows[one][other] for one, other in itertools.combinations(range(len(rows)), 2)]
    return AboutVectors(dimension=model.dimension, model=model, background=statistics.quantiles(pairs, n=10)[-1])
