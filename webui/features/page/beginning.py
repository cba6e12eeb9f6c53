"""How a turn begins without Send: examples, retries, plans, what stands under a picture, words said otherwise."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pydantic import Field

from agent import Conversation, ErrorCode, RequestRefused, Turn, TurnRequest, Value, check_request
from webui.features.page import Arg, page
from webui.features.page.opening import opened
from webui.features.styles.finding import title_of
from webui.features.thread.chat import wish_of
from webui.features.thread.live import LiveTurn, resumed
from webui.features.viewer.actions import PAINTING, amounts_sentence, pressed_sentence, read_amounts, read_press
from webui.sample_picture import NAME as SAMPLE_NAME
from webui.sample_picture import sample_picture
from webui.screen import THREAD
from webui.shell.actions import Context
from webui.shell.patches import Reply
from webui.turns import Turns


@page.action
async def try_wish(at: Context, asked: Arg) -> Reply:
    """Run an example of the first page where that is free; elsewhere it only fills the composer."""
    wish = wish_of(at.words, asked.arg)
    if wish is None:
        return Reply()
    if not at.screen.is_sketch(at.visitor):
        return at.reply(at.screen.wording(wish.text))
    images = [(SAMPLE_NAME, await asyncio.to_thread(sample_picture))] if wish.needs_picture else []
    return at.reply(await Turns(at).say(wish.text, images=images))


@page.action
async def try_style(at: Context, asked: Arg) -> Reply:
    """Repaint in a style the picture that is marked to be changed, else the newest of the conversation."""
    style = await at.screen.studio().styles.get(asked.arg, at.visitor.owner)
    conversation = await at.conversation()
    handles = [picture.handle for picture in conversation.pictures] if conversation else []
    if not handles:
        return Reply()
    handle = at.place.editing if at.place.editing in handles else handles[-1]
    return at.reply(await Turns(at).say(at.words("styles.try_said", title=title_of(at.words, style)), handle))


@page.action
async def panel(at: Context, asked: Arg) -> Reply:
    """Do what a button under a picture says."""
    press = read_press(asked.arg)
    if press is None:
        return Reply()
    if press.action not in PAINTING:
        return at.reply(await Turns(at).say(pressed_sentence(at.words, press), press.handle))
    return at.reply(await Turns(at).paint_again(press))


@page.action
async def panel_apply(at: Context, asked: Arg) -> Reply:
    """Change a picture by what its sliders say."""
    amounts = read_amounts(asked.arg)
    if amounts is None:
        return Reply()
    return at.reply(await Turns(at).say(amounts_sentence(at.words, amounts), amounts.handle))


@page.action
async def paint_now(at: Context) -> Reply:
    """Have the agent paint instead of asking on."""
    return at.reply(await Turns(at).say(at.words("question.paint_now_said")))


@page.action
async def retry(at: Context, turn: Arg) -> Reply:
    """Let a turn that failed or was cut off go on."""
    return at.reply(await Turns(at).retry(turn.arg))


@page.action
async def run_plan(at: Context, asked: Arg) -> Reply:
    """Run a plan, with what was changed in it."""
    return at.reply(await Turns(at).run_plan(asked.arg))


@page.action
async def drop_plan(at: Context, turn: Arg) -> Reply:
    """Drop a plan."""
    return at.reply(await Turns(at).decide(turn.arg, is_allowed=False))


@page.action
async def allow_calls(at: Context, turn: Arg) -> Reply:
    """Let calls run that wait for the person."""
    return at.reply(await Turns(at).decide(turn.arg, is_allowed=True))


@page.action
async def refuse_calls(at: Context, turn: Arg) -> Reply:
    """Have the agent go on without the calls that wait."""
    return at.reply(await Turns(at).decide(turn.arg, is_allowed=False))


@page.action
async def grow_mask(at: Context, picture: Arg) -> Reply:
    """Let an edit reach further."""
    await at.screen.studio().edits.grow_mask(at.place.conversation, picture.arg, at.visitor.owner)
    return await _edited(at)


@page.action
async def keep_only(at: Context, picture: Arg) -> Reply:
    """Keep of an edit what lies in the marked part alone."""
    await at.screen.studio().edits.keep_only(at.place.conversation, picture.arg, at.visitor.owner)
    return await _edited(at)


@page.action
async def keep_transparency(at: Context, picture: Arg) -> Reply:
    """Give an edit the transparency of what it was made from."""
    await at.screen.studio().edits.keep_transparency(at.place.conversation, picture.arg, at.visitor.owner)
    return await _edited(at)


@page.action
async def keep_edit(at: Context, picture: Arg) -> Reply:
    """Keep an edit as it is."""
    await at.screen.studio().edits.keep(at.place.conversation, picture.arg, True, at.visitor.owner)
    return await _edited(at)


@page.action
async def discard_edit(at: Context, picture: Arg) -> Reply:
    """Go back to what stood before an edit."""
    await at.screen.studio().edits.keep(at.place.conversation, picture.arg, False, at.visitor.owner)
    return await _edited(at)


async def _edited(at: Context) -> Reply:
    return at.reply(await opened(at, at.place.conversation, has_chips=False))


class Otherwise(Value):
    """A turn, and other words for it. What a message may hold is judged by the studio."""

    turn: str = Field(max_length=64)
    text: str = Field(max_length=1 << 20)


@page.action
async def say_otherwise(at: Context, asked: Otherwise) -> Reply:
    """Send a turn's words said otherwise, with all else as it was, in its place: a branch of its own."""
    studio, conversation, owner = at.screen.studio(), await at.conversation(), at.visitor.owner
    if conversation is None:
        return Reply()
    if studio.turns.is_running(conversation.id, owner):
        raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
    turn = conversation.turn(asked.turn)
    if turn is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    check_request(asked.text, len(turn.uploads))
    said = await studio.turns.request_of(conversation.id, turn.id, owner)
    request = replace(said, text=asked.text, instead_of=turn.id)
    live, before = _live(conversation, turn, request), _before(conversation, turn)
    return at.reply(await Turns(at).begin(before, request, live))


@page.action
async def switch(at: Context, turn: Arg) -> Reply:
    """Show another branch: the thread and the bar above it. What the composer works on stays."""
    conversation = await at.conversation()
    if conversation is None:
        return Reply()
    conversations = at.screen.studio().conversations
    switched = await conversations.switch_branch(conversation.id, turn.arg, at.visitor.owner)
    thread = at.screen.thread(at.visitor, switched)
    return at.reply({THREAD: thread, **await at.screen.frame(at.visitor, switched)})


def _before(conversation: Conversation, turn: Turn) -> Conversation:
    """Return the conversation up to where the turn began; its pictures stay, for those the new words name."""
    at = next(place for place, one in enumerate(conversation.turns) if one.id == turn.id)
    return conversation.model_copy(update={"turns": conversation.turns[:at]})


def _live(conversation: Conversation, turn: Turn, request: TurnRequest) -> LiveTurn:
    """Return the new turn before its first event, as the newest version of what was said."""
    was, versions = resumed(turn), conversation.forks.get(turn.id, (turn.id,))
    return LiveTurn(request.text, was.named, was.uploads, beside=(*versions, ""))
