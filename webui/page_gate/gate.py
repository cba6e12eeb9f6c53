"""The gate before Gradio's routes: what the page uses and nothing else, each of it held against who asks and how much.

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
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webui.api.rates import Buckets
from webui.page_gate.comers import Comer, PageSessions, comer_of
from webui.page_gate.shapes import EventShapes, Unfit, paths_in, read_json, session_of
from webui.page_gate.transit import Transit
from webui.sessions import Sessions

API = "/gradio_api/"
# Two masks of the painter and the longest text fit.
MOST_EVENT_BYTES = 4 << 20
_MB = 1 << 20
_EVENTS_A_MINUTE, _UPLOADS_A_MINUTE = 300.0, 60.0
# Behind one address may be an office.
_OF_ONE_ADDRESS = 5

_READ = re.compile(r"info|app_id|startup-events|queue/status|upload_progress|login_check|user|theme\.css")
_STREAM = re.compile(r"queue/data|heartbeat/(?P<session>[^/]+)")
_RESULT = re.compile(r"call/[a-z_0-9]+/[0-9a-f]+")
_FILE = re.compile(r"file=(?P<path>.+)")
_EVENT = re.compile(r"queue/join|cancel|reset|call/(?P<name>[a-z_0-9]+)")


class Turned(Exception):
    """A request that is turned away: `status`, and the key of the sentence that says why, with what fills it."""

    def __init__(self, status: int, key: str, **parameters: str | int) -> None:
        self.status = status
        self.key = key
        self.parameters = parameters
        super().__init__(key)


@dataclass
class Limits:
    """How often one visitor may ask, and all behind one address together."""

    events: Buckets = field(default_factory=lambda: Buckets(_EVENTS_A_MINUTE))
    uploads: Buckets = field(default_factory=lambda: Buckets(_UPLOADS_A_MINUTE))
    events_of_address: Buckets = field(default_factory=lambda: Buckets(_EVENTS_A_MINUTE * _OF_ONE_ADDRESS))
    uploads_of_address: Buckets = field(default_factory=lambda: Buckets(_UPLOADS_A_MINUTE * _OF_ONE_ADDRESS))


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
        if scope["type"] != "http" or not scope["path"].startswith(API):
            await self.app(scope, receive, send)
            return
        house = self.house
        comer = comer_of(scope, house.sessions, is_behind_proxy=house.is_behind_proxy)
        asked = _Asked(comer, scope, scope["path"].removeprefix(API))
        try:
            await self._let_through(asked, receive, send)
        except Turned as turned:
            await _answer(comer, turned)(scope, receive, send)

    async def _let_through(self, asked: _Asked, receive: Receive, send: Send) -> None:
        """Hand the request on. Raises Turned before anything was answered."""
        match asked.scope["method"]:
            case "GET" | "HEAD":
                self._check_reading(asked)
                await self.app(asked.scope, receive, send)
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

    def _check_reading(self, asked: _Asked) -> None:
        if _READ.fullmatch(asked.path) or _RESULT.fullmatch(asked.path):
            return
        if stream := _STREAM.fullmatch(asked.path):
            self._count(asked.comer, is_upload=False)
            query = parse_qs(asked.scope["query_string"].decode("latin-1"))
            told = stream["session"] or next(iter(query.get("session_hash", [])), None)
            self._check_session(asked.comer, told)
            return
        found = _FILE.fullmatch(asked.path)
        if found is None or not self.house.transit.is_of(found["path"], asked.comer.name):
            raise Turned(404, "page_gate.nothing_here")

    async def _event(self, asked: _Asked, receive: Receive) -> bytes:
        """Return the body of an event that the page could have sent."""
        house, body = self.house, await _body(asked.scope, receive)
        try:
            told = read_json(body)
            self._check_session(asked.comer, told.get("session_hash"))
            event = _EVENT.fullmatch(asked.path)
            name = event["name"] if event else None
            if name is not None or asked.path == "queue/join":
                number = house.shapes.numbers.get(name) if name is not None else told.get("fn_index")
                await anyio.to_thread.run_sync(house.shapes.check, number, told.get("data"), house.folder)
                self._check_files(asked.comer, told)
        except Unfit as unfit:
            raise Turned(422, "api.unreadable", problem=str(unfit)) from None
        return body

    def _check_session(self, comer: Comer, told: object) -> None:
        try:
            session = session_of(told)
        except Unfit:
            raise Turned(422, "api.unreadable", problem="session_hash") from None
        if session is not None and not self.house.owners.is_of(session, comer.name):
            raise Turned(404, "page_gate.not_your_session")

    def _check_files(self, comer: Comer, told: dict[str, Any]) -> None:
        house = self.house
        for path in (*paths_in(told["data"]), *paths_in(told.get("event_data"))):
            is_ours = "\0" not in path and Path(path).resolve().is_relative_to(house.folder)
            if not is_ours or not house.transit.is_of(path, comer.name):
                raise Turned(404, "page_gate.no_such_upload")

    async def _upload(self, asked: _Asked, receive: Receive, send: Send) -> None:
        house, name = self.house, asked.comer.name
        room = await anyio.to_thread.run_sync(house.transit.room)
        if house.limits is not None:
            room = min(room, house.transit.room_of(name))
        refusal = Turned(507, "page_gate.no_room")
        if _length(asked.scope) > room:
            raise refusal
        body = _Counted(receive, room)
        answer = _Watched(send, lambda: _answer(asked.comer, refusal) if body.is_too_much else None, asked.scope)
        try:
            await self.app(asked.scope, body, answer)
        except _TooMuch:
            if not answer.has_begun:
                raise refusal from None
        finally:
            house.transit.note(name, body.so_far)
        for path in answer.paths:
            house.transit.keep(name, path)

    def _count(self, comer: Comer, *, is_upload: bool) -> None:
        limits = self.house.limits
        if limits is None:
            return
        own, all_there = (
            (limits.uploads, limits.uploads_of_address) if is_upload else (limits.events, limits.events_of_address)
        )
        wait_s = own.take(comer.name)
        if wait_s == 0 and comer.address is not None:
            wait_s = all_there.take(comer.address)
        if wait_s > 0:
            raise Turned(429, "api.too_many_requests", seconds=ceil(wait_s))


class _TooMuch(Exception):
    """More has come than there was room for."""


@dataclass
class _Counted:
    """`receive`, until it has brought more than there is room for."""

    receive: Receive
    room_bytes: int
    so_far: int = 0
    is_too_much: bool = False

    async def __call__(self) -> Message:
        message = await self.receive()
        self.so_far += len(message.get("body", b""))
        if self.so_far > self.room_bytes:
            self.is_too_much = True
            raise _TooMuch
        return message


class _Watched:
    """`send`, which remembers the paths that an upload's answer tells, or gives another answer instead."""

    def __init__(self, send: Send, instead: Callable[[], JSONResponse | None], scope: Scope) -> None:
        self.has_begun = False
        self._send = send
        self._instead = instead
        self._scope = scope
        self._status = 0
        self._body = b""
        self._is_replaced = False

    @property
    def paths(self) -> list[str]:
        """The paths of the files that were taken."""
        with suppress(ValueError):
            told = json.loads(self._body) if self._status == 200 and not self._is_replaced else []
            return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []
        return []

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
        if not self._is_replaced:
            await self._send(message)


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
    return int(told) if told.isascii() and told.isdigit() else 0


def _replayed(body: bytes, receive: Receive) -> Receive:
    is_told = False

    async def replayed() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _answer(comer: Comer, turned: Turned) -> JSONResponse:
    headers = {"Cache-Control": "no-store"}
    seconds = turned.parameters.get("seconds")
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    return JSONResponse({"detail": comer.words(turned.key, **turned.parameters)}, turned.status, headers)
