"""A stream of a turn's events as updates of the thread, for the tab that holds the newest ticket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import gradio as gr

from agent import (
    AivistaError,
    Conversation,
    ModelRole,
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
from webui.live import Ending, LiveTurn, Painting, advance_all
from webui.pacing import PAGE_INTERVAL_S, batches, page_interval_s
from webui.panels.chat import to_messages
from webui.panels.conversations import stamp_html
from webui.render import Block, Card, render_conversation, render_live
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.step_lines import step_sentence
from webui.tabs import Returned, Tab
from webui.usual_times import Usual, usual_time


@dataclass(frozen=True)
class Stream:
    """A turn that is shown as it happens: its conversation as it was, its events, and what to give back on failure.

    `sent` is what the composer held when the turn came from there.
    """

    conversation: Conversation
    live: LiveTurn
    events: AsyncIterator[TurnEvent]
    sent: Returned | None = None


@dataclass(frozen=True)
class Streams:
    """Shows streams in the tabs of the page."""

    screen: Screen

    async def show(self, visitor: Visitor, tab: Tab, stream: Stream) -> AsyncIterator[Updates]:
        """Stream a turn into the thread, until its end or until another stream takes the tab over."""
        ticket = tab.streaming = tab.take_over()
        try:
            async for updates in self._show(visitor, tab, stream, ticket):
                yield updates
        finally:
            if tab.streaming == ticket:
                tab.streaming = None

    async def _show(self, visitor: Visitor, tab: Tab, stream: Stream, ticket: int) -> AsyncIterator[Updates]:
        clock, is_timed = _Clock(), False
        conversation, live = stream.conversation, stream.live
        thread, view = self.screen.panels.chat.thread, self.screen.view(visitor, conversation.id)
        pictures = {picture.handle: picture for picture in conversation.pictures}
        past = _past(view, conversation, live.turn_id)
        yield await self._begun(visitor, stream, past + to_messages(render_live(view, live, 0, pictures)))
        tab.returned = None
        async for batch in batches(refusals_told(stream.events), page_interval_s(len(past))):
            before, live = live, advance_all(live, batch)
            tab.has_shown(live.turn_id)
            for line in (one for one in batch if isinstance(one, ThoughtLog) and one.step is Step.NEARLY_FULL):
                gr.Warning(step_sentence(visitor.words, line))
            clock.take(live)
            if not is_timed and live.painting is not None:
                is_timed, usual = True, await self._usual(visitor, live.painting, clock.elapsed_s, live.turn_id)
                live = replace(live, usual=usual)
            if before.turn_id != live.turn_id:
                past = _past(view, conversation, live.turn_id)
            if not tab.holds(ticket) or live.ending is not None:
                break
            blocks = render_live(view, live, clock.elapsed_s, pictures)
            yield {thread: past + to_messages(blocks)}
        # The page applies the parts of an update one by one: two updates at once could end in the wrong order.
        await asyncio.sleep(max(0.0, PAGE_INTERVAL_S - clock.watched_s))
        if tab.holds(ticket):
            yield await self._ended(visitor, tab, view, live, stream.sent)
        # Gradio sends the last update once more when a handler ends: it must not write over another conversation.
        yield {thread: gr.skip()}

    async def _usual(self, visitor: Visitor, painting: Painting, elapsed_s: float, turn_id: str) -> Usual | None:
        studio, provider = self.screen.studio(), self.screen.provider(visitor)
        return await usual_time(
            studio.gallery, studio.catalogue, visitor.owner, provider, painting.asked, elapsed_s, turn_id
        )

    async def _begun(self, visitor: Visitor, stream: Stream, thread: list[dict[str, Any]]) -> Updates:
        panels, conversation = self.screen.panels, stream.conversation
        return {
            panels.chat.thread: thread,
            panels.chat.welcome: "",
            # One that has a title is shown already, with all that its branches cost.
            panels.chat.top: gr.skip() if conversation.title else await self.screen.top(visitor, conversation),
            # The page has emptied the words itself; a file that was added meanwhile would go with those that were sent.
            panels.composer.message: gr.update(value=None) if stream.sent and stream.sent.files else gr.skip(),
            panels.composer.conversation: conversation.id,
        }

    async def _ended(self, visitor: Visitor, tab: Tab, view: View, live: LiveTurn, sent: Returned | None) -> Updates:
        conversation = await self.screen.conversation(visitor, view.conversation_id)
        panels = self.screen.panels
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
            panels.rail.stamp: stamp_html(time.monotonic_ns(), _how(live.ending), newest),
            **(self.screen.context(view, "", ()) if sent is not None and tab.returned is None else {}),
            **learnt,
            panels.chat.welcome: "",
            panels.chat.thread: to_messages(_at_rest(view, conversation, live)),
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


@dataclass
class _Clock:
    """How long a turn has run; of one that is followed from a later moment on its own steps tell."""

    began_s: float = field(default_factory=time.monotonic)
    before_s: float = 0.0

    @property
    def watched_s(self) -> float:
        return time.monotonic() - self.began_s

    @property
    def elapsed_s(self) -> float:
        return self.before_s + self.watched_s

    def take(self, live: LiveTurn) -> None:
        if live.step is not None:
            self.before_s = max(self.before_s, live.step.at_s - self.watched_s)


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


def _past(view: View, conversation: Conversation, running: str) -> list[dict[str, Any]]:
    return to_messages(render_conversation(view, conversation, without=running, is_at_rest=False))


def _at_rest(view: View, conversation: Conversation | None, live: LiveTurn) -> list[Block]:
    """Return the thread after the turn: what is on record, and a failure that did not get there."""
    blocks = render_conversation(view, conversation) if conversation else []
    turn = turn_of(conversation, live.turn_id)
    if turn is None:
        return blocks + render_live(view, live, 0)
    if isinstance(live.ending, TurnFailed) and turn.state is not TurnState.FAILED:
        blocks.append(Card("assistant", notices.failure(view, live.ending.error, "", live.ending.rewordings)))
    return blocks
