"""The vectors of the style library: asked of a model once, kept in the tables, and never mixed between models."""

from __future__ import annotations

import asyncio
import logging
import time
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar
from weakref import WeakKeyDictionary

from agent.errors import AivistaError, StorageFailure
from agent.storage.style_meaning import PLAIN_WISHES, MeaningScale, TextEmbedder, checked, cosines, naming_wishes
from agent.storage.vectors import AboutTable, EmbeddingModel, Shelf, StyleIndex, digest_of, text_of

T = TypeVar("T")
# Two keys of one model are two embedders: what the one cannot do, the other may.
_Key = tuple[int, tuple[str, ...]]

# How long a model is left alone after it failed: not every wish need wait for it.
_PAUSE_S = 60.0
_MOST_CANDIDATES = 12

_log = logging.getLogger(__name__)


class StyleVectors:
    """Similarity by meaning, with whatever model is given; tables are made anew when the model changes.

    The first of the shelves is the one by which a model's scale is measured. `thread` is where the index is used.
    """

    def __init__(self, index: StyleIndex, thread: Executor, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._thread = thread
        self._clock = clock
        self._building = asyncio.Lock()
        self._under_way: dict[_Key, asyncio.Task[None]] = {}
        self._paused_until_s: WeakKeyDictionary[TextEmbedder, float] = WeakKeyDictionary()

    async def similarities(
        self, shelves: Sequence[Shelf], wish: str, embedder: TextEmbedder, patience_s: float
    ) -> dict[str, float] | None:
        """Return the similarity of the closest styles by their ids, or None when the model cannot tell now.

        What takes longer than `patience_s` goes on without the caller, and is there for the next wish.
        Raises StorageFailure.
        """
        model = EmbeddingModel(id=embedder.model_id, dimension=embedder.dimension)
        if self._clock() < self._paused_until_s.get(embedder, float("-inf")):
            return None
        try:
            async with asyncio.timeout(patience_s):
                await asyncio.shield(self._preparation(tuple(shelves), embedder, model))
                vector = (await _embedded([wish], embedder, model))[0]
        except TimeoutError:
            _log.warning("the embedding model %s takes too long; styles are found by their names", model.id)
            return None
        except StorageFailure:
            raise
        except (AivistaError, ValueError) as error:
            self._paused_until_s[embedder] = self._clock() + _PAUSE_S
            _log.warning("the embedding model %s failed; styles are found by their names: %s", model.id, error)
            return None
        return await self._guarded(lambda: self._closest(shelves, vector, model))

    async def is_ready(self, shelf: Shelf, embedder: TextEmbedder) -> bool:
        """Whether the shelf's table holds this model's vectors. Raises StorageFailure."""
        model = EmbeddingModel(id=embedder.model_id, dimension=embedder.dimension)
        return await self._guarded(lambda: self._known_vectors(shelf, model)) is None

    async def prepare(self, shelf: Shelf, embedder: TextEmbedder) -> None:
        """Ask the model about the shelf by which its scale is measured, unless somebody is at it already.

        Raises AivistaError when the model or the disk fails, ValueError when the answer is no vectors.
        """
        if self._building.locked():
            return
        model = EmbeddingModel(id=embedder.model_id, dimension=embedder.dimension)
        await asyncio.shield(self._preparation((shelf,), embedder, model))

    async def aclose(self) -> None:
        """Stop what is still being prepared."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _preparation(
        self, shelves: tuple[Shelf, ...], embedder: TextEmbedder, model: EmbeddingModel
    ) -> asyncio.Task[None]:
        key = (id(embedder), tuple(shelf.content for shelf in shelves))
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._prepare(shelves, embedder, model))
            task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def _ended(self, key: _Key, task: asyncio.Task[None]) -> None:
        self._under_way.pop(key, None)
        # Whoever waited may have gone, and an error that nobody takes is printed at the end.
        if not task.cancelled():
            task.exception()

    async def _prepare(self, shelves: tuple[Shelf, ...], embedder: TextEmbedder, model: EmbeddingModel) -> None:
        async with self._building:
            for number, shelf in enumerate(shelves):
                await self._prepare_shelf(shelf, embedder, model, is_measure=number == 0)

    async def _prepare_shelf(
        self, shelf: Shelf, embedder: TextEmbedder, model: EmbeddingModel, *, is_measure: bool
    ) -> None:
        known = await self._guarded(lambda: self._known_vectors(shelf, model))
        if known is None:
            return
        texts = [text_of(style) for style in shelf.styles]
        missing = [text for text in texts if digest_of(text) not in known]
        for text, vector in zip(missing, await _embedded(missing, embedder, model), strict=True):
            known[digest_of(text)] = array("f", vector)
        vectors = [known[digest_of(text)] for text in texts]
        about = AboutTable(content=shelf.content, model=model)
        if is_measure:
            about = about.model_copy(update=await _measured(shelf, vectors, embedder, model))
        by_id = {style.id: vector for style, vector in zip(shelf.styles, vectors, strict=True)}
        await self._guarded(lambda: self._index.build(shelf, about, by_id))

    def _known_vectors(self, shelf: Shelf, model: EmbeddingModel) -> dict[str, array[float]] | None:
        """Return what the table already knows from this very model, or None when it is ready as it is."""
        about = self._index.about(shelf.name)
        if about is None or about.model != model:
            return {}
        return None if about.content == shelf.content else self._index.vectors(shelf.name)

    def _closest(
        self, shelves: Sequence[Shelf], vector: Sequence[float], model: EmbeddingModel
    ) -> dict[str, float] | None:
        scale, found = None, {}
        for number, shelf in enumerate(shelves):
            about = self._index.about(shelf.name)
            if about is None or about.model != model or about.content != shelf.content:
                return None
            if number == 0:
                scale = MeaningScale.measured(about.background, about.foreground)
            if scale is not None:
                closest = self._index.by_meaning(shelf.name, vector, _MOST_CANDIDATES)
                found.update({style_id: scale.similarity(cosine) for style_id, cosine in closest.items()})
        return found

    async def _guarded(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._index.guarded, work)


async def _embedded(texts: Sequence[str], embedder: TextEmbedder, model: EmbeddingModel) -> list[list[float]]:
    vectors = await embedder.embed(texts) if texts else []
    checked(vectors, len(texts), model)
    return vectors


async def _measured(
    shelf: Shelf, vectors: Sequence[Sequence[float]], embedder: TextEmbedder, model: EmbeddingModel
) -> dict[str, tuple[float, ...]]:
    """Return how close wishes without a style come to any, and wishes with one to theirs."""
    naming = naming_wishes(shelf.styles)
    asked = await _embedded([*PLAIN_WISHES, *(text for text, _ in naming)], embedder, model)
    rows = await asyncio.to_thread(cosines, asked, vectors)
    place = {style.id: number for number, style in enumerate(shelf.styles)}
    plain, named = rows[: len(PLAIN_WISHES)], rows[len(PLAIN_WISHES) :]
    return {
        "background": tuple(max(row) for row in plain),
        "foreground": tuple(row[place[style.id]] for row, (_, style) in zip(named, naming, strict=True)),
    }
