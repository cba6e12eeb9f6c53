"""The pixel operations that a sentence can ask for, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class ToneKind(StrEnum):
    """Changes of light, colour and sharpness; each has an amount."""

    BRIGHTER = "brighter"
    DARKER = "darker"
    WARMER = "warmer"
    COOLER = "cooler"
    MORE_CONTRAST = "more_contrast"
    LESS_CONTRAST = "less_contrast"
    MORE_SATURATION = "more_saturation"
    LESS_SATURATION = "less_saturation"
    GRAYSCALE = "grayscale"
    SEPIA = "sepia"
    INVERT = "invert"
    BLUR = "blur"
    SHARPEN = "sharpen"


class Axis(StrEnum):
    """Which way a mirror works: `horizontal` swaps left and right."""

    HORIZONTAL = "horizontal"
    VERTICAL = "vertical"


class Position(StrEnum):
    """Where added words stand."""

    TOP = "top"
    CENTER = "center"
    BOTTOM = "bottom"


NORMAL_AMOUNT = 0.25


@dataclass(frozen=True)
class Tone:
    """A change of light, colour or sharpness; `amount` is a share above 0 and at most 1."""

    kind: ToneKind
    amount: float = NORMAL_AMOUNT


@dataclass(frozen=True)
class Rotate:
    """A turn, in degrees clockwise, above 0 and below 360."""

    degrees: float


@dataclass(frozen=True)
class Flip:
    """A mirror image."""

    axis: Axis


@dataclass(frozen=True)
class Crop:
    """The largest middle part of the ratio width : height."""

    width: int
    height: int


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


Operation: TypeAlias = Tone | Rotate | Flip | Crop | ResizeTo | ResizeBy | AddText
