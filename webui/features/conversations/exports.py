"""Conversations as files: out to the browser that asks, and in from it. Both for their owner only."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent import (
    OPERATOR,
    ArchiveLanguage,
    ArchiveLimits,
    ErrorCode,
    ExportedArchive,
    ImportReport,
    ReadableFormat,
    StorageFailure,
    Studio,
    archive_too_large,
    make_private_folder,
    storage_failure,
)
from webui.http.sessions import Sessions, Visitor
from webui.http.visitor_routes import NO_STORE, visitor_route
from webui.words import Words

_TYPES = {".zip": "application/zip", ".md": "text/markdown; charset=utf-8", ".html": "text/html; charset=utf-8"}
_IMPORTS = "imports"
_WRITE_AT_ONCE = 1 << 20
_MOST_BYTES_OF_VISITOR = 256 << 20
# Free for the records and the pictures of everybody else.
_RESERVE_BYTES = 1 << 30


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def export_routes(
    studio: Callable[[], Studio],
    sessions: Sessions,
    limits: ArchiveLimits | None = None,
    free_bytes: Callable[[Path], int] = _free_bytes,
) -> list[Route]:
    """Return the routes `/export/{conversation}`, `/export` for all conversations, and `/import`.

    `?kind=` is `zip` (the default), `md` or `html`. An export answers 404 for a conversation its owner does not have,
    413 for what is too large, each with one sentence in the visitor's language. `/import` takes a ZIP as the body of a
    POST and answers {"isDone", "text", "conversation"}: the sentence to show, and the id of the newest conversation
    that came in. `free_bytes` tells what is free on the disk of a folder: where others come, theirs have less room than
    the operator's, and must leave a reserve.
    """
    most = (limits or ArchiveLimits()).archive_bytes

    def room_for(visitor: Visitor) -> _Room:
        if not sessions.is_shared or visitor.owner == OPERATOR:
            return _Room(most, 0, free_bytes)
        return _Room(min(most, _MOST_BYTES_OF_VISITOR), _RESERVE_BYTES, free_bytes)

    async def export(request: Request, visitor: Visitor) -> Response:
        return _TemporaryFile(await _made(studio(), request, visitor.owner, visitor.words))

    async def take_in(request: Request, visitor: Visitor) -> Response:
        report = await _taken_in(studio(), request, visitor.owner, room_for(visitor))
        newest = report.conversations[-1].id if report.conversations else ""
        return _answer(_told(visitor.words, report), 200, conversation=newest)

    def asking(request: Request) -> Visitor | None:
        # The type of the body is one that no form of another site can send unasked.
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
    """How large an archive may be, and what must stay free beside it."""

    archive_bytes: int
    reserve_bytes: int
    free_bytes: Callable[[Path], int]

    def check(self, folder: Path, more_bytes: int) -> None:
        """Look whether so much more fits onto the disk. Raises StorageFailure, OSError."""
        if self.free_bytes(folder) < self.reserve_bytes + more_bytes:
            raise StorageFailure(ErrorCode.DISK_FULL)


class _TemporaryFile(FileResponse):
    """A file that is sent and removed, also when nobody waits for its end."""

    def __init__(self, made: ExportedArchive) -> None:
        self._made = made
        super().__init__(made.path, headers=NO_STORE, media_type=_TYPES[Path(made.name).suffix], filename=made.name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await asyncio.to_thread(self._made.remove)


async def _made(studio: Studio, request: Request, owner: str, words: Words) -> ExportedArchive:
    language, conversation_id = cast(ArchiveLanguage, words.language), request.path_params.get("conversation")
    if conversation_id is None:
        return await studio.archive.export_library(owner, language=language)
    kind = request.query_params.get("kind", "zip")
    if kind in ("md", "html"):
        return await studio.archive.export_paper(conversation_id, owner, cast(ReadableFormat, kind), language=language)
    return await studio.archive.export_conversation(conversation_id, owner, language=language)


async def _taken_in(studio: Studio, request: Request, owner: str, room: _Room) -> ImportReport:
    """Return what came in. What is sent is on the disk as it arrives, in a file without a name.

    Raises RequestRefused when it is too large or not as it should be; StorageFailure.
    """
    announced = request.headers.get("content-length", "")
    # No archive has twenty digits of bytes.
    size = int(announced[:20]) if announced.isascii() and announced.isdigit() else 0
    if size > room.archive_bytes:
        raise archive_too_large(room.archive_bytes)
    folder = studio.settings.home / _IMPORTS

    def write(file: BinaryIO, piece: bytes) -> None:
        room.check(folder, len(piece))
        file.write(piece)

    try:
        file = await asyncio.to_thread(_new_file, folder)
        with file:
            # Once as it is sent, and once more as what is in it.
            await asyncio.to_thread(room.check, folder, 2 * size)
            async for piece in _pieces(request, room.archive_bytes):
                await asyncio.to_thread(write, file, piece)
            await asyncio.to_thread(room.check, folder, file.tell())
            file.seek(0)
            return await studio.archive.import_archive(file, owner)
    except OSError as error:
        raise storage_failure(error) from error


async def _pieces(request: Request, limit_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body, some of it at once."""
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


def _told(words: Words, report: ImportReport) -> str:
    count = len(report.conversations)
    text = words.counted("conversations.imported", count) if count else words("conversations.imported_none")
    return words("conversations.lost", text=text, count=report.lost_count) if report.lost_count else text


def _answer(text: str, status: int, code: str = "", *, conversation: str = "") -> Response:
    return JSONResponse({"isDone": status == 200, "text": text, "conversation": conversation}, status, NO_STORE)
