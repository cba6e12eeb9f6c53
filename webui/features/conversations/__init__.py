"""The list of conversations: by day, found by their words, or deleted; renamed, pinned, copied, deleted, brought back.

Beside it, what was spent. The page asks for the list as it is looked at, which only the page knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from pydantic import Field

from agent import MAX_TITLE_CHARACTERS, OPERATOR, ConversationHit, ConversationInfo, DeletedConversation, Value
from webui.features.conversations.exports import export_routes
from webui.http.sessions import Visitor
from webui.screen import Screen
from webui.shell.actions import Context, Feature, Place
from webui.shell.patches import Reply, Toast
from webui.shell.templates import render
from webui.spend import spend_html
from webui.view import marked
from webui.words import Words

conversations = Feature("conversations", routes=lambda screen: export_routes(screen.studio, screen.sessions))
# So many are listed at first, and so many more whenever one asks for more.
ROWS_AT_ONCE = 50
_MOST_ROWS = 100_000
_MOST_FOUND = 30


class Look(Value):
    """What of the list is looked at: how many rows beside the pinned, what a search found, or the trash."""

    shown: int = Field(default=ROWS_AT_ONCE, ge=1, le=_MOST_ROWS)
    query: str = Field(default="", max_length=200)
    is_trash: bool = False


class Chosen(Look):
    """A conversation of the list."""

    id: str = Field(max_length=64)


class Named(Chosen):
    """A conversation, and its new name."""

    text: str = Field(max_length=2000)


class Deleted(Chosen):
    """A conversation to be brought back, and whether it was the open one."""

    is_open: bool = False


class Row(NamedTuple):
    """A conversation of the list: its title, and the excerpt that a search found, in pieces, marked or not."""

    id: str
    title: str
    is_current: bool
    thumbnail: str
    is_pinned: bool
    marked_title: Sequence[tuple[str, bool]] = ()
    excerpt: Sequence[tuple[str, bool]] = ()


@conversations.action
async def look(at: Context, look: Look) -> Reply:
    """Show the list."""
    return await listed(at, look)


@conversations.action
async def rename(at: Context, named: Named) -> Reply:
    """Give a conversation a name."""
    await at.screen.studio().conversations.rename(named.id, named.text, at.visitor.owner)
    return await _kept(at, named)


@conversations.action
async def pin(at: Context, chosen: Chosen) -> Reply:
    """Have a conversation stand above the others."""
    await at.screen.studio().conversations.pin(chosen.id, True, at.visitor.owner)
    return await _kept(at, chosen)


@conversations.action
async def unpin(at: Context, chosen: Chosen) -> Reply:
    """Have a conversation stand in its place again."""
    await at.screen.studio().conversations.pin(chosen.id, False, at.visitor.owner)
    return await _kept(at, chosen)


@conversations.action
async def duplicate(at: Context, chosen: Chosen) -> Reply:
    """Copy a conversation, and open the copy."""
    studio, words, owner = at.screen.studio(), at.words, at.visitor.owner
    title = (await studio.conversations.get(chosen.id, owner)).title
    room = MAX_TITLE_CHARACTERS - len(words("conversations.copy_of", title=""))
    name = words("conversations.copy_of", title=title[:room]) if title else ""
    copy = await studio.conversations.duplicate(chosen.id, owner, name)
    return await listed(at, chosen, Toast(text=words("conversations.copied")), {"open": copy.id})


@conversations.action
async def delete(at: Context, chosen: Chosen) -> Reply:
    """Put a conversation into the trash; in the place of the open one a new one is opened."""
    studio, owner, was_open = at.screen.studio(), at.visitor.owner, chosen.id == at.place.conversation
    title = _called(at.words, (await studio.conversations.get(chosen.id, owner)).title)
    await studio.conversations.delete(chosen.id, owner)
    undo = conversations.undo(restore, {**chosen.model_dump(), "is_open": was_open})
    toast = Toast(text=at.words("conversations.deleted", title=title), undo=undo)
    return await listed(at, chosen, toast, {"open": "new"} if was_open else {})


@conversations.action
async def restore(at: Context, deleted: Deleted) -> Reply:
    """Bring a conversation back from the trash, and open it if it was the open one."""
    back = await at.screen.studio().conversations.undelete(deleted.id, at.visitor.owner)
    toast = Toast(text=at.words("conversations.restored", title=_called(at.words, back.title)))
    return await listed(at, deleted, toast, {"open": back.id} if deleted.is_open else {})


@conversations.action
async def forget(at: Context, chosen: Chosen) -> Reply:
    """Delete a conversation for good."""
    await at.screen.studio().conversations.delete_forever(chosen.id, at.visitor.owner)
    return await listed(at, chosen, Toast(text=at.words("trash.forgotten")))


@conversations.action
async def empty(at: Context, look: Look) -> Reply:
    """Delete for good what is in the trash."""
    await at.screen.studio().conversations.empty_trash(at.visitor.owner)
    return await listed(at, look, Toast(text=at.words("trash.emptied")))


async def _kept(at: Context, chosen: Chosen) -> Reply:
    """Return the list, and how the conversation is called and kept now: the open one says so above itself."""
    kept = await at.screen.studio().conversations.get(chosen.id, at.visitor.owner)
    shown = {"id": kept.id, "title": kept.title, "pinned": kept.is_pinned, "version": kept.version}
    return await listed(at, chosen, events={"conversation": shown})


async def listed(at: Context, look: Look, toast: Toast | None = None, events: dict[str, Any] | None = None) -> Reply:
    """Return the rows and the foot, what is said, and what the page does."""
    rows = at.fragment("rail-list", "conversations/rows.html", "rail-rows", **await _rows(at, look))
    foot = at.fragment("rail-sum", "conversations/foot.html", "rail-foot", **await _sums(at))
    return Reply(patches=(rows, foot), toast=toast, events=events or {})


async def first_rows(screen: Screen, visitor: Visitor) -> tuple[str, str]:
    """Return the list and its foot as a page comes with them."""
    rows, foot = (await listed(Context(screen, visitor, Place()), Look())).patches
    return rows.html or "", foot.html or ""


async def _sums(at: Context) -> dict[str, Any]:
    studio, owner, sessions = at.screen.studio(), at.visitor.owner, at.screen.sessions
    spend = spend_html(at.words, await studio.spend.sums(owner), await studio.preferences.of(owner))
    account = ""
    if sessions.has_accounts and owner != OPERATOR:
        name = sessions.name_of(owner)
        account = render("conversations/account.html", at.words, is_known=at.visitor.is_known, name=name)
    return {"spend": Markup(account + spend)}  # noqa: S704  its texts are escaped


async def _rows(at: Context, look: Look) -> dict[str, Any]:
    kept, words, owner = at.screen.studio().conversations, at.words, at.visitor.owner
    current, query = at.place.conversation, look.query.strip()
    if query:
        found = [_found(words, one, current) for one in await kept.search(query, owner, _MOST_FOUND)]
        return {"kind": "found", "query": query, "groups": [("", found)], "count": len(found), "has_more": False}
    if look.is_trash:
        deleted = await kept.trash(owner, look.shown + 1)
        rows = [_in_trash(words, one) for one in deleted[: look.shown]]
        return {"kind": "trash", "groups": [("", rows)], "count": len(rows), "has_more": len(deleted) > look.shown}
    infos = await kept.pinned_and_newest(owner, look.shown + 1)
    most = sum(info.is_pinned for info in infos) + look.shown
    groups = list(_by_day(words, infos[:most], current))
    return {"kind": "list", "groups": groups, "count": len(infos), "has_more": len(infos) > most}


def _by_day(words: Words, infos: Sequence[ConversationInfo], current: str) -> Iterator[tuple[str, list[Row]]]:
    """Return the conversations, the pinned ones first, the others by day; both come newest first."""
    now = datetime.now(UTC)
    for name, ones in groupby(infos, key=lambda one: "pinned" if one.is_pinned else _age(one.updated_at, now)):
        yield name, [_row(words, one, current) for one in ones]


def _row(words: Words, info: ConversationInfo, current: str) -> Row:
    digest = info.thumbnail_digest
    thumbnail = f"media/{quote(info.id)}/{digest}?size=64" if digest else ""
    return Row(info.id, _called(words, info.title), info.id == current, thumbnail, info.is_pinned)


def _found(words: Words, found: ConversationHit, current: str) -> Row:
    pieces, row = marked(found.excerpt, found.marks), _row(words, found.info, current)
    return row._replace(marked_title=pieces) if found.place == "title" else row._replace(excerpt=pieces)


def _in_trash(words: Words, one: DeletedConversation) -> tuple[str, str, str]:
    """Return what a row of the trash says: its id, its title, and when it was deleted and goes for good."""
    now = datetime.now(UTC)
    # A clock that was set back makes no more days of them.
    days = min((one.kept_until - one.deleted_at).days, max(0, math.ceil((one.kept_until - now) / timedelta(days=1))))
    ago = (now.astimezone().date() - one.deleted_at.astimezone().date()).days
    when = words.counted("trash.ago", ago) if ago > 1 else words("trash.yesterday" if ago == 1 else "trash.today")
    return one.id, _called(words, one.title), f"{when} · {words.counted('trash.left', days)}"


def _called(words: Words, title: str) -> str:
    return title or words("top.untitled")


def _age(moment: datetime, now: datetime) -> str:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    days = (now.astimezone().date() - moment.astimezone().date()).days
    if days <= 0:
        return "today"
    if days == 1:
        return "yesterday"
    return "week" if days <= 7 else "older"
