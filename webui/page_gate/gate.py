"""The gate before Gradio's routes: what the page uses and nothing else, each of it held against who asks and how much.
Of our own routes beside them it counts what changes something, or takes long.

What an event may do is decided here once for all of them: handlers that are `private` to the page are callable by
number, a session's name is made up by whoever asks, and Gradio would follow a path wherever it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, cast

import anyio.to_thread
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import MAX_VISITOR_UPLOAD_MEGABYTES
from webui.guard import PROGRAMS
from webui.page_gate.comers import Comer, PageSessions, comer_of
from webui.page_gate.limits import Limits
from webui.page_gate.shapes import EventShapes, Unfit, is_below, paths_in, read_json, session_of
from webui.page_gate.transit import Transit
from webui.sessions import Sessions
from webui.whole_json import whole_body

API = "/gradio_api/"
# Two masks of the painter and the longest text fit.
MOST_EVENT_BYTES = 4 << 20
_MB = 1 << 20

_READ = re.compile(r"info|app_id|startup-events|queue/status|upload_progress|login_check|user|theme\.css")
_STREAM = re.compile(r"queue/data|heartbeat/(?P<session>[^/]+)")
_RESULT = re.compile(r"call/[a-z_0-9]+/[0-9a-f]+")
_FILE = re.compile(r"file=(?P<path>.+)")
_EVENT = re.compile(r"run/predict|queue/join|cancel|reset|call/(?P<name>[a-z_0-9]+)")
# Each makes or takes a file that may be large.
_HEAVY = re.compile(r"/import|/export(/.*)?|/aivista/act/gallery\.pack|/aivista/files/[^/]+/zip")


class Turned(Exception):
    """A request that is turned away: `status`, and the key of the sentence that says why, with what fills it."""

    def __init__(self, status: int, key: str, **parameters: str | int) -> None:
        self.status = status
        self.key = key
        self.parameters = parameters
        super().__init__(key)


@dataclass
class House:
    """What the gate knows of the page: `config` is how Gradio describes it, `folder` where its uploads go. Without
    `limits` nobody but the operator comes, who may ask as often as they like."""

    sessions: Sessions
    config: Callable[[], dict[str, Any]]
    folder: Path
    limits: Limits | None = None
    is_behind_proxy: bool = False
    owners: PageSessions = field(default_factory=PageSessions)

    @cached_property
    def shapes(self) -> EventShapes:
        """The events of the page."""
        return EventShapes.of(self.config())

    @cached_property
    def transit(self) -> Transit:
        """The folder of the uploads."""
        return Transit(self.folder)


class _Asked(NamedTuple):
    """A request on its way: who asks, and the path below `API`."""

    comer: Comer
    scope: Scope
    path: str


class PageGate:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, house: Callable[[], House]) -> None:
        self.app = app
        self._make_house = house

    @cached_property
    def house(self) -> House:
        """What it knows, once the page is there."""
        return self._make_house()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_gradios, is_heavy = scope["path"].startswith(API), _HEAVY.fullmatch(scope["path"]) is not None
        # What only looks is free elsewhere but for the page, which comes with all of a conversation; and programs have
        # rates of their own.
        is_page = (scope["method"], scope["path"]) == ("GET", "/")
        is_free = scope["method"] in ("GET", "HEAD", "OPTIONS") and not is_heavy and not is_page
        if not is_gradios and (is_free or scope["path"].startswith(PROGRAMS)):
            await self.app(scope, receive, send)
            return
        house = self.house
        comer = comer_of(scope, house.sessions, is_behind_proxy=house.is_behind_proxy)
        try:
            if is_gradios:
                asked = _Asked(comer, scope, scope["path"].removeprefix(API))
                await self._let_through(asked, receive, send)
            else:
                await self._let_by(_Asked(comer, scope, scope["path"]), is_heavy, receive, send)
        except Turned as turned:
            answer = _answer(comer, turned) if is_gradios else _answer_beside(comer, turned, scope["path"])
            await answer(scope, receive, send)

    async def _let_by(self, asked: _Asked, is_heavy: bool, receive: Receive, send: Send) -> None:
        """Hand a request to a route of ours on. Raises Turned before anything was answered."""
        limits = self._limits_of(asked.comer)
        self._count(asked.comer, is_upload=is_heavy)
        if limits is None or not is_heavy:
            await self.app(asked.scope, receive, send)
            return
        with limits.at_work.one(asked.comer) as wait_s:
            if wait_s > 0:
                raise _too_many(wait_s)
            await self.app(asked.scope, receive, send)

    async def _let_through(self, asked: _Asked, receive: Receive, send: Send) -> None:
        """Hand the request on. Raises Turned before anything was answered."""
        match asked.scope["method"]:
            case "GET" | "HEAD":
                session = self._check_reading(asked)
                try:
                    await self.app(asked.scope, receive, send)
                except RuntimeError as error:
                    # Of a session that it does not know, as after a restart, Gradio 6.31 tells the browser in the
                    # stream, and then raises what nobody can answer any more: strangers would fill the log with it.
                    if not isinstance(error.__cause__, HTTPException) or session is None:
                        raise
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            case "POST" if _EVENT.fullmatch(asked.path):
                self._count(asked.comer, is_upload=False)
                body = await self._event(asked, receive)
                await self.app(asked.scope, _replayed(body, receive), send)
            case "POST" if asked.path == "upload":
                self._count(asked.comer, is_upload=True)
                await self._upload(asked, receive, send)
            case "OPTIONS":
                await self.app(asked.scope, receive, send)
            case _:
                raise Turned(404, "page_gate.nothing_here")

    def _check_reading(self, asked: _Asked) -> str | None:
        """Return the session whose stream is asked for, if one is."""
        if _READ.fullmatch(asked.path) or _RESULT.fullmatch(asked.path):
            return None
        if stream := _STREAM.fullmatch(asked.path):
            self._count(asked.comer, is_upload=False)
            # Of several values each reader takes another one.
            told = [one] if (one := stream["session"]) else _values(asked.scope, "session_hash")
            if len(told) > 1:
                raise Turned(422, "api.unreadable", problem="session_hash")
            return self._check_session(asked.comer, told[0] if told else None)
        found = _FILE.fullmatch(asked.path)
        if found is None or not self.house.transit.is_of(found["path"], asked.comer.name):
            raise Turned(404, "page_gate.nothing_here")
        return None

    async def _event(self, asked: _Asked, receive: Receive) -> bytes:
        """Return the body of an event that the page or a program could have sent."""
        house, body = self.house, whole_body(await _body(asked.scope, receive))
        try:
            told = read_json(body)
            self._check_session(asked.comer, told.get("session_hash"))
            event = _EVENT.fullmatch(asked.path)
            name = event["name"] if event else None
            if name is not None or asked.path in ("queue/join", "run/predict"):
                number = house.shapes.numbers.get(name) if name is not None else told.get("fn_index")
                if (number in house.shapes.queued) == (asked.path == "run/predict"):
                    raise Unfit("fn_index")
                await anyio.to_thread.run_sync(house.shapes.check, number, told.get("data"), house.folder)
                self._check_files(asked.comer, told)
        except Unfit as unfit:
            raise Turned(422, "api.unreadable", problem=str(unfit)) from None
        return body

    def _check_session(self, comer: Comer, told: object) -> str | None:
        """Return the session that is named, if one is, once it is theirs."""
        try:
            session = session_of(told)
        except Unfit:
            raise Turned(422, "api.unreadable", problem="session_hash") from None
        if session is not None and not self.house.owners.is_of(session, comer.name):
            raise Turned(404, "page_gate.not_your_session")
        return session

    def _check_files(self, comer: Comer, told: dict[str, Any]) -> None:
        house = self.house
        for path in (*paths_in(told["data"]), *paths_in(told.get("event_data"))):
            if not is_below(path, house.folder) or not house.transit.is_of(path, comer.name):
                raise Turned(404, "page_gate.no_such_upload")

    async def _upload(self, asked: _Asked, receive: Receive, send: Send) -> None:
        transit, comer = self.house.transit, asked.comer
        room = await transit.room()
        if self._limits_of(comer) is not None:
            room = min(room, transit.room_of(comer))
        most = _length(asked.scope) or min(room, transit.most_bytes_of_one)
        no_room = Turned(507, "page_gate.no_room")
        if room <= 0 or most > room:
            raise no_room
        sending = transit.begin(comer, most)
        # Gradio's own limit is the operator's.
        files = None if comer.is_operator else _FileSizes(Headers(scope=asked.scope).get("content-type", ""))
        body = _Counted(receive, most, no_room, files)
        answer = _Watched(
            send,
            lambda: _answer(comer, body.refusal) if body.refusal else None,
            asked.scope,
            lambda path: transit.keep(comer.name, path),
        )
        try:
            await self.app(asked.scope, body, answer)
        except _TooMuch:
            if body.refusal and not answer.has_begun:
                raise body.refusal from None
        finally:
            transit.end(sending, body.so_far)

    def _limits_of(self, comer: Comer) -> Limits | None:
        return None if comer.is_operator else self.house.limits

    def _count(self, comer: Comer, *, is_upload: bool) -> None:
        limits = self._limits_of(comer)
        if limits is None:
            return
        wait_s = (limits.uploads if is_upload else limits.events).wait_s(comer)
        if wait_s > 0:
            raise _too_many(wait_s)


class _TooMuch(MultipartParseError):
    """More has come than may. Gradio removes what it has of an upload that it cannot parse."""


class _FileSizes:
    """How large the files of an upload are, counted while they come."""

    def __init__(self, content_type: str) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        self._size_bytes = self._largest_bytes = 0
        callbacks: dict[str, Any] = {"on_part_begin": self._begin, "on_part_data": self._add}
        self._parser = MultipartParser(boundary, cast("Any", callbacks)) if boundary else None

    def is_too_large_with(self, data: bytes) -> bool:
        """Whether a file is larger than a visitor's may be, once this part of the body has come."""
        # What cannot be parsed Gradio refuses, in its own words.
        with suppress(MultipartParseError):
            if self._parser is not None:
                self._parser.write(data)
        return self._largest_bytes > MAX_VISITOR_UPLOAD_MEGABYTES * _MB

    def _begin(self) -> None:
        self._size_bytes = 0

    def _add(self, _: bytes, start: int, end: int) -> None:
        self._size_bytes += end - start
        self._largest_bytes = max(self._largest_bytes, self._size_bytes)


@dataclass
class _Counted:
    """`receive`, until it has brought more than there is room for, or a file that is too large."""

    receive: Receive
    room_bytes: int
    no_room: Turned
    files: _FileSizes | None
    so_far: int = 0
    refusal: Turned | None = None

    async def __call__(self) -> Message:
        message = await self.receive()
        data = message.get("body", b"")
        self.so_far += len(data)
        if self.so_far > self.room_bytes:
            self.refusal = self.no_room
        elif self.files is not None and self.files.is_too_large_with(data):
            self.refusal = Turned(413, "api.body_too_large", limit=MAX_VISITOR_UPLOAD_MEGABYTES)
        if self.refusal is not None:
            raise _TooMuch("too much")
        return message


class _Watched:
    """`send`, which has the paths kept that an upload's answer tells, or gives another answer instead."""

    def __init__(
        self, send: Send, instead: Callable[[], JSONResponse | None], scope: Scope, keep: Callable[[str], None]
    ) -> None:
        self.has_begun = False
        self._keep = keep
        self._send = send
        self._instead = instead
        self._scope = scope
        self._status = 0
        self._body = b""
        self._is_replaced = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            other = self._instead() if not self.has_begun else None
            self.has_begun = True
            if other is not None:
                self._is_replaced = True
                await other(self._scope, _nothing_more, self._send)
        elif message["type"] == "http.response.body" and len(self._body) < _MB:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                # Before it is told: whoever knows the path asks for it at once.
                for path in self._paths():
                    self._keep(path)
        if not self._is_replaced:
            await self._send(message)

    def _paths(self) -> list[str]:
        with suppress(ValueError):
            told = json.loads(self._body) if self._status == 200 and not self._is_replaced else []
            return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []
        return []


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


async def _body(scope: Scope, receive: Receive) -> bytes:
    too_large = Turned(413, "api.body_too_large", limit=MOST_EVENT_BYTES // _MB)
    if _length(scope) > MOST_EVENT_BYTES:
        raise too_large
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Turned(400, "api.unreadable", problem="HTTP")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_EVENT_BYTES:
            raise too_large
        if not message.get("more_body", False):
            return b"".join(parts)


def _length(scope: Scope) -> int:
    told = Headers(scope=scope).get("content-length", "")
    # So many digits that they cannot be a number are too many bytes as well.
    return int(told[:20]) if told.isascii() and told.isdigit() else 0


def _values(scope: Scope, name: str) -> list[str]:
    return QueryParams(scope["query_string"]).getlist(name)


def _replayed(body: bytes, receive: Receive) -> Receive:
    is_told = False

    async def replayed() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _too_many(wait_s: float) -> Turned:
    return Turned(429, "api.too_many_requests", seconds=ceil(wait_s))


def _answer(comer: Comer, turned: Turned) -> JSONResponse:
    return JSONResponse({"detail": _sentence(comer, turned)}, turned.status, _headers(turned))


def _answer_beside(comer: Comer, turned: Turned, path: str) -> Response:
    """Return the sentence in the form in which the page reads what a route of ours refuses."""
    sentence, headers = _sentence(comer, turned), _headers(turned)
    if path == "/" or path.startswith("/export"):
        return PlainTextResponse(sentence, turned.status, headers)
    told = {"isDone": False, "text": sentence} if path == "/import" else {"error": sentence}
    return JSONResponse(told, turned.status, headers)


def _sentence(comer: Comer, turned: Turned) -> str:
    return comer.words(turned.key, **turned.parameters)


def _headers(turned: Turned) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    seconds = turned.parameters.get("seconds")
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    return headers
