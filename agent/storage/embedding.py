"""Embed texts as vectors with a given embedding model, and compare vectors."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from agent.messages import Value

_PAUSE_S = 60.0
# Wishes that name no style: a model's similarities for them are chance.
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


class TextEmbedder(Protocol):
    """A model that turns texts into vectors, and has an id."""

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


class EmbeddingModel(Value):
    """The id of an embedding model and the length of its vectors: vectors of two models are not comparable."""

    id: str
    dimension: int

    @classmethod
    def of(cls, embedder: TextEmbedder) -> EmbeddingModel:
        """Return the id and dimension of this model."""
        return cls(id=embedder.model_id, dimension=embedder.dimension)


class ModelPauses:
    """The models that are not called, each for a minute after a failure: not every search should wait for it.

    Two keys of one model are two models here: one may succeed where the other fails.
    """

    def __init__(self) -> None:
        self._until_s: WeakKeyDictionary[TextEmbedder, float] = WeakKeyDictionary()

    def begin(self, embedder: TextEmbedder) -> None:
        """Pause a model that has just failed."""
        self._until_s[embedder] = time.monotonic() + _PAUSE_S

    def __contains__(self, embedder: TextEmbedder) -> bool:
        return time.monotonic() < self._until_s.get(embedder, float("-inf"))


async def embedded(texts: Sequence[str], embedder: TextEmbedder) -> list[list[float]]:
    """Return one vector for each text, in order. Without texts, the model is not called.

    Raises AivistaError when the model fails, ValueError unless it returns one vector for each text, of the right
    length, with finite numbers, not all of them zero.
    """
    vectors = await embedder.embed(texts) if texts else []
    if len(vectors) != len(texts):
        raise ValueError(f"{len(texts)} texts were embedded as {len(vectors)} vectors")
    for vector in vectors:
        if len(vector) != embedder.dimension or not all(map(math.isfinite, vector)) or not any(vector):
            raise ValueError(f"not a vector of {embedder.dimension} numbers")
    return vectors


def cosines(rows: Sequence[Sequence[float]], columns: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the cosine of each vector of the first with each of the second."""
    import numpy

    left, right = (numpy.asarray(vectors, dtype=numpy.float64) for vectors in (rows, columns))
    left /= numpy.linalg.norm(left, axis=1, keepdims=True)
    right /= numpy.linalg.norm(right, axis=1, keepdims=True)
    found: list[list[float]] = (left @ right.T).tolist()
    return found
