"""The open conversation after some of its pictures were deleted, or came back: shown as it is on record now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent import NO_PICTURE, Conversation, ReferenceRole
from webui.features.viewer import empty_canvas_html
from webui.screen import Screen, Updates
from webui.sessions import Visitor


@dataclass(frozen=True)
class OnPage:
    """Which pictures the rest of the page holds, by handle: those on the stage, and what the composer works on."""

    opened: Sequence[str] = ()
    editing: str = ""
    references: tuple[str, ...] = ()
    roles: Mapping[str, ReferenceRole] = field(default_factory=dict)


def thread(screen: Screen, visitor: Visitor, conversation: Conversation) -> Updates:
    """Return the thread."""
    return {screen.panels.chat.thread: screen.thread(visitor, conversation)}


async def redrawn(screen: Screen, visitor: Visitor, conversation_id: str, on_page: OnPage) -> Updates:
    """Return the thread and the top bar; of the stage and the composer's line what must not stay as it is.

    The stage is emptied when a picture that is gone stands there, and marks of such pictures are taken away.
    """
    conversation = await screen.conversation(visitor, conversation_id)
    if conversation is None:
        return {}
    there = {picture.handle for picture in conversation.all_pictures}
    updates = {
        **thread(screen, visitor, conversation),
        screen.panels.chat.top: await screen.top(visitor, conversation),
        **screen.next_target(visitor, conversation),
    }
    if any(handle not in there for handle in on_page.opened):
        updates[screen.panels.canvas] = empty_canvas_html(visitor.words)
    marked = {on_page.editing, *on_page.references} - {"", NO_PICTURE}
    if not marked <= there:
        editing = on_page.editing if on_page.editing in there else ""
        references = tuple(handle for handle in on_page.references if handle in there)
        updates |= screen.context(screen.view(visitor, conversation_id), editing, references, on_page.roles)
    return updates
