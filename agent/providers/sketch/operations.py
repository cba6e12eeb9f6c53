"""The pixel operations that a sentence can ask for, as values. A photo program's usual changes are an `Adjustment`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from agent.adjusting import Adjustment
from agent.providers.sketch.palette import Colour
from agent.style_look import StyleLook


class PatternKind(StrEnum):
    """The patterns for an area; stripes are diagonal unless the text gives a direction."""

    PLAIN = "plain"
    STRIPES = "stripes"
    ACROSS = "across"
    UPRIGHT = "upright"
    DOTS = "dots"
    CHECKS = "checks"


class Position(StrEnum):
    """The position of added text."""

    TOP = "top"
    CENTER = "center"
    BOTTOM = "bottom"


@dataclass(frozen=True)
class AddText:
    """Text to write into the picture, white unless a colour is named; inside a mask it fills the middle."""

    text: str
    position: Position = Position.BOTTOM
    ink: Colour | None = None


@dataclass(frozen=True)
class Recolour:
    """Give the masked area another colour; light and texture stay."""

    colour: Colour


@dataclass(frozen=True)
class Erase:
    """Remove the masked content and fill its place from the surroundings."""


@dataclass(frozen=True)
class Fill:
    """Replace the masked area by a pattern in `colour` on `ground`."""

    kind: PatternKind
    colour: Colour
    ground: Colour


@dataclass(frozen=True)
class Restyle:
    """The look of a style, rendered by rules over the whole picture; with the style's names in both languages."""

    name: str
    chinese_name: str
    look: StyleLook


Operation: TypeAlias = Adjustment | AddText | Restyle | Recolour | Erase | Fill


def moves_pixels(operation: Operation) -> bool:
    """Whether the operation is meaningless inside a mask."""
    return isinstance(operation, Adjustment) and operation.has_frame
