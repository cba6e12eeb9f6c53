"""The reception: handles messages that need no model call.

It asks a question with one of the page's sentences, or carries out undo, redo and "back to #1", which change the edit
target at no cost. If the message asks for more than that, the rest of its text goes to the adjuster or the planner, and
applies to the new edit target.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from agent.adjusting import read_adjustment
from agent.conversation import Conversation, EditHistory, Turn
from agent.events import AskBack, Component, Question, TargetChanged, TargetNote
from agent.history_images import placeholder
from agent.imaging.intake import is_blank_text
from agent.imaging.lettering import wants_lettering
from agent.messages import ImageOrigin, PromptMessage, Role, TextPart
from agent.pictures import Picture
from agent.wording.requests import UndoRequest, points_at_a_part, read_expansion, read_undo, refers_to_a_mask
from agent.workflow.adjuster import adjustment_request, next_steps
from agent.workflow.deps import Deps, show
from agent.workflow.state import Next, TurnProgress

# Emoji made of a letter or a digit: keycaps and the information sign.
_LETTERED_EMOJI = re.compile("[0-9]\ufe0f?\u20e3|\u2139\ufe0f?")
_SAID: dict[Question, str] = {
    "empty": "[The studio asked back: what shall be painted?]",
    "which_part": "[The studio asked back: which part of which picture shall change?]",
    "unsure": "[The studio asked back: what exactly is wanted?]",
    "not_painted": "[The studio: no picture was made, because generate_image was not called.]",
    "no_mask": "[The studio asked back: no mask came with the message; which part shall change?]",
}
_WENT = {
    "undo": "The person went back one step",
    "redo": "The person went forward again",
    "back_to": "The person went back",
}


def route_start(deps: Deps) -> Literal["planner", "reception", "undo", "adjuster"]:
    """Return the first node: `reception` to ask a question, `undo` or `adjuster` without any model, else `planner`."""
    if _question(deps) is not None:
        return "reception"
    if _undo_request(deps.turn, deps.conversation) is not None:
        return "undo"
    return "planner" if adjustment_request(deps.turn, deps.conversation) is None else "adjuster"


async def reception(state: TurnProgress, deps: Deps) -> Next:
    """Ask the user for information that no model can know."""
    return Next("presenter", asked_back(deps, _question(deps) or "empty"))


def _question(deps: Deps) -> Question | None:
    return question_before(
        deps.turn.text,
        has_uploads=bool(deps.turn.uploads),
        editing=deps.turn.editing,
        references=deps.turn.references,
        has_area=deps.turn.has_area,
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
    """Return the question to ask before any model call, or None.

    A question is needed if the message is empty, only points at a part, or mentions a mask without one. `has_area` is
    true for a mask or an expansion. `pictures` are those of the conversation. Uploads and marked pictures make a
    question unnecessary, except for a missing mask: without it the whole picture would be painted over.
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


def compile_words() -> None:
    """Compile the text patterns that a first turn needs, which takes a third of a second."""
    for read in (read_undo, read_adjustment, read_expansion, refers_to_a_mask, wants_lettering):
        read("brighter")
    points_at_a_part("brighter", picture_count=1)


def asked_back(deps: Deps, question: Question, subject: str = "") -> TurnProgress:
    """Ask the user with one of the page's sentences, and return the update, which has an English note for the model."""
    message = PromptMessage(role=Role.MODEL, parts=(TextPart(text=_SAID[question]),))
    return {"components": [show(deps, AskBack(question=question, subject=subject))], "messages": [message]}


def _undo_request(turn: Turn, conversation: Conversation) -> UndoRequest | None:
    """Return the turn's request to go back or forward; None when it asks for anything else.

    `conversation` is the history before the turn. With an upload, a reference or a mask the text is about that picture,
    so it is no request to go back to another one.
    """
    if turn.has_area or turn.uploads or turn.references:
        return None
    request = read_undo(turn.text)
    # In a conversation without pictures, "go back" refers to the conversation.
    if request is None or (turn.editing and request.rest) or not conversation.all_pictures:
        return None
    history = conversation.edit_history
    # When nothing was undone, "redo it" means to generate the picture again.
    is_other = request.is_doubtful and history.redone().target == history.target
    return None if is_other else request


async def undo(state: TurnProgress, deps: Deps) -> Next:
    """Change the edit target, show it, and continue with the rest of the message."""
    request = _undo_request(deps.turn, deps.conversation)
    assert request is not None
    change = _target_change(request, deps.conversation, deps.turn.editing)
    components: list[Component] = [show(deps, TargetNote(change=change))]
    # If the named picture does not exist, the rest is not carried out: it would change the wrong picture.
    if request.rest and not change.missing:
        update: TurnProgress = {"components": components, "words": request.rest}
        is_exact = adjustment_request(deps.turn, deps.conversation, request.rest, change.handle) is not None
        return Next("adjuster" if is_exact else "planner", update)
    if change.has_moved:
        found = deps.conversation.adjusted_from(change.handle)
        components.append(next_steps(change.handle, found[1] if found else None))
        image = deps.conversation.picture(change.handle).image
        note = f"[{_WENT[change.move]}: {change.handle} is the picture to change now.] {placeholder(image)}"
    else:
        note = "[The person wanted to go back to another picture; there is none.]"
    # For the text model in later turns.
    message = PromptMessage(role=Role.MODEL, parts=(TextPart(text=note),))
    return Next("presenter", {"components": components, "messages": [message]})


def _target_change(request: UndoRequest, conversation: Conversation, selected: str | None) -> TargetChanged:
    """Return the change of the edit target. `selected` is the picture that the user marked to be changed, if any."""
    history = conversation.edit_history
    known = {picture.handle: picture for picture in conversation.all_pictures}
    before = history.target or ""
    if request.move == "back_to":
        handle, missing = _named(request, conversation, history)
        return TargetChanged(move="back_to", handle=handle or before, before=before, missing=missing)
    base = known[selected].parents[:1] if selected in known and request.move == "undo" else ()
    if base and base[0] in known:
        return TargetChanged(move="back_to", handle=base[0], before=before)
    moved = history.undone(request.steps) if request.move == "undo" else history.redone(request.steps)
    steps = abs(moved.position - history.position)
    return TargetChanged(move=request.move, handle=moved.target or "", before=before, steps=steps)


def _named(request: UndoRequest, conversation: Conversation, history: EditHistory) -> tuple[str, str]:
    """Return the handle of the requested picture, or an empty handle and the name that does not exist."""
    if request.handle:
        is_known = any(picture.handle == request.handle for picture in conversation.all_pictures)
        return (request.handle, "") if is_known else ("", request.handle)
    if request.place:
        found = _counted(conversation.pictures, request.place)
        return (found.handle, "") if found else ("", f"#{request.place}")
    return _original(conversation, history), ""


def _counted(pictures: tuple[Picture, ...], place: int) -> Picture | None:
    """Return picture number `place` of the newest turn with several pictures, else of all pictures, oldest first."""
    there = [picture for picture in pictures if not picture.is_set_aside]
    groups = [list(group) for _, group in groupby(there, key=lambda picture: picture.turn_id)]
    several = next((group for group in reversed(groups) if len(group) > 1), there)
    counted = several if place <= len(several) else there
    return counted[place - 1] if place <= len(counted) else None


def _original(conversation: Conversation, history: EditHistory) -> str:
    """Return the original from which the edit target was made; if it is an original itself, the newest upload."""
    known = {picture.handle: picture for picture in conversation.all_pictures}
    handle = history.target or ""
    seen: set[str] = set()
    while handle in known and handle not in seen:
        seen.add(handle)
        picture = known[handle]
        base = picture.parents[0] if picture.image.origin is ImageOrigin.EDITED and picture.parents else ""
        handle = base if base in known else handle
    if handle != history.target:
        return handle
    uploads = [one.handle for one in conversation.pictures if one.image.origin is ImageOrigin.UPLOADED]
    return uploads[-1] if uploads else handle
