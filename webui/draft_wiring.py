"""What was not sent yet comes back after a reload: chips and marked pictures here, the words by the page itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr
from pydantic import Field, ValidationError

from agent import NO_PICTURE, Conversation, Value
from webui.clicks import MAX_REFERENCES
from webui.panels.composer import Chosen
from webui.panels.flat import flat
from webui.roles import read_roles
from webui.screen import Screen, Updates
from webui.sessions import Visitor

_BUS = "window.aivistaDraft = { restore: data => trigger('click', data) };"
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}


class Draft(Value):
    """A draft as the page kept it; its words are not in it."""

    conversation: str = Field(default="", max_length=64)
    chips: Mapping[str, str | bool] = Field(default_factory=dict)
    editing: str = Field(default="", max_length=16)
    references: tuple[str, ...] = Field(default=(), max_length=MAX_REFERENCES)
    roles: str = Field(default="", max_length=2000)


def read_draft(data: object) -> Draft | None:
    """Return the draft, or None when the page kept something else."""
    try:
        return Draft.model_validate(data)
    except ValidationError:
        return None


def chosen_of(draft: Draft) -> Chosen | None:
    """Return what its chips say, None when that is nothing this page offers."""
    try:
        chosen = Chosen.model_validate(draft.chips)
        chosen.turn_settings()
    except ValueError:
        return None
    return chosen


def restored(screen: Screen, visitor: Visitor, draft: Draft, conversation: Conversation | None) -> Updates:
    """Return the chips and the marks of a draft, of pictures that are still there."""
    chosen = chosen_of(draft) if draft.chips else None
    updates = screen.chips(visitor, chosen) if chosen is not None else {}
    known = {picture.handle for picture in conversation.all_pictures} if conversation is not None else set()
    editing = draft.editing if draft.editing in {*known, NO_PICTURE} else ""
    references = tuple(one for one in dict.fromkeys(draft.references) if one in known and one != editing)
    if conversation is None or not (editing or references):
        return updates
    view, roles = screen.view(visitor, conversation.id), read_roles(draft.roles, references)
    return {**updates, **screen.context(view, editing, references, roles)}


def wire_drafts(screen: Screen) -> None:
    """Let the page give a draft back to the composer, and tell its scripts what the chips say."""
    composer, bus = screen.panels.composer, flat("draft-bus", js_on_load=_BUS)

    async def restore(request: gr.Request, event: gr.EventData, conversation: str) -> Updates:
        draft = read_draft(event._data)
        # What is open may be another conversation by now.
        if draft is None or draft.conversation != conversation:
            return {composer.context: gr.skip()}
        visitor = screen.sessions.visitor(request)
        found = await screen.conversation(visitor, conversation)
        return restored(screen, visitor, draft, found) or {composer.context: gr.skip()}

    marks = [composer.context, composer.editing, composer.references, composer.roles]
    outputs = [*composer.settings.values(), *composer.told, *marks]
    # By default what is asked while an answer is on its way is lost.
    often: dict[str, Any] = {"trigger_mode": "multiple", **_QUIET}
    bus.click(restore, None, outputs, inputs_kwargs={"conversation": composer.conversation}, **often)

    names = list(composer.settings)
    script = f"(...values) => {{ window.aivistaChips?.({names}.map((name, at) => [name, values[at]])); }}"
    chips = list(composer.chips.values())
    gr.on([chip.change for chip in chips], None, chips, None, js=script, **_QUIET)
