"""What the page is filled with for its visitor, once for all: the open conversation, the rail, the words.

It stands in the page when that comes, where `webui.page_fill` could write it there; else the page asks for it.
"""

from __future__ import annotations

from agent import Conversation
from webui.features.conversations import first_rows
from webui.panels.chat import TURNS_AT_ONCE, earlier_html, log_html, newest
from webui.panels.composer import Chosen
from webui.screen import THREAD, Screen, Updates
from webui.sessions import Visitor
from webui.shell.templates import render

NEW = "new"


async def whole(screen: Screen, visitor: Visitor, name: str) -> Updates:
    """Return all that the page shows: the conversation that its address names, else the newest, else a new one."""
    return await _with(screen, visitor, await _asked(screen, visitor, name))


async def written(screen: Screen, visitor: Visitor, name: str) -> Updates | None:
    """Return all that stands in a page that comes filled, or None where it has to ask, without a cookie yet."""
    if screen.sessions.is_shared and visitor.token is None:
        return None
    conversation = await _asked(screen, visitor, name)
    articles = screen.articles(visitor, conversation)
    # What comes with the page needs no script to be seen.
    earlier = earlier_html(visitor.words) if len(articles) > TURNS_AT_ONCE else ""
    is_live = screen.at_work(conversation) is not None
    updates = await _with(screen, visitor, conversation)
    del updates[THREAD]
    return {**updates, screen.panels.chat.log: log_html(newest(articles), earlier, is_live=is_live)}


async def _asked(screen: Screen, visitor: Visitor, name: str) -> Conversation | None:
    found = await screen.conversation(visitor, name)
    return found if found is not None or name == NEW else await screen.newest(visitor)


async def _with(screen: Screen, visitor: Visitor, conversation: Conversation | None) -> Updates:
    words, rail = visitor.words, screen.panels.rail
    rows, foot = await first_rows(screen, visitor)
    return {
        **screen.chips(visitor, Chosen()),
        **screen.spoken(words),
        rail.head: render("conversations/head.html", words),
        rail.rows: rows,
        rail.foot: foot,
        rail.menus: render("conversations/menus.html", words),
        **await screen.opened(visitor, conversation),
        **screen.chips_of(visitor, conversation),
    }
