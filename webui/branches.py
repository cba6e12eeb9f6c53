"""What was said, said otherwise: a branch of its own beside the first, and the way from one to the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
from pydantic import Field, ValidationError

from agent import AivistaError, Conversation, ErrorCode, RequestRefused, Turn, TurnRequest, Value, check_request
from webui.live import LiveTurn, resumed
from webui.panels.flat import flat
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.streams import turn_of
from webui.tabs import Returned, Tab
from webui.turns import Turns

_BUS = "window.aivistaBranches = { turn: data => trigger('click', data) };"
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 64
# What a message may hold is judged by the studio; this only keeps nonsense out.
_LONGEST = 1 << 20


class BranchClick(Value):
    """A click under the person's words as the page sends it; anything else is ignored."""

    act: str
    turn: str = Field(max_length=64)
    text: str = Field(default="", max_length=_LONGEST)


def read_branch_click(data: object) -> BranchClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return BranchClick.model_validate(data)
    except ValidationError:
        return None


@dataclass(frozen=True)
class Branches:
    """Answers the clicks under the person's words."""

    screen: Screen

    async def answer(self, visitor: Visitor, tab: Tab, conversation_id: str, click: BranchClick) -> Updates:
        """Return what the click changes; what cannot be done is told in one sentence, and changes nothing."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            return {}
        try:
            if click.act == "say":
                return await self._say(visitor, tab, conversation, click)
            if click.act == "switch":
                return await self._switch(visitor, tab, conversation, click.turn)
        except AivistaError as error:
            gr.Warning(visitor.words.error(error.info))
        return {}

    async def _say(self, visitor: Visitor, tab: Tab, conversation: Conversation, click: BranchClick) -> Updates:
        """Send a turn's words said otherwise, with all else as it was, in its place."""
        studio = self.screen.studio()
        if studio.turns.is_running(conversation.id, visitor.owner):
            raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
        turn = turn_of(conversation, click.turn)
        if turn is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        if tab.is_echo(Returned(f"{turn.id} {click.text}"), time.monotonic()):
            return {}
        check_request(click.text, len(turn.uploads))
        said = await studio.turns.request_of(conversation.id, turn.id, visitor.owner)
        request = replace(said, text=click.text, instead_of=turn.id)
        live, before = _live(conversation, turn, request), _before(conversation, turn)
        return await Turns(self.screen).begin(visitor, tab, before, request, live=live)

    async def _switch(self, visitor: Visitor, tab: Tab, conversation: Conversation, turn_id: str) -> Updates:
        """Show another branch: the thread and the bar above it. What the composer works on stays."""
        switched = await self.screen.studio().conversations.switch_branch(conversation.id, turn_id, visitor.owner)
        tab.take_over()
        return {
            self.screen.panels.chat.thread: self.screen.thread(visitor, switched),
            **await self.screen.frame(visitor, switched),
        }


def wire_branches(screen: Screen, tab: gr.State) -> None:
    """Let the clicks under the person's words call their handlers."""
    branches, bus = Branches(screen), flat("branch-bus", js_on_load=_BUS)

    async def act(request: gr.Request, event: gr.EventData, tab: Tab, conversation: str) -> Updates:
        click = read_branch_click(event._data)
        if click is None:
            return screen.nothing()
        visitor = screen.sessions.visitor(request)
        return await branches.answer(visitor, tab, conversation, click) or screen.nothing()

    bus.click(
        act,
        None,
        screen.panels.outputs,
        inputs_kwargs={"tab": tab, "conversation": screen.panels.composer.conversation},
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )


def _before(conversation: Conversation, turn: Turn) -> Conversation:
    """Return the conversation up to where the turn began; its pictures stay, for those the new words name."""
    at = next(place for place, one in enumerate(conversation.turns) if one.id == turn.id)
    return conversation.model_copy(update={"turns": conversation.turns[:at]})


def _live(conversation: Conversation, turn: Turn, request: TurnRequest) -> LiveTurn:
    """Return the new turn before its first event, as the newest version of what was said."""
    was, versions = resumed(turn), conversation.forks.get(turn.id, (turn.id,))
    return LiveTurn(request.text, was.named, was.uploads, beside=(*versions, ""))
