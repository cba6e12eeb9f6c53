"""What cosines mean: an embedding model's own measure brought onto the scale of the style library."""

from __future__ import annotations

import asyncio
import logging
import math
import statistics
import time
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

from agent.errors import AivistaError, StorageFailure
from agent.library import Style
from agent.messages import Value
from agent.storage.vectors import AboutTable, EmbeddingModel, Shelf, StyleIndex, digest_of, text_of

FLOOR = 0.6
_SUREST = 0.95

# Wishes that name no style: what a model thinks of them is chance.
PLAIN_WISHES = (
    "a red car",
    "a cat on a sofa",
    "two friends walking along a beach",
    "make the sky brighter",
    "a bowl of fruit on a table",
    "an old house by a lake",
    "a birthday card for my mother",
    "a dog running through the snow",
    "画一只猫",
    "一辆红色的汽车",
    "把背景换成海边",
    "公园里的一家人",
    "桌上的一杯咖啡",
    "山脚下的小木屋",
    "生日贺卡，写上祝福",
    "雪地里奔跑的狗",
)
_NAMING_WISHES = ("a fox in the style of {en}", "{zh}风格的一座小城")
_EVERY = 4


class TextEmbedder(Protocol):
    """A model that turns texts into vectors, and says which it is."""

    @property
    def model_id(self) -> str:
        """The model's id."""
        ...

    @property
    def dimension(self) -> int:
        """The length of its vectors."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order."""
        ...


class MeaningScale(Value):
    """Where a model's cosines begin to mean something.

    Every model has its own idea of "alike": with one, 0.7 is chance, with another it is certainty. So the library
    measures it: 0.6 on its scale is a little above what any wish without a style reaches with any style, 0.95
    what the clearest quarter of wishes that name a style reach with that style.
    """

    usual: float
    chance: float
    sure: float

    @classmethod
    def measured(cls, background: Sequence[float], foreground: Sequence[float]) -> MeaningScale | None:
        """Return the scale, or None for a model that cannot tell a named style from none.

        `background` are the highest cosines of wishes without a style, `foreground` those of wishes with theirs.
        """
        if not background or len(foreground) < 2:
            return None
        clearest = statistics.quantiles(foreground, n=4, method="inclusive")[2]
        usual, highest = statistics.median(background), max(background)
        # The few wishes asked are not the unluckiest there are.
        scale = cls(usual=usual, chance=highest + (highest - usual) / 2, sure=clearest)
        return scale if scale.sure > scale.chance else None

    def similarity(self, cosine: float) -> float:
        """Return the similarity, from 0 to 0.95: only saying its name is surer."""
        if cosine > self.chance:
            part = (cosine - self.chance) / (self.sure - self.chance)
            return min(_SUREST, FLOOR + (_SUREST - FLOOR) * part)
        # At the level of chance itself nothing is found.
        low = max(0.0, 2 * self.usual - self.chance)
        return max(0.0, (FLOOR - 0.01) * (cosine - low) / max(self.chance - low, 1e-9))


def naming_wishes(styles: Sequence[Style]) -> list[tuple[str, Style]]:
    """Return wishes that name one of the styles, with the style: enough of them to measure a scale by."""
    return [
        (template.format(en=style.name.en, zh=style.name.zh), style)
        for style in styles[::_EVERY]
        for template in _NAMING_WISHES
    ]


def cosines(rows: Sequence[Sequence[float]], columns: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return how far each vector of the first points the way of each of the second."""
    import numpy

    left, right = (numpy.asarray(vectors, dtype=numpy.float64) for vectors in (rows, columns))
    left /= numpy.linalg.norm(left, axis=1, keepdims=True)
    right /= numpy.linalg.norm(right, axis=1, keepdims=True)
    found: list[list[float]] = (left @ right.T).tolist()
    return found


def checked(vectors: Sequence[Sequence[float]], count: int, model: EmbeddingModel) -> None:
    """Raise ValueError unless these are as many vectors as asked, of the model's length, and all of them numbers."""
    if len(vectors) != count:
        raise ValueError(f"{count} texts were embedded as {len(vectors)} vectors")
    for vector in vectors:
        if len(vector) != model.dimension or not all(map(math.isfinite, vector)) or not any(vector):
            raise ValueError(f"not a vector of {model.dimension} numbers")


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
