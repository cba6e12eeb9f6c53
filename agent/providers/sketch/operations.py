"""The pixel operations that a sentence can ask for, as values. What a photo program adjusts is an `Adjustment`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from agent.adjusting import PLAIN, Adjustment


class EffectKind(StrEnum):
    """Looks beyond an adjustment."""

    SEPIA = "sepia"
    INVERT = "invert"
    BLUR = "blur"


class Position(StrEnum):
    """Where added words stand."""

    TOP = "top"
    CENTER = "center"
    BOTTOM = "bottom"


@dataclass(frozen=True)
class Effect:
    """A look; `amount` is 1 to 100 and counts for a blur alone."""

    kind: EffectKind
    amount: int = PLAIN


@dataclass(frozen=True)
class ResizeTo:
    """Pixels to end with. With one side given the other follows; with both, what sticks out is cut off."""

    width: int | None
    height: int | None


@dataclass(frozen=True)
class ResizeBy:
    """A factor for both sides."""

    factor: float


@dataclass(frozen=True)
class AddText:
    """Words to write into the picture."""

    text: str
    position: Position = Position.BOTTOM


Operation: TypeAlias = Adjustment | Effect | ResizeTo | ResizeBy | AddText
