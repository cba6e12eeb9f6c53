"""What a turn changes on the page at its begin and at its end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import gradio as gr

from agent import (
    AivistaError,
    Conversation,
    ModelRole,
    RequestRefused,
    Step,
    ThoughtLog,
    Turn,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnState,
    TurnStopped,
)
from webui import notices
from webui.cards import View
from webui.live import Ending, LiveTurn, advance_all
from webui.panels.conversations import stamp_html
from webui.render import Block, render_live
from webui.screen import THREAD, Screen, Updates
from webui.sessions import Visitor
from webui.tabs import Returned, Tab, Underway


@dataclass(frozen=True)
class TurnEnds:
    """Both ends of a turn that a tab of the page shows. In between the thread follows it by its own stream
    (`webui.features.thread`)."""

    screen: Screen

    async def begin(
        self,
        visitor: Visitor,
        tab: Tab,
        conversation: Conversation,
        live: LiveTurn,
        start: Callable[[], Awaitable[Underway]],
        sent: Returned | None = None,
    ) -> Updates:
        """Start a turn and return what the page shows of it at first: `live`, after the conversation as it was.

        `sent` is what the composer held when the turn came from there: it goes back when nothing begins.
        """
        turns, owner = self.screen.studio().turns, visitor.owner
        ahead = 0 if live.turn_id else turns.count(conversation.id, owner)
        tab.take_over()
        try:
            tab.begins(await start(), sent)
        except AivistaError as error:
            live = replace(live, ending=TurnFailed(error=error.info))
            return await self._ended(visitor, tab, conversation.id, live, sent, is_answer=True)
        if ahead:
            live = replace(live, step=ThoughtLog(step=Step.WAITING, parameters={"count": ahead}))
        tab.returned = None
        return await self._begun(visitor, conversation, live, sent)

    async def end(self, visitor: Visitor, tab: Tab, conversation_id: str, turn_id: str) -> Updates:
        """Return what the page shows once a turn is over, whoever began it; `turn_id` is empty for one that never was
        on record. What was sent for nothing is in `tab.returned` then."""
        studio, owner = self.screen.studio(), visitor.owner
        turn, sent = tab.ended(turn_id)
        if turn is None:
            # One that failed before it was on record may have been over before its stream began.
            turn, sent = tab.ended("")
        if turn is not None:
            turn_id, events = turn.turn_id or "", turn.events[turn.before :]
        elif turn_id:
            told = studio.turns.find(conversation_id, turn_id, owner)
            try:
                events = told.events if told else await studio.turns.on_record(conversation_id, turn_id, owner)
            except RequestRefused:
                return await self._as_it_is(visitor, conversation_id)
        else:
            return await self._as_it_is(visitor, conversation_id)
        live = advance_all(LiveTurn("", turn_id=turn_id), events)
        return await self._ended(visitor, tab, conversation_id, live, sent)

    async def _as_it_is(self, visitor: Visitor, conversation_id: str) -> Updates:
        conversation = await self.screen.conversation(visitor, conversation_id)
        return {THREAD: self.screen.thread(visitor, conversation)}

    async def _begun(
        self, visitor: Visitor, conversation: Conversation, live: LiveTurn, sent: Returned | None
    ) -> Updates:
        return {
            THREAD: self.screen.thread(visitor, conversation, live=live, is_answer=True),
            "welcome": "",
            # One that has a title is shown already, with all that its branches cost.
            **({} if conversation.title else {"top": await self.screen.top(visitor, conversation)}),
            # The page has emptied the words itself; a file that was added meanwhile would go with those that were sent.
            **({self.screen.composer.message: gr.update(value=None)} if sent and sent.files else {}),
        }

    async def _ended(
        self,
        visitor: Visitor,
        tab: Tab,
        conversation_id: str,
        live: LiveTurn,
        sent: Returned | None,
        *,
        is_answer: bool = False,
    ) -> Updates:
        conversation = await self.screen.conversation(visitor, conversation_id)
        view = self.screen.view(visitor, conversation_id)
        # A turn that was stopped while it still waited is nowhere on record: its words go back, too.
        has_failed = isinstance(live.ending, TurnFailed) or not live.is_on_record
        ending = live.ending
        has_changed_nothing = isinstance(ending, TurnDone) and not live.pictures and not live.has_gone_back
        unused = sent.unused if sent is not None and has_changed_nothing else None
        tab.returned = sent if has_failed else unused
        learnt = self.screen.unlearn(visitor, self._answered(conversation, live))
        if isinstance(ending, TurnFailed):
            learnt |= self.screen.learn(visitor, ending.error, ending.node)
        is_another = bool(live.pictures) or live.has_gone_back
        newest = (conversation.edit_target or "") if conversation and is_another else ""
        return {
            **await self.screen.frame(visitor, conversation),
            "rail-stamp": stamp_html(time.monotonic_ns(), _how(live.ending), newest),
            **(self.screen.context(view, "", ()) if sent is not None and tab.returned is None else {}),
            **learnt,
            "welcome": "",
            THREAD: self.screen.thread(
                visitor,
                conversation,
                more=_unrecorded(view, conversation, live),
                # At its end the next message may have been sent already, and stands there until its own answer.
                is_answer=is_answer,
            ),
        }

    def _answered(self, conversation: Conversation | None, live: LiveTurn) -> set[str]:
        """Return the ids of the models that have answered in a turn, as far as it tells."""
        answered = {one.receipt.model for one in live.pictures if one.receipt is not None}
        turn = conversation.turn(live.turn_id) if conversation is not None else None
        has_said_something = turn is not None and turn.usage.output_tokens + turn.usage.thought_tokens > 0
        has_painter_failed = isinstance(live.ending, TurnFailed) and live.ending.node == "executor"
        if turn is not None and has_said_something and (isinstance(live.ending, TurnDone) or has_painter_failed):
            catalogue = self.screen.studio().catalogue
            answered.add(catalogue.keyed(ModelRole(turn.settings.text_model)).id)
        return answered


def _how(ending: Ending | None) -> str:
    match ending:
        case TurnFailed():
            return "failed"
        case TurnPaused():
            return "waiting"
        case TurnStopped():
            return "stopped"
        case TurnDone() | None:
            return "done"
        case _:
            assert_never(ending)


def turn_of(conversation: Conversation | None, turn_id: str) -> Turn | None:
    """Return the turn with this id, if the conversation has it."""
    turns: Sequence[Turn] = conversation.turns if conversation else ()
    return next((turn for turn in turns if turn.id == turn_id), None)


async def refusals_told(events: AsyncIterator[TurnEvent]) -> AsyncIterator[TurnEvent]:
    """Pass the events on; a failure that was raised before or between them ends the stream as an event."""
    try:
        async for event in events:
            yield event
    except AivistaError as error:
        yield TurnFailed(error=error.info)


def _unrecorded(view: View, conversation: Conversation | None, live: LiveTurn) -> list[Block]:
    """Return what a turn ended with that is not on record."""
    turn = turn_of(conversation, live.turn_id)
    if turn is None:
        return render_live(view, live, 0)
    if isinstance(live.ending, TurnFailed) and turn.state is not TurnState.FAILED:
        return [Block("assistant", notices.failure(view, live.ending.error, "", live.ending.rewordings))]
    return []
