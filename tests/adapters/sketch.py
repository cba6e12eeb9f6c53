"""The built-in model, and what it reads in a sentence."""

from __future__ import annotations

from agent.providers.sketch import SketchProvider
from agent.providers.sketch.lettering import drawable, find_font, fit, wrap
from agent.providers.sketch.operations import AddText, Effect, EffectKind, Operation, Position, ResizeBy, ResizeTo
from agent.providers.sketch.pixels import MAX_SIDE_PIXELS, apply
from agent.providers.sketch.retakes import Retake, RetakeKind
from agent.providers.sketch.vocabulary import FIGURES, PLACES, find
from agent.providers.sketch.wishes import AskBack, Draw, Edit, Reason, Talk, Topic, understand

__all__ = [
    "FIGURES",
    "MAX_SIDE_PIXELS",
    "PLACES",
    "AddText",
    "AskBack",
    "Draw",
    "Edit",
    "Effect",
    "EffectKind",
    "Operation",
    "Position",
    "Reason",
    "ResizeBy",
    "ResizeTo",
    "Retake",
    "RetakeKind",
    "SketchProvider",
    "Talk",
    "Topic",
    "apply",
    "drawable",
    "find",
    "find_font",
    "fit",
    "understand",
    "wrap",
]
