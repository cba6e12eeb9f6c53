"""What a call of `generate_image` is for, and whether the planner was sure enough of it to paint."""

from __future__ import annotations

import re

from agent.imaging.arguments import GenerateImageArgs, ImageAction
from agent.pictures import Margins

UNSURE_AT = 0.5
"""A call as sure as this or less is not painted."""

_QUESTION = re.compile(r"[?？]|[吗呢](?=[\s。.!！…~～]*$)", re.MULTILINE)
_MASK_NOTE = re.compile(r"\[The person painted a mask over #\d{1,6}[a-z]{0,3}\.\]")


def action_of(arguments: GenerateImageArgs, *, has_mask: bool, is_edit: bool) -> ImageAction:
    """Return what is to be done.

    A mask makes it INPAINT, whatever the agent says, and so does an expansion, whose mask is the new part. Where the
    agent says nothing, it is a change when there is a picture to change (`is_edit`) and a new picture otherwise.
    """
    if has_mask:
        return ImageAction.INPAINT
    if arguments.action is None:
        return ImageAction.EDIT if is_edit else ImageAction.GENERATE
    return arguments.action


def is_unsure(arguments: GenerateImageArgs, *, has_mask: bool = False) -> bool:
    """Return whether the person must be asked first; a call that says nothing about it is taken as sure.

    With a mask what is to be done is known, whatever the agent calls it.
    """
    is_doubtful = arguments.confidence is not None and arguments.confidence <= UNSURE_AT
    return is_doubtful or (arguments.action is ImageAction.UNKNOWN and not has_mask)


def holds_question(text: str) -> bool:
    """Return whether the planner's words ask something: those before a call often only say what will be painted."""
    return _QUESTION.search(text) is not None


def mask_note(handle: str) -> str:
    """Return how the person's message tells the planner of the mask they painted over a picture."""
    return f"[The person painted a mask over {handle}.]"


def expansion_note(handle: str, width: int, height: int, margins: Margins) -> str:
    """Return how the person's message tells the planner how far a picture of this size shall grow on each side."""
    sides = (
        ("left", margins.left / width),
        ("right", margins.right / width),
        ("top", margins.top / height),
        ("bottom", margins.bottom / height),
    )
    told = ", ".join(f"{share:.0%} at the {side}" for side, share in sides if share)
    stays = "What it shows stays as it is; only the new part is painted."
    return f"[The person marked {handle} to be made larger beyond its edges: {told}. {stays}]"


def is_mask_note(text: str) -> bool:
    """Return whether a part of the person's message is the note of a mask."""
    return _MASK_NOTE.fullmatch(text) is not None
