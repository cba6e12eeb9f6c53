"""The reception: what is asked back at once, in the page's own words, before any model is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from langgraph.types import Command

from agent.events import AskBack, Question
from agent.imaging.intake import is_blank_text
from agent.imaging.intents import is_mask_note
from agent.imaging.part_wish import points_at_a_part, refers_to_a_mask
from agent.messages import PromptMessage, Role, TextPart
from agent.pictures import Picture
from agent.workflow.adjuster import adjustment_wish
from agent.workflow.deps import TurnRuntime, show
from agent.workflow.state import TurnProgress
from agent.workflow.undo import undo_wish

ASK_INSTEAD = (
    "Nothing was painted, because you were not sure what is wanted. Ask the person one short question about it, in "
    "their language, and call nothing."
)

# Emoji made of a letter or a digit: keycaps and the information sign.
_LETTERED_EMOJI = re.compile("[0-9]\ufe0f?\u20e3|\u2139\ufe0f?")
_SAID: dict[Question, str] = {
    "empty": "[The studio asked back: what shall be painted?]",
    "which_part": "[The studio asked back: which part of which picture shall change?]",
    "unsure": "[The studio asked back: what exactly is wanted?]",
    "not_painted": "[The studio: no picture was made, because generate_image was not called.]",
    "no_mask": "[The studio asked back: no mask came with the message; which part shall change?]",
}


def entrance(state: TurnProgress, runtime: TurnRuntime) -> Literal["planner", "reception", "undo", "adjuster"]:
    """Return where the turn enters: at the reception when something must be asked back before any model is called,
    at undo or the adjuster when no model is needed at all."""
    if _question(state, runtime) is not None:
        return "reception"
    deps = runtime.context
    if undo_wish(deps.turn, deps.conversation) is not None:
        return "undo"
    return "planner" if adjustment_wish(deps.turn, deps.conversation) is None else "adjuster"


async def reception(state: TurnProgress, runtime: TurnRuntime) -> Command[Literal["presenter"]]:
    """Ask back what no model can know."""
    question = _question(state, runtime) or "empty"
    return Command(goto="presenter", update=asked_back(runtime, question))


def _question(state: TurnProgress, runtime: TurnRuntime) -> Question | None:
    deps = runtime.context
    return question_before(
        deps.turn.text,
        has_uploads=bool(deps.turn.uploads),
        editing=deps.turn.editing,
        references=deps.turn.references,
        has_area=deps.turn.has_area or _has_mask(state["messages"][0]),
        pictures=deps.conversation.pictures,
    )


def question_before(
    text: str,
    *,
    has_uploads: bool,
    editing: str | None,
    references: Sequence[str],
    has_area: bool,
    pictures: Sequence[Picture],
) -> Question | None:
    """Return what must be asked before a model is called, or None: nothing was said, a part was only pointed at, or
    the words speak of a mask and none came. `has_area` is for a mask or an expansion.

    `pictures` are those of the conversation. Whatever was sent or marked besides the words answers the question, but
    only a mask stands for a mask: without it the whole picture would be painted over.
    """
    if has_area:
        return None
    if refers_to_a_mask(text):
        return "no_mask"
    if has_uploads or editing or references:
        return None
    if is_blank_text(_LETTERED_EMOJI.sub("", text)):
        return "empty"
    return "which_part" if points_at_a_part(text, picture_count=len(pictures)) else None


def asked_back(runtime: TurnRuntime, question: Question, subject: str = "") -> TurnProgress:
    """Ask the person in the page's words, and return the update, which tells the model in English."""
    said = PromptMessage(role=Role.MODEL, parts=(TextPart(text=_SAID[question]),))
    return {"components": [show(runtime, AskBack(question=question, subject=subject))], "messages": [said]}


def after_unsure(calls_so_far: int, said_something: bool) -> Literal["planner", "ask", "presenter"]:
    """Return where an unsure call leads: back to the planner with ASK_INSTEAD, to the page's own question, or out.

    `calls_so_far` counts the unsure calls of the turn before this one. `said_something` says that the planner asked
    in words beside its call (`agent.imaging.intents.holds_question`): the turn ends with those.
    """
    if said_something:
        return "presenter"
    return "ask" if calls_so_far else "planner"


def _has_mask(message: PromptMessage) -> bool:
    return any(isinstance(part, TextPart) and is_mask_note(part.text) for part in message.parts)
