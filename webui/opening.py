"""What the page is filled with for its visitor, once for all: the open conversation, the rail, the dialog, the words.

It stands in the page when that comes, where `webui.page_fill` could write it there; else the page asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from gradio.blocks import Block

from agent import Conversation
from webui.clicks import Clicks
from webui.features.conversations import first_rows
from webui.panels.chat import TURNS_AT_ONCE, earlier_html, log_html, newest
from webui.panels.composer import Chosen
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.shell.templates import render
from webui.tabs import Tab
from webui.turns import Turns
from webui.words import Words

NEW = "new"
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 64


@dataclass(frozen=True)
class Opening:
    """Fills the page. `spoken` are parts that need no more than the visitor's words.

    `filled` is a wire that says with what the page came: it is empty in one that came with nothing.
    """

    screen: Screen
    spoken: Mapping[gr.HTML, Callable[[Words], str]]
    filled: gr.Textbox
    _in_language: dict[str, Updates] = field(default_factory=dict, repr=False)

    @property
    def _clicks(self) -> Clicks:
        return Clicks(self.screen, Turns(self.screen))

    @property
    def outputs(self) -> list[Any]:
        """Every component that is filled."""
        return list(dict.fromkeys((*self.screen.panels.outputs, *self.spoken, *self._rail)))

    async def asked(self, visitor: Visitor, name: str) -> Conversation | None:
        """Return the conversation that the page's address asks for, else the newest; None for a new one."""
        found = await self.screen.conversation(visitor, name)
        return found if found is not None or name == NEW else await self.screen.newest(visitor)

    async def written(self, visitor: Visitor, name: str) -> Updates | None:
        """Return all that stands in a page that comes filled, or None where it has to ask, without a cookie yet."""
        if self.screen.sessions.is_shared and visitor.token is None:
            return None
        conversation = await self.asked(visitor, name)
        opened = await self._clicks.opened(visitor, conversation)
        chat, articles = self.screen.panels.chat, self.screen.articles(visitor, conversation)
        # What comes with the page needs no script to be seen.
        earlier = earlier_html(visitor.words) if len(articles) > TURNS_AT_ONCE else ""
        is_live = self.screen.at_work(conversation) is not None
        opened |= {chat.thread: "", chat.log: log_html(newest(articles), earlier, is_live=is_live)}
        return {**await self._around(visitor), **opened, self.filled: _seal(visitor, conversation)}

    async def fill(self, visitor: Visitor, tab: Tab, name: str, sealed: str) -> Updates:
        """Return what the page lacks: nothing where it came filled, and nothing has changed since. A page that asked
        again, because the first answer took too long, is not filled twice: by now its person may be elsewhere."""
        if tab.is_filled:
            return self.screen.nothing()
        conversation = await self.asked(visitor, name)
        # One in which something was done already shows that, and must not be taken back.
        if sealed and (tab.ticket > 0 or sealed == _seal(visitor, conversation)):
            return self.screen.nothing()
        # In one stroke: each one more is drawn, and waited for, by itself.
        whole = {**await self._around(visitor), **await self._clicks.opened(visitor, conversation)}
        tab.is_filled = True
        return whole if sealed else _unlike_built(whole)

    def _said(self, words: Words) -> Updates:
        if words.language not in self._in_language:
            self._in_language[words.language] = {part: html(words) for part, html in self.spoken.items()}
        return self._in_language[words.language]

    async def _around(self, visitor: Visitor) -> Updates:
        """Return what is the same whichever conversation is open."""
        return {
            **self.screen.chips(visitor, Chosen()),
            **self._said(visitor.words),
            **await self._listed(visitor),
        }

    @property
    def _rail(self) -> list[gr.HTML]:
        rail = self.screen.panels.rail
        return [rail.head, rail.rows, rail.foot, rail.menus]

    async def _listed(self, visitor: Visitor) -> Updates:
        words = visitor.words
        rows, foot = await first_rows(self.screen, visitor)
        shown = (render("conversations/head.html", words), rows, foot, render("conversations/menus.html", words))
        return dict(zip(self._rail, shown, strict=True))


def wire_opening(page: gr.Blocks, opening: Opening, tab: gr.State, again: gr.Button) -> None:
    """Fill the page when it is opened, where it did not come filled, and when its script asks `again` for that."""

    async def load(request: gr.Request, tab: Tab, filled: str) -> Updates:
        visitor = opening.screen.sessions.visitor(request)
        return await opening.fill(visitor, tab, str(request.query_params.get("c") or ""), filled)

    inputs: dict[str, Block] = {"tab": tab, "filled": opening.filled}
    for ask in (page.load, again.click):
        ask(load, None, opening.outputs, inputs_kwargs=inputs, concurrency_limit=_AT_ONCE, **_QUIET)


def _seal(visitor: Visitor, conversation: Conversation | None) -> str:
    """Return what tells whether a page that came filled is still the one to show."""
    words = visitor.words.language
    return f"{words} {conversation.id} {conversation.updated_at.isoformat()}" if conversation else f"{words} {NEW}"


def _unlike_built(updates: Updates) -> Updates:
    """Return the updates without those that say what a page that was just opened shows anyway."""
    return {
        part: update
        for part, update in updates.items()
        if not (isinstance(update, str) and update == getattr(part, "value", None))
    }
