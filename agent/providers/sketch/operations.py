"""The pixel operations that a sentence can ask for, as values. What a photo program adjusts is an `Adjustment`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from agent.adjusting import Adjustment
from agent.providers.sketch.palette import Colour
from agent.style_look import StyleLook


class PatternKind(StrEnum):
    """What an area can be filled with; stripes run aslant unless the words say how."""

    PLAIN = "plain"
    STRIPES = "stripes"
    ACROSS = "across"
    UPRIGHT = "upright"
    DOTS = "dots"
    CHECKS = "checks"


class Position(StrEnum):
    """Where added words stand."""

    TOP = "top"
    CENTER = "center"
    BOTTOM = "bottom"


@dataclass(frozen=True)
class AddText:
    """Words to write into the picture, white unless a colour is named; inside a mask they fill its middle."""

    text: str
    position: Position = Position.BOTTOM
    ink: Colour | None = None


@dataclass(frozen=True)
class Recolour:
    """Another colour for what a mask covers, its light and texture kept."""

    colour: Colour


@dataclass(frozen=True)
class Erase:
    """What a mask covers gone, its place filled from around it."""


@dataclass(frozen=True)
class Fill:
    """What a mask covers replaced by a pattern in `colour` on `ground`."""

    kind: PatternKind
    colour: Colour
    ground: Colour


@dataclass(frozen=True)
class Restyle:
    """The look of a style, drawn by rules over the whole picture; the style's names in both languages."""

    name: str
    chinese_name: str
    look: StyleLook


Operation: TypeAlias = Adjustment | AddText | Restyle | Recolour | Erase | Fill


def moves_pixels(operation: Operation) -> bool:
    """Whether the operation has no meaning inside of a mask."""
    return isinstance(operation, Adjustment) and operation.has_frame
