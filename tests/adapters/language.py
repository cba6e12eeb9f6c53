"""What is understood in a sentence, without a turn."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from agent import Adjustment, AdjustmentChange, ChangeKind, CropBox, CropRatio, Flip, Question, Resize, TurnEvent
from agent.adjusting import describe, read_adjustment
from agent.imaging.arguments import GenerateImageArgs, ImageAction, ReferenceUse, parse_arguments
from agent.imaging.contract import ROLE_SENTENCES, final_prompt, without_facts, without_legend
from agent.imaging.intents import claims_a_picture
from agent.imaging.lettering import asked_lettering, reads_as, wants_lettering
from agent.pictures import Handle, allot_handle, handles_in, parse_handle, resolve
from agent.prompts import prompt
from agent.wording.requests import (
    UndoRequest,
    named_number,
    names_a_picture,
    read_expansion,
    read_undo,
    requested_search_in_words,
)
from agent.workflow.adjuster import adjustment_request
from agent.workflow.critic import read_review
from agent.workflow.planner import ASK_INSTEAD, MOST_PICTURES, pictures_listing
from agent.workflow.presenter import read_rewordings, reworded_by_rule
from agent.workflow.reception import asked_back as _asked_back
from agent.workflow.reception import question_before
from agent.workflow.searcher import parse_findings
from agent.workflow.state import TurnProgress


def asked_back(question: Question, subject: str) -> tuple[TurnProgress, list[TurnEvent]]:
    """Return what a turn that asks back keeps, and what it tells."""
    told: list[TurnEvent] = []
    runtime: Any = SimpleNamespace(context=SimpleNamespace(publish=told.append))
    return _asked_back(runtime, question, subject), told


def next_number(existing: Iterable[str]) -> str:
    """Return the handle for an upload or a fresh picture."""
    return allot_handle(existing, base=None)


def next_letter(base: str, existing: Iterable[str]) -> str:
    """Return the handle for a picture made by editing `base`."""
    return allot_handle(existing, base=base)
