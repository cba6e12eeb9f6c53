"""The look of a style as a value: a few numbers and names in the style's data.

`agent.style_rendering` applies a look to a picture; only that module works with pixels.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from agent.messages import Value

Share = Annotated[float, Field(ge=0, le=1)]
Colour = Annotated[str, Field(pattern=r"^#[0-9a-f]{6}$")]


class Technique(StrEnum):
    """How the picture is drawn on its ground."""

    PHOTO = "photo"
    FLAT = "flat"
    BRUSH = "brush"
    SWIRL = "swirl"
    THICK = "thick"
    DOTS = "dots"
    HALFTONE = "halftone"
    PENCIL = "pencil"
    HATCHING = "hatching"
    INK = "ink"
    CARVED = "carved"
    CUT_OUT = "cut_out"
    PIXELS = "pixels"
    STUDS = "studs"
    TILES = "tiles"
    FACETS = "facets"
    GLASS = "glass"
    SCANLINES = "scanlines"
    STREAKS = "streaks"
    MODELLED = "modelled"
    PANELS = "panels"


class Ground(StrEnum):
    """The surface below the picture: its grain affects every tone."""

    NONE = "none"
    PAPER = "paper"
    ROUGH_PAPER = "rough_paper"
    CANVAS = "canvas"
    SILK = "silk"
    PLASTER = "plaster"
    WOOD = "wood"
    FELT = "felt"
    FILM = "film"
    PRINT = "print"
    GRID = "grid"


class Border(StrEnum):
    """The border of the picture."""

    NONE = "none"
    WHITE = "white"
    POLAROID = "polaroid"
    BARS = "bars"
    PAPER = "paper"
    PLATE = "plate"


class StyleLook(Value):
    """The look of a style in numbers, from 0 (no effect) to 1 unless stated otherwise.

    `palette` are colours from the darkest to the lightest. `mapped` is how far tones shift to the palette as a ramp,
    `tinted` how far each colour shifts to its nearest palette colour. `saturation`, `contrast` and `light` are factors
    around 1, `warmth` is -1 to 1. `cell` is the size of strokes, dots, tiles or pixels as a share of the shorter side.
    `levels` is the number of tone steps (0: unlimited). `lines` is the strength of drawn contours.
    """

    technique: Technique = Technique.PHOTO
    palette: Annotated[tuple[Colour, ...], Field(max_length=12)] = ()
    mapped: Share = 0.0
    tinted: Share = 0.0
    saturation: Annotated[float, Field(ge=0, le=3)] = 1.0
    contrast: Annotated[float, Field(ge=0.2, le=3)] = 1.0
    light: Annotated[float, Field(ge=0.3, le=2)] = 1.0
    warmth: Annotated[float, Field(ge=-1, le=1)] = 0.0
    smooth: Share = 0.0
    levels: Annotated[int, Field(ge=0, le=24)] = 0
    cell: Annotated[float, Field(gt=0, le=0.2)] = 0.015
    lines: Share = 0.0
    line_colour: Colour = "#1b1b1f"
    line_width: Share = 0.3
    ground: Ground = Ground.NONE
    ground_colour: Colour = "#ffffff"
    grain: Share = 0.0
    glow: Share = 0.0
    vignette: Share = 0.0
    haze: Share = 0.0
    blurred_ends: Share = 0.0
    border: Border = Border.NONE
