"""What is understood in a sentence, without a turn."""

from __future__ import annotations

from agent.adjusting import Adjustment, Change, ChangeKind, CropBox, CropRatio, Flip, describe, read_adjustment
from agent.expansion_words import read_expansion
from agent.handles import Handle, allot_handle, handles_in, next_letter, next_number, parse_handle, resolve
from agent.imaging.arguments import GenerateImageArgs, ImageAction, ReferenceUse, parse_arguments
from agent.imaging.final_prompt import ROLE_SENTENCES, compose, without_facts, without_legend
from agent.imaging.lettering import asked_lettering, reads_as, wants_lettering
from agent.imaging.numbers import named_number
from agent.imaging.picture_claims import claims_a_picture
from agent.imaging.search_wish import requested_search_in_words
from agent.imaging.undo_words import UndoWish, read_undo
from agent.workflow.hearing import hear

__all__ = [
    "ROLE_SENTENCES",
    "Adjustment",
    "Change",
    "ChangeKind",
    "CropBox",
    "CropRatio",
    "Flip",
    "GenerateImageArgs",
    "Handle",
    "ImageAction",
    "ReferenceUse",
    "UndoWish",
    "allot_handle",
    "asked_lettering",
    "claims_a_picture",
    "compose",
    "describe",
    "handles_in",
    "hear",
    "named_number",
    "next_letter",
    "next_number",
    "parse_arguments",
    "parse_handle",
    "read_adjustment",
    "read_expansion",
    "read_undo",
    "reads_as",
    "requested_search_in_words",
    "resolve",
    "wants_lettering",
    "without_facts",
    "without_legend",
]
