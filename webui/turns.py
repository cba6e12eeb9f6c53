"""A turn on the page: sent, followed, retried, stopped; its events become updates of the thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from agent.conversation import Conversation, Turn
from agent.events import TurnEvent, TurnFailed
from agent.studio import TurnRequest
from webui.cards import View
from webui.live import LiveTurn, advance_all
from webui.pacing import PAGE_INTERVAL_S, batches
from webui.panels.chat import to_messages, top_html
from webui.panels.composer import Chosen
from webui.render import render_conversation, render_live
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.tabs import Returned, Tab


@dataclass(frozen=True)
class Turns:
    """Runs turns for the tabs of the page."""

    screen: Screen

    async def send(
        self,
        visitor: Visitor,
        tab: Tab,
        message: dict[str, Any] | None,
        chosen: Chosen,
        conversation_id: str,
        editing: str,
        references: tuple[str, ...],
    ) -> AsyncIterator[Updates]:
        """Send what the composer holds, and stream the turn into the thread."""
        text = str((message or {}).get("text") or "")
        files = tuple(str(file) for file in (message or {}).get("files") or [])
        sent = Returned(text, files)
        if tab.is_echo(sent, time.monotonic()):
            yield {self.screen.panels.chat.thread: gr.skip()}
            return
        request = TurnRequest(
            text=text,
            images=[Path(file) for file in files],
            settings=chosen.turn_settings(),
            editing=editing or None,
            references=references,
        )
        async for updates in self._run(visitor, tab, conversation_id, request, sent):
            yield updates

    async def retry(self, visitor: Visitor, tab: Tab, conversation_id: str, turn_id: str) -> AsyncIterator[Updates]:
        """Send a turn of the conversation once more, as it was."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        turn = _turn(conversation, turn_id)
        if conversation is None or turn is None:
            return
        images = []
        for upload in turn.uploads:
            stored = await self.screen.studio().picture(conversation.id, upload.handle or "", visitor.owner)
            images.append((f"{(upload.handle or '').lstrip('#')}.png", stored.data))
        request = TurnRequest(
            text=turn.text,
            images=images,
            settings=turn.settings,
            editing=turn.editing,
            references=turn.references,
        )
        async for updates in self._run(visitor, tab, conversation_id, request, Returned(turn.text)):
            yield updates

    async def follow(self, visitor: Visitor, tab: Tab, conversation: Conversation) -> AsyncIterator[Updates]:
        """Go on showing a turn that was at work when the page was loaded."""
        turn_id = self.screen.running_turn(conversation)
        turn = _turn(conversation, turn_id)
        live = LiveTurn(turn.text, _named(turn.editing, turn.references)) if turn else LiveTurn("")
        events = self.screen.studio().attach(conversation.id, visitor.owner)
        async for updates in self._stream(visitor, tab, conversation, turn_id, live, events, None):
            yield updates

    async def _run(
        self, visitor: Visitor, tab: Tab, conversation_id: str, request: TurnRequest, sent: Returned
    ) -> AsyncIterator[Updates]:
        studio = self.screen.studio()
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            conversation = await studio.new_conversation(visitor.owner)
        live = LiveTurn(request.text, _named(request.editing, request.references))
        key = self.screen.sessions.key(visitor)
        events = studio.run_turn(conversation.id, request, owner=visitor.owner, key=key)
        async for updates in self._stream(visitor, tab, conversation, "", live, events, sent):
            yield updates

    async def _stream(
        self,
        visitor: Visitor,
        tab: Tab,
        conversation: Conversation,
        running: str,
        live: LiveTurn,
        events: AsyncIterator[TurnEvent],
        sent: Returned | None,
    ) -> AsyncIterator[Updates]:
        ticket, started_s = tab.take_over(), time.monotonic()
        panels, view = self.screen.panels, View(visitor.words, conversation.id)
        past = to_messages(render_conversation(view, conversation, without=running))
        yield self._begun(visitor, conversation, past + to_messages(render_live(view, live, 0)), sent)
        async for batch in batches(events):
            live = advance_all(live, batch)
            if not tab.holds(ticket) or live.ending is not None:
                break
            blocks = render_live(view, live, time.monotonic() - started_s)
            yield {panels.chat.thread: past + to_messages(blocks)}
        # The page applies the parts of an update one by one: two updates at once could end in the wrong order.
        await asyncio.sleep(max(0.0, PAGE_INTERVAL_S - (time.monotonic() - started_s)))
        if tab.holds(ticket):
            yield await self._ended(visitor, tab, conversation.id, live, past, sent)
        # Gradio sends the last update once more when a handler ends: it must not write over another conversation.
        yield {panels.chat.thread: gr.skip()}

    def _begun(
        self, visitor: Visitor, conversation: Conversation, thread: list[dict[str, Any]], sent: Returned | None
    ) -> Updates:
        panels = self.screen.panels
        box = gr.update(value=None) if sent is not None else gr.skip()
        return {
            panels.chat.thread: thread,
            panels.chat.welcome: "",
            panels.chat.top: top_html(visitor.words, conversation, is_sketch=self.screen.is_sketch(visitor)),
            panels.composer.message: box,
            panels.composer.conversation: conversation.id,
        }

    async def _ended(
        self,
        visitor: Visitor,
        tab: Tab,
        conversation_id: str,
        live: LiveTurn,
        past: list[dict[str, Any]],
        sent: Returned | None,
    ) -> Updates:
        conversation = await self.screen.conversation(visitor, conversation_id)
        view, panels = View(visitor.words, conversation_id), self.screen.panels
        # A turn that was stopped while it still waited is nowhere on record: its words go back, too.
        has_failed = isinstance(live.ending, TurnFailed) or not live.is_on_record
        tab.returned = sent if has_failed else None
        thread = past + to_messages(render_live(view, live, 0))
        if conversation is not None and live.is_on_record:
            thread = to_messages(render_conversation(view, conversation))
        return {
            **await self.screen.frame(visitor, conversation),
            **({} if has_failed else self.screen.context(view, "", ())),
            panels.chat.welcome: "",
            panels.chat.thread: thread,
        }


def give_back(tab: Tab, message: dict[str, Any] | None) -> Any:
    """Return the composer's value after a failure: what was sent, unless something new has been typed meanwhile."""
    returned, tab.returned = tab.returned, None
    is_empty = not message or not (message.get("text") or message.get("files"))
    return gr.update(value=returned.value) if returned is not None and is_empty else gr.skip()


def words_of_turn(conversation: Conversation | None, turn_id: str) -> str:
    """Return the words a turn was sent with, to edit them."""
    turn = _turn(conversation, turn_id)
    return turn.text if turn else ""


def _turn(conversation: Conversation | None, turn_id: str) -> Turn | None:
    turns: Sequence[Turn] = conversation.turns if conversation else ()
    return next((turn for turn in turns if turn.id == turn_id), None)


def _named(editing: str | None, references: tuple[str, ...]) -> tuple[str, ...]:
    return (*((editing,) if editing else ()), *references)
