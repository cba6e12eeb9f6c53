"""The rail at work: its clicks list, search, rename, pin, copy and delete the visitor's own conversations."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
from pydantic import Field, ValidationError

from agent import MAX_TITLE_CHARACTERS, OPERATOR, AivistaError, PreferenceStore, Value
from webui.accounts import account_html
from webui.clicks import Clicks
from webui.panels import conversations as panel
from webui.panels.conversations import ROWS_AT_ONCE, FoundRow, MenuPanel
from webui.panels.trash import trash_html
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.spend import spend_html
from webui.tabs import Tab
from webui.turns import Turns

_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 64
_LONGEST_QUERY = 200
_MOST_FOUND = 30


class RailClick(Value):
    """A click of the rail or of a conversation's menu as the page sends it; anything else is ignored.

    `is_open` says of a conversation that is brought back that it was the one that was open.
    """

    act: str
    id: str = Field(default="", max_length=64)
    text: str = Field(default="", max_length=2000)
    is_open: bool = False


def read_rail_click(data: object) -> RailClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return RailClick.model_validate(data)
    except ValidationError:
        return None


@dataclass
class Look:
    """What one open tab sees of the list: how many rows beside the pinned, what a search found, or the trash."""

    shown: int = ROWS_AT_ONCE
    query: str = ""
    is_trash: bool = False


@dataclass(frozen=True)
class Rail:
    """Answers the rail's clicks. All that is read or changed is the visitor's own."""

    screen: Screen
    menus: MenuPanel
    preferences: Callable[[], PreferenceStore]

    @property
    def filled(self) -> list[gr.HTML]:
        """What it fills: the rail, the menus, and what is said of a click."""
        rail = self.screen.panels.rail
        return [rail.head, rail.rows, rail.foot, self.menus.menus, self.menus.said]

    def spoken(self, visitor: Visitor) -> Updates:
        """Return what of the rail needs no more than the visitor's words."""
        rail = self.screen.panels.rail
        return {rail.head: panel.head_html(visitor.words), self.menus.menus: panel.menus_html(visitor.words)}

    async def look(self, visitor: Visitor, look: Look, click: RailClick, current: str) -> Updates:
        """Return the list as it is asked for: as before, longer, or what a search found."""
        if click.act == "find":
            look.query, look.is_trash = click.text.strip()[:_LONGEST_QUERY], False
        elif click.act in ("trash", "list"):
            look.shown, look.query, look.is_trash = ROWS_AT_ONCE, "", click.act == "trash"
        elif click.act == "more":
            look.shown += ROWS_AT_ONCE
        return await self.listed(visitor, look, current)

    async def listed(self, visitor: Visitor, look: Look, current: str) -> Updates:
        """Return the rows and the foot; nothing when the tab has meanwhile searched for something else."""
        query, is_trash, rail = look.query, look.is_trash, self.screen.panels.rail
        try:
            rows = await self._rows(visitor, look, current)
            studio = self.screen.studio()
            sums = await studio.spend.sums(visitor.owner)
            caps = await self.preferences().of(visitor.owner)
        except AivistaError as error:
            return self._said(visitor, visitor.words.error(error.info), is_problem=True)
        if (query, is_trash) != (look.query, look.is_trash):
            return {}
        spend = spend_html(visitor.words, sums, caps)
        return {rail.rows: rows, rail.foot: panel.foot_html(visitor.words, self._account(visitor) + spend)}

    def _account(self, visitor: Visitor) -> str:
        sessions = self.screen.sessions
        if not sessions.has_accounts or visitor.owner == OPERATOR:
            return ""
        return account_html(visitor.words, visitor, sessions.name_of(visitor.owner))

    async def _rows(self, visitor: Visitor, look: Look, current: str) -> str:
        studio, words, owner = self.screen.studio(), visitor.words, visitor.owner
        if look.query:
            found = await studio.conversations.search(look.query, owner, _MOST_FOUND)
            rows = [FoundRow(one.info, one.excerpt, one.marks, one.place == "title") for one in found]
            return panel.found_html(words, look.query, rows, current)
        shown = look.shown
        if look.is_trash:
            deleted = await studio.conversations.trash(owner, shown + 1)
            return trash_html(words, deleted[:shown], has_more=len(deleted) > shown)
        infos = await studio.conversations.pinned_and_newest(owner, shown + 1)
        most = sum(info.is_pinned for info in infos) + shown
        return panel.rows_html(words, infos[:most], current, has_more=len(infos) > most)

    async def change(
        self, visitor: Visitor, tab: Tab, look: Look, click: RailClick, current: str
    ) -> AsyncIterator[Updates]:
        """Yield what the click changes; what cannot be done is told in one sentence, and changes nothing."""
        try:
            async for updates in self._change(visitor, tab, click, current):
                current = updates.get(self.screen.panels.composer.conversation, current)
                yield updates
        except AivistaError as error:
            yield self._said(visitor, visitor.words.error(error.info), is_problem=True)
            return
        yield await self.listed(visitor, look, current)

    async def _change(self, visitor: Visitor, tab: Tab, click: RailClick, current: str) -> AsyncIterator[Updates]:
        studio, owner = self.screen.studio(), visitor.owner
        match click.act:
            case "rename":
                await studio.conversations.rename(click.id, click.text, owner)
                yield await self._top(visitor, click.id, current)
            case "pin" | "unpin":
                await studio.conversations.pin(click.id, click.act == "pin", owner)
                yield await self._top(visitor, click.id, current)
            case "duplicate":
                async for updates in self._duplicate(visitor, tab, click.id):
                    yield updates
            case "delete":
                async for updates in self._delete(visitor, tab, click.id, current):
                    yield updates
            case "forget":
                await studio.conversations.delete_forever(click.id, owner)
                yield self._said(visitor, visitor.words("trash.forgotten"))
            case "empty":
                await studio.conversations.empty_trash(owner)
                yield self._said(visitor, visitor.words("trash.emptied"))
            case "undo" | "restore":
                back = await studio.conversations.undelete(click.id, owner)
                yield self._said(visitor, visitor.words("kept.restored", title=self._called(visitor, back.title)))
                if click.is_open:
                    async for updates in self._opened(visitor, tab, back.id):
                        yield updates

    async def _duplicate(self, visitor: Visitor, tab: Tab, conversation_id: str) -> AsyncIterator[Updates]:
        studio, words = self.screen.studio(), visitor.words
        title = (await studio.conversations.get(conversation_id, visitor.owner)).title
        room = MAX_TITLE_CHARACTERS - len(words("kept.copy_of", title=""))
        name = words("kept.copy_of", title=title[:room]) if title else ""
        copy = await studio.conversations.duplicate(conversation_id, visitor.owner, name)
        async for updates in self._opened(visitor, tab, copy.id):
            yield updates
        yield self._said(visitor, words("kept.copied"))

    async def _delete(self, visitor: Visitor, tab: Tab, conversation_id: str, current: str) -> AsyncIterator[Updates]:
        studio = self.screen.studio()
        title = self._called(visitor, (await studio.conversations.get(conversation_id, visitor.owner)).title)
        await studio.conversations.delete(conversation_id, visitor.owner)
        was_open, said = conversation_id == current, visitor.words("kept.deleted", title=title)
        yield self._said(visitor, said, undo=conversation_id, was_open=was_open)
        if was_open:
            async for updates in self._opened(visitor, tab, ""):
                yield updates

    async def _opened(self, visitor: Visitor, tab: Tab, conversation_id: str) -> AsyncIterator[Updates]:
        async for updates in Clicks(self.screen, Turns(self.screen)).open(visitor, tab, conversation_id):
            yield updates

    async def _top(self, visitor: Visitor, conversation_id: str, current: str) -> Updates:
        """Return the bar above the conversation when it is the open one that was changed."""
        if conversation_id != current:
            return {}
        conversation = await self.screen.conversation(visitor, current)
        return {self.screen.panels.chat.top: await self.screen.top(visitor, conversation)}

    def _called(self, visitor: Visitor, title: str) -> str:
        return title or visitor.words("top.untitled")

    def _said(self, visitor: Visitor, text: str, **more: Any) -> Updates:
        return {self.menus.said: panel.said_html(visitor.words, text, time.monotonic_ns(), **more)}


def wire_rail(rail: Rail, tab: gr.State) -> None:
    """Let the clicks of the rail and of a conversation's menu call their handlers."""
    screen, menus, look = rail.screen, rail.menus, gr.State(Look())
    panels, conversation = screen.panels, screen.panels.composer.conversation

    async def looked(request: gr.Request, event: gr.EventData, look: Look, conversation: str) -> Updates:
        click = read_rail_click(event._data)
        visitor = screen.sessions.visitor(request)
        updates = await rail.look(visitor, look, click, conversation) if click else {}
        return updates or {menus.said: gr.skip()}

    async def changed(
        request: gr.Request, event: gr.EventData, tab: Tab, look: Look, conversation: str
    ) -> AsyncIterator[Updates]:
        click = read_rail_click(event._data)
        if click is None:
            return
        async for updates in rail.change(screen.sessions.visitor(request), tab, look, click, conversation):
            yield updates or screen.nothing()
        yield screen.nothing()

    often: dict[str, Any] = {"concurrency_limit": _AT_ONCE, "trigger_mode": "multiple", **_QUIET}
    menus.bus.click(looked, None, rail.filled, inputs_kwargs={"look": look, "conversation": conversation}, **often)
    menus.bus.submit(
        changed,
        None,
        [*panels.outputs, *rail.filled],
        inputs_kwargs={"tab": tab, "look": look, "conversation": conversation},
        **often,
    )
