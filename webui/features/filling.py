"""What the document of the page is filled with for its visitor: the open conversation, the rail, the settings. What
needs no more than the visitor's words stands in the template."""

from __future__ import annotations

from webui.features.composer import Chosen
from webui.features.conversations import first_rows
from webui.features.thread.chat import TURNS_AT_ONCE, earlier_html, log_html, newest
from webui.http.sessions import Visitor
from webui.screen import Screen, Updates

NEW = "new"


async def filled(screen: Screen, visitor: Visitor, name: str) -> Updates:
    """Return all that stands in the document: the conversation that its address names, else the newest, else a new
    one."""
    conversation = await screen.conversation(visitor, name)
    if conversation is None and name != NEW:
        conversation = await screen.newest(visitor)
    articles = screen.articles(visitor, conversation)
    # What comes with the page needs no script to be seen.
    earlier = earlier_html(visitor.words) if len(articles) > TURNS_AT_ONCE else ""
    rows, foot = await first_rows(screen, visitor)
    return {
        **screen.chips(visitor, Chosen()),
        "rail-rows": rows,
        "rail-foot": foot,
        **await screen.opened(visitor, conversation),
        **await screen.chips_of(visitor, conversation),
        "chat": log_html(conversation, newest(articles), earlier, is_live=screen.at_work(conversation) is not None),
    }
