"""The built-in model, and what it reads in a sentence."""

from __future__ import annotations

from agent.providers.sketch import SketchProvider
from agent.providers.sketch.areas import read_area_intent
from agent.providers.sketch.effects import apply
from agent.providers.sketch.intent import AskBack, Draw, Edit, Reason, Talk, Topic, understand
from agent.providers.sketch.lettering import drawable, find_font, fit, wrap, write_into
from agent.providers.sketch.operations import AddText, Erase, Fill, Operation, PatternKind, Position, Recolour
from agent.providers.sketch.painter import compose, paint
from agent.providers.sketch.planning import image_call
from agent.providers.sketch.subjects import Retake, RetakeKind
from agent.providers.sketch.vocabulary import FIGURES, MOODS, PLACES, find, names
