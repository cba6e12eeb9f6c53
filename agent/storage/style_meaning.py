"""What cosines mean: an embedding model's own measure brought onto the scale of the style library."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Protocol

from agent.library import Style
from agent.messages import Value
from agent.storage.vectors import EmbeddingModel

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
