"""The list of conversations: by day, found by text, or deleted; they are renamed, pinned, copied, deleted and restored.

Its foot shows what was spent. The page requests the list as it is shown, because only the page knows that.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import quote

from markupsafe import Markup
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent import (
    MAX_TITLE_CHARACTERS,
    OPERATOR,
    ArchiveLanguage,
    ArchiveLimits,
    ConversationHit,
    ConversationInfo,
    DeletedConversation,
    ErrorCode,
    ExportedArchive,
    ImportReport,
    ReadableFormat,
    StorageFailure,
    Studio,
    Value,
    archive_too_large,
    make_private_folder,
    storage_failure,
)
from webui.http.sessions import NO_STORE, Sessions, TemporaryFile, Visitor, announced_bytes, visitor_route
from webui.screen import Screen
from webui.shell.actions import Context, Feature, PageState
from webui.shell.templates import Reply, Toast, render
from webui.spend import spend_html
from webui.view import marked
from webui.words import Words

conversations = Feature("conversations", routes=lambda screen: export_routes(screen.studio, screen.sessions))
# Rows listed at first, and added whenever the user asks for more.
ROWS_AT_ONCE = 50
_MOST_ROWS = 100_000
_MOST_FOUND = 30
_TYPES = {".zip": "application/zip", ".md": "text/markdown; charset=utf-8", ".html": "text/html; charset=utf-8"}
_IMPORTS = "imports"
_WRITE_AT_ONCE = 1 << 20
_MOST_BYTES_OF_VISITOR = 256 << 20
# Bytes that must stay free for everybody else's records and pictures.
_RESERVE_BYTES = 1 << 30


class ListView(Value):
    """The part of the list that is shown: the number of rows besides the pinned ones, the hits of a search, or the
    trash."""

    shown: int = Field(default=ROWS_AT_ONCE, ge=1, le=_MOST_ROWS)
    query: str = Field(default="", max_length=200)
    is_trash: bool = False


class ConversationArg(ListView):
    """A conversation of the list."""

    id: str = Field(max_length=64)


class NewTitle(ConversationArg):
    """A conversation and its new name."""

    text: str = Field(max_length=2000)


class RestoreArg(ConversationArg):
    """A conversation to restore, and whether it was the open one."""

    is_open: bool = False


class Row(NamedTuple):
    """A conversation of the list: its title, and the excerpt of a search in pieces, marked or not."""

    id: str
    title: str
    is_current: bool
    thumbnail: str
    is_pinned: bool
    marked_title: Sequence[tuple[str, bool]] = ()
    excerpt: Sequence[tuple[str, bool]] = ()


@conversations.action
async def look(at: Context, view: ListView) -> Reply:
    """Show the list."""
    return await listed(at, view)


@conversations.action
async def rename(at: Context, named: NewTitle) -> Reply:
    """Give a conversation a name."""
    await at.screen.studio().conversations.rename(named.id, named.text, at.visitor.owner)
    return await _kept(at, named)


@conversations.action
async def pin(at: Context, chosen: ConversationArg) -> Reply:
    """Pin a conversation to the top of the list."""
    await at.screen.studio().conversations.pin(chosen.id, True, at.visitor.owner)
    return await _kept(at, chosen)


@conversations.action
async def unpin(at: Context, chosen: ConversationArg) -> Reply:
    """Unpin a conversation."""
    await at.screen.studio().conversations.pin(chosen.id, False, at.visitor.owner)
    return await _kept(at, chosen)


@conversations.action
async def duplicate(at: Context, chosen: ConversationArg) -> Reply:
    """Copy a conversation, and open the copy."""
    studio, words, owner = at.screen.studio(), at.words, at.visitor.owner
    title = (await studio.conversations.get(chosen.id, owner)).title
    room = MAX_TITLE_CHARACTERS - len(words("conversations.copy_of", title=""))
    name = words("conversations.copy_of", title=title[:room]) if title else ""
    copy = await studio.conversations.duplicate(chosen.id, owner, name)
    return await listed(at, chosen, Toast(text=words("conversations.copied")), {"open": copy.id})


@conversations.action
async def delete(at: Context, chosen: ConversationArg) -> Reply:
    """Move a conversation to the trash. If it was open, open a new one."""
    studio, owner, was_open = at.screen.studio(), at.visitor.owner, chosen.id == at.state.conversation
    title = _called(at.words, (await studio.conversations.get(chosen.id, owner)).title)
    await studio.conversations.delete(chosen.id, owner)
    undo = conversations.undo(restore, {**chosen.model_dump(), "is_open": was_open})
    toast = Toast(text=at.words("conversations.deleted", title=title), undo=undo)
    return await listed(at, chosen, toast, {"open": "new"} if was_open else {})


@conversations.action
async def restore(at: Context, deleted: RestoreArg) -> Reply:
    """Restore a conversation from the trash, and open it if it was the open one."""
    back = await at.screen.studio().conversations.undelete(deleted.id, at.visitor.owner)
    toast = Toast(text=at.words("conversations.restored", title=_called(at.words, back.title)))
    return await listed(at, deleted, toast, {"open": back.id} if deleted.is_open else {})


@conversations.action
async def forget(at: Context, chosen: ConversationArg) -> Reply:
    """Delete a conversation permanently."""
    await at.screen.studio().conversations.delete_forever(chosen.id, at.visitor.owner)
    return await listed(at, chosen, Toast(text=at.words("trash.forgotten")))


@conversations.action
async def empty(at: Context, view: ListView) -> Reply:
    """Delete everything in the trash permanently."""
    await at.screen.studio().conversations.empty_trash(at.visitor.owner)
    return await listed(at, view, Toast(text=at.words("trash.emptied")))


async def _kept(at: Context, chosen: ConversationArg) -> Reply:
    """Return the list, and the conversation's new name and state for the bar above the open one."""
    kept = await at.screen.studio().conversations.get(chosen.id, at.visitor.owner)
    shown = {"id": kept.id, "title": kept.title, "pinned": kept.is_pinned, "version": kept.version}
    return await listed(at, chosen, events={"conversation": shown})


async def listed(
    at: Context, view: ListView, toast: Toast | None = None, events: dict[str, Any] | None = None
) -> Reply:
    """Return the rows and the foot, with a toast and events for the page's script."""
    rows = at.fragment("rail-list", "conversations/rows.html", "rail-rows", **await _rows(at, view))
    foot = at.fragment("rail-sum", "conversations/foot.html", "rail-foot", **await _sums(at))
    return Reply(patches=(rows, foot), toast=toast, events=events or {})


async def first_rows(screen: Screen, visitor: Visitor) -> tuple[str, str]:
    """Return the list and its foot for a first page."""
    rows, foot = (await listed(Context(screen, visitor, PageState()), ListView())).patches
    return rows.html or "", foot.html or ""


async def _sums(at: Context) -> dict[str, Any]:
    studio, owner, sessions = at.screen.studio(), at.visitor.owner, at.screen.sessions
    spend = spend_html(at.words, await studio.spend.sums(owner), await studio.preferences.of(owner))
    account = ""
    if sessions.has_accounts and owner != OPERATOR:
        name = sessions.name_of(owner)
        account = render("conversations/account.html", at.words, is_known=at.visitor.is_known, name=name)
    return {"spend": Markup(account + spend)}  # noqa: S704  its texts are escaped


async def _rows(at: Context, view: ListView) -> dict[str, Any]:
    kept, words, owner = at.screen.studio().conversations, at.words, at.visitor.owner
    current, query = at.state.conversation, view.query.strip()
    if query:
        found = [_found(words, one, current) for one in await kept.search(query, owner, _MOST_FOUND)]
        return {"kind": "found", "query": query, "groups": [("", found)], "count": len(found), "has_more": False}
    if view.is_trash:
        deleted = await kept.trash(owner, view.shown + 1)
        rows = [_in_trash(words, one) for one in deleted[: view.shown]]
        return {"kind": "trash", "groups": [("", rows)], "count": len(rows), "has_more": len(deleted) > view.shown}
    infos = await kept.pinned_and_newest(owner, view.shown + 1)
    most = sum(info.is_pinned for info in infos) + view.shown
    groups = list(_by_day(words, infos[:most], current))
    return {"kind": "list", "groups": groups, "count": len(infos), "has_more": len(infos) > most}


def _by_day(words: Words, infos: Sequence[ConversationInfo], current: str) -> Iterator[tuple[str, list[Row]]]:
    """Return the conversations grouped: the pinned ones first, the others by day, each newest first."""
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
    """Return a row of the trash: id, title, when it was deleted and when it will be removed."""
    now = datetime.now(UTC)
    # A clock that was set back must not show more days than there are.
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


# Conversations as files: exported to the browser that asks, and imported from it, for their owner only


def export_routes(
    studio: Callable[[], Studio],
    sessions: Sessions,
    limits: ArchiveLimits | None = None,
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> list[Route]:
    """Return the routes `/export/{conversation}`, `/export` for all conversations, and `/import`.

    `?kind=` is `zip` (the default), `md` or `html`. An export answers 404 for a conversation that the owner does not
    have and 413 when it is too large, each with one sentence in the visitor's language. `/import` takes a ZIP as the
    body of a POST and answers {"isDone", "text", "conversation"}: the sentence to show, and the id of the newest
    imported conversation. `free_bytes` returns the free bytes on the disk of a folder: visitors get less room than the
    operator and must leave a reserve.
    """
    most = (limits or ArchiveLimits()).archive_bytes

    async def export(request: Request, visitor: Visitor) -> Response:
        made = await _made(studio(), request, visitor.owner, visitor.words)
        return TemporaryFile(made.path, _TYPES[made.path.suffix], made.name)

    async def take_in(request: Request, visitor: Visitor) -> Response:
        room = _Room(most, 0, free_bytes)
        if sessions.is_shared and visitor.owner != OPERATOR:
            room = _Room(min(most, _MOST_BYTES_OF_VISITOR), _RESERVE_BYTES, free_bytes)
        report = await _taken_in(studio(), request, visitor.owner, room)
        words, count = visitor.words, len(report.conversations)
        text = words.counted("conversations.imported", count) if count else words("conversations.imported_none")
        if report.lost_count:
            text = words("conversations.lost", text=text, count=report.lost_count)
        return _answer(text, 200, conversation=report.conversations[-1].id if count else "")

    def asking(request: Request) -> Visitor | None:
        # A media type that no form of another site can send without a preflight request.
        visitor = sessions.visitor(request)
        is_archive = request.headers.get("content-type") == "application/zip"
        return visitor if visitor.token is not None and is_archive else None

    return [
        visitor_route("/export/{conversation}", sessions, export),
        visitor_route("/export", sessions, export),
        visitor_route("/import", sessions, take_in, method="POST", refusal=_answer, visitor_of=asking),
    ]


@dataclass(frozen=True)
class _Room:
    """The largest archive, and the bytes that must stay free besides it."""

    archive_bytes: int
    reserve_bytes: int
    free_bytes: Callable[[Path], int]

    def check(self, folder: Path, more_bytes: int) -> None:
        """Check that so many more bytes fit on the disk. Raises StorageFailure, OSError."""
        if self.free_bytes(folder) < self.reserve_bytes + more_bytes:
            raise StorageFailure(ErrorCode.DISK_FULL)


async def _made(studio: Studio, request: Request, owner: str, words: Words) -> ExportedArchive:
    language, conversation_id = cast(ArchiveLanguage, words.language), request.path_params.get("conversation")
    if conversation_id is None:
        return await studio.archive.export_library(owner, language=language)
    kind = request.query_params.get("kind", "zip")
    if kind in ("md", "html"):
        return await studio.archive.export_paper(conversation_id, owner, cast(ReadableFormat, kind), language=language)
    return await studio.archive.export_conversation(conversation_id, owner, language=language)


async def _taken_in(studio: Studio, request: Request, owner: str, room: _Room) -> ImportReport:
    """Return the report of the import. The body is written to an unnamed file as it arrives.

    Raises RequestRefused when it is too large or invalid; StorageFailure.
    """
    size = announced_bytes(request)
    if size > room.archive_bytes:
        raise archive_too_large(room.archive_bytes)
    folder = studio.settings.home / _IMPORTS

    def write(file: BinaryIO, piece: bytes) -> None:
        room.check(folder, len(piece))
        file.write(piece)

    try:
        file = await asyncio.to_thread(_new_file, folder)
        with file:
            # It needs room twice: as the archive, and as its content.
            await asyncio.to_thread(room.check, folder, 2 * size)
            async for piece in _pieces(request, room.archive_bytes):
                await asyncio.to_thread(write, file, piece)
            await asyncio.to_thread(room.check, folder, file.tell())
            file.seek(0)
            return await studio.archive.import_archive(file, owner)
    except OSError as error:
        raise storage_failure(error) from error


async def _pieces(request: Request, limit_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body in pieces."""
    held, count = bytearray(), 0
    async for chunk in request.stream():
        count += len(chunk)
        if count > limit_bytes:
            raise archive_too_large(limit_bytes)
        held += chunk
        if len(held) >= _WRITE_AT_ONCE:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def _new_file(folder: Path) -> BinaryIO:
    make_private_folder(folder)
    return cast(BinaryIO, tempfile.TemporaryFile(dir=folder))


def _answer(text: str, status: int, code: str = "", *, conversation: str = "") -> Response:
    return JSONResponse({"isDone": status == 200, "text": text, "conversation": conversation}, status, NO_STORE)
