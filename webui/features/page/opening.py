"""Which conversation the page shows, and what of it: opened, as it is on record now, one picture, two compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from agent import NO_PICTURE, Conversation, RequestRefused, Value
from webui.features.page import Arg, page
from webui.features.viewer import canvas_html, compare_html, empty_canvas_html, pair, read_pair
from webui.screen import THREAD, Updates
from webui.shell.actions import Context
from webui.shell.patches import Reply
from webui.turns import Turns


class Over(Value):
    """A turn that is over, by its id, which is empty for one that never was on record; and the names of the requests
    that the page keeps until it hears what became of them."""

    turn: str = Field(max_length=64)
    kept: tuple[Annotated[str, Field(max_length=128)], ...] = Field(default=(), max_length=20)


@page.action
async def new(at: Context) -> Reply:
    """Begin a conversation."""
    return await open_(at, Arg())


@page.action
async def open_(at: Context, asked: Arg) -> Reply:
    """Open a conversation with its settings."""
    return at.reply(await opened(at, asked.arg))


async def opened(at: Context, conversation_id: str, *, has_chips: bool = True) -> Updates:
    """Return the screen with a conversation and its settings, or with a new one."""
    conversation = await at.screen.conversation(at.visitor, conversation_id)
    chips = await at.screen.chips_of(at.visitor, conversation) if has_chips else {}
    return {**await at.screen.opened(at.visitor, conversation), **chips}


@page.action
async def refresh(at: Context) -> Reply:
    """Show what came to the open conversation without this page."""
    conversation = await at.conversation()
    if conversation is None:
        return Reply()
    frame = await at.screen.frame(at.visitor, conversation)
    return at.reply({**frame, THREAD: at.screen.thread(at.visitor, conversation)})


@page.action
async def ended(at: Context, over: Over) -> Reply:
    """Show what has changed around a turn that is over."""
    return at.reply(await Turns(at).end(over.turn, over.kept))


@page.action
async def changed(at: Context, asked: Arg) -> Reply:
    """Show the thread and the bar above it after pictures of the conversation were deleted or came back; `arg` are
    those that are opened beside it.

    The stage is emptied when one that is gone stands there, and marks of such pictures are taken away.
    """
    screen, visitor, place, conversation = at.screen, at.visitor, at.place, await at.conversation()
    if conversation is None:
        return Reply()
    there = {picture.handle for picture in conversation.all_pictures}
    updates = {
        THREAD: screen.thread(visitor, conversation),
        "top": await screen.top(visitor, conversation),
        **screen.next_target(visitor, conversation),
    }
    if not there.issuperset(asked.arg.split()):
        updates["canvas"] = empty_canvas_html(at.words)
    if not {place.editing, *place.references} - {"", NO_PICTURE} <= there:
        kept = tuple(handle for handle in place.references if handle in there)
        editing = place.editing if place.editing in there else ""
        updates |= screen.context(at.view, editing, kept, place.given_roles)
    return at.reply(updates)


@page.action
async def view(at: Context, asked: Arg) -> Reply:
    """Open a picture."""
    return await _shown(at, lambda one: canvas_html(at.view, one, one.picture(asked.arg)))


@page.action
async def compare(at: Context, asked: Arg) -> Reply:
    """Compare two pictures, or one with what it is best compared with."""
    return await _shown(at, lambda one: compare_html(at.view, one, *pair(one, *read_pair(asked.arg))))


async def _shown(at: Context, html: Callable[[Conversation], str]) -> Reply:
    conversation = await at.conversation()
    if conversation is None:
        return Reply()
    try:
        return at.reply({"canvas": html(conversation)})
    except RequestRefused:
        return Reply()
