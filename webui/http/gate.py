"""The gate before Gradio's routes. It opens only what the page and programs use, and checks each request against its
sender and their limits. Of our own routes it counts those that change something or take long.

All events are checked here, in one place: handlers that are `private` to the page can still be called by number, a
client can make up the name of a session, and Gradio would follow a file path anywhere in the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread
from cachetools import LRUCache
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import MAX_VISITOR_UPLOAD_MEGABYTES
from webui.http.clients import ActiveJobs, Client, Rate, RejectedRequest, Upload, Uploads, client_of
from webui.http.hosts import PROGRAMS
from webui.http.sessions import Sessions, announced_bytes, body_of
from webui.whole_json import whole_body

_GRADIO = "/gradio_api/"
# The open routes below it. The page sends its events to run/predict; programs use streams, results and the others.
_READ = re.compile(
    r"info|app_id|startup-events|queue/status|upload_progress|login_check|user|theme\.css|call/[a-z_0-9]+/[0-9a-f]+"
)
_STREAM = re.compile(r"queue/data|heartbeat/(?P<session>[^/]+)")
_FILE = re.compile(r"file=(?P<path>.+)")
_EVENT = re.compile(r"(?P<page>run/predict)|queue/join|call/(?P<name>[a-z_0-9]+)")
_END = re.compile(r"cancel|reset")
# Our own routes that make or take a file that may be large.
_HEAVY = re.compile(r"/import|/export(/.*)?|/aivista/act/gallery\.pack|/aivista/files/[^/]+/zip")

_MB = 1 << 20
# Two masks of the painter and the longest text fit.
_MOST_EVENT_BYTES = 4 << 20
_DEEPEST = 50
_SESSION = re.compile(r"[A-Za-z0-9-]{1,64}")
_MOST_SESSIONS = 20_000


class _Event(NamedTuple):
    """An event of the page's configuration: the kinds of its inputs, and whether it waits in Gradio's queue.
    Programs' events do; the page's own are answered at once."""

    kinds: tuple[str, ...]
    is_queued: bool


class PageGate:
    """ASGI middleware. `config` returns Gradio's description of the page, `folder` its upload folder: both exist
    once the page does."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        sessions: Sessions,
        config: Callable[[], Mapping[str, Any]],
        folder: Callable[[], Path],
        is_behind_proxy: bool = False,
        events_a_minute: float = 300,
        uploads_a_minute: float = 60,
    ) -> None:
        self.app = app
        self._sessions = sessions
        self._config = config
        self._folder = folder
        self._is_behind_proxy = is_behind_proxy
        self._event_rate, self._upload_rate, self._at_work = Rate(events_a_minute), Rate(uploads_a_minute), ActiveJobs()
        # The owner of each of Gradio's sessions: whoever names it first. A session opens a queue of answers.
        self._owners: LRUCache[str, str] = LRUCache(_MOST_SESSIONS)

    @cached_property
    def _uploads(self) -> Uploads:
        return Uploads(self._folder())

    @cached_property
    def _events(self) -> dict[object, _Event]:
        """The events by number; those with a public name also by name."""
        config = self._config()
        types = {one["id"]: str(one["type"]) for one in config["components"]}
        found: dict[object, _Event] = {}
        for one in config["dependencies"]:
            if one["backend_fn"]:
                kinds = tuple(types[part] for part in one["inputs"])
                found[one["id"]] = event = _Event(kinds, one["queue"] is not False)
                if one["api_visibility"] == "public":
                    found[one["api_name"]] = event
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        is_gradios, is_heavy = path.startswith(_GRADIO), _HEAVY.fullmatch(path) is not None
        # Reading is free elsewhere, except for the page itself, which comes with a whole conversation. Programs have
        # rates of their own.
        is_free = method in ("GET", "HEAD", "OPTIONS") and not is_heavy and (method, path) != ("GET", "/")
        if not is_gradios and (is_free or path.startswith(PROGRAMS)):
            await self.app(scope, receive, send)
            return
        client = client_of(scope, self._sessions, is_behind_proxy=self._is_behind_proxy)
        try:
            if is_gradios:
                await self._gradio(client, scope, receive, send)
            elif is_heavy:
                self._upload_rate.count(client)
                with self._at_work.one(client):
                    await self.app(scope, receive, send)
            else:
                self._event_rate.count(client)
                await self.app(scope, receive, send)
        except RejectedRequest as rejected:
            await _answer(client, rejected, path)(scope, receive, send)

    async def _gradio(self, client: Client, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to Gradio, if its route is open. Raises RejectedRequest before anything was answered."""
        path = scope["path"].removeprefix(_GRADIO)
        match scope["method"]:
            case "OPTIONS":
                await self.app(scope, receive, send)
            case "GET" | "HEAD" if _READ.fullmatch(path):
                await self.app(scope, receive, send)
            case "GET" | "HEAD" if (file := _FILE.fullmatch(path)) and self._uploads.is_of(file["path"], client):
                await self.app(scope, receive, send)
            case "GET" | "HEAD" if stream := _STREAM.fullmatch(path):
                self._event_rate.count(client)
                await self._stream(client, stream["session"], scope, receive, send)
            case "POST" if _EVENT.fullmatch(path) or _END.fullmatch(path):
                self._event_rate.count(client)
                body = whole_body(await _body(scope, receive))
                content, files = await anyio.to_thread.run_sync(_read, body)
                self._check_event(client, path, content, files)
                await self.app(scope, _replayed(body, receive), send)
            case "POST" if path == "upload":
                self._upload_rate.count(client)
                await self._upload(client, scope, receive, send)
            case _:
                raise RejectedRequest(404, "refusal.nothing_here")

    async def _stream(self, client: Client, session: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        named = [session] if session else QueryParams(scope["query_string"]).getlist("session_hash")
        # Each reader takes another one of several values.
        if len(named) > 1:
            raise _unreadable("session_hash")
        self._check_session(client, named[0] if named else None)
        try:
            await self.app(scope, receive, send)
        except RuntimeError as error:
            # For a session that it does not know, as after a restart, Gradio 6.31 tells the browser so in the stream,
            # and then raises an error that nobody can answer any more: strangers could fill the log with it.
            if not isinstance(error.__cause__, HTTPException) or not named:
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _check_session(self, client: Client, session: object) -> None:
        """Give a session without an owner to this client. Reject a session of somebody else, and a name that
        Gradio's client never makes."""
        if session is None:
            return
        if not isinstance(session, str) or not _SESSION.fullmatch(session):
            raise _unreadable("session_hash")
        if self._owners.setdefault(session, client.name) != client.name:
            raise RejectedRequest(404, "refusal.not_your_session")

    def _check_event(self, client: Client, path: str, content: dict[str, Any], files: list[str]) -> None:
        """Check an event against the page's configuration: neither the page nor a program could have sent anything
        else."""
        self._check_session(client, content.get("session_hash"))
        asked = _EVENT.fullmatch(path)
        if asked is None:
            return
        number = asked["name"] or content.get("fn_index")
        # In Python, True is 1.
        event = self._events.get(number) if asked["name"] or type(number) is int else None
        if event is None or event.is_queued == bool(asked["page"]):
            raise _unreadable("fn_index")
        data = content.get("data")
        if not isinstance(data, list) or len(data) != len(event.kinds):
            raise _unreadable("data")
        for place, (kind, value) in enumerate(zip(event.kinds, data, strict=True)):
            if not _fits(kind, value):
                raise _unreadable(f"data.{place}")
        if not all(self._uploads.is_of(one, client) for one in files):
            raise RejectedRequest(404, "refusal.no_such_upload")

    async def _upload(self, client: Client, scope: Scope, receive: Receive, send: Send) -> None:
        upload = await self._uploads.begin(client, announced_bytes(Request(scope)))
        passing = _PassingUpload(scope, receive, send, upload, self._uploads)
        try:
            with suppress(_TooMuch):
                await self.app(scope, passing.receive, passing.send)
        finally:
            self._uploads.end(upload, passing.size_bytes)
        if passing.rejected is not None:
            raise passing.rejected


class _TooMuch(MultipartParseError):
    """The body is too large. Gradio removes what it has of an upload that it cannot parse."""


class _PassingUpload:
    """Passes an upload on to Gradio until it exceeds the free room or the limit of a file. Of Gradio's answer it
    records the owner of each path before passing it on."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, upload: Upload, uploads: Uploads) -> None:
        self.size_bytes = 0
        self.rejected: RejectedRequest | None = None
        self._receive = receive
        self._send = send
        self._upload = upload
        self._uploads = uploads
        self._file_bytes = self._largest_bytes = 0
        self._status = 0
        self._answer = b""
        boundary = parse_options_header(Headers(scope=scope).get("content-type", ""))[1].get(b"boundary", b"")
        callbacks: Any = {"on_part_begin": self._on_part_begin, "on_part_data": self._on_part_data}
        self._parser = MultipartParser(boundary, callbacks) if boundary else None

    async def receive(self) -> Message:
        message = await self._receive()
        data = message.get("body", b"")
        self.size_bytes += len(data)
        # Gradio refuses what cannot be parsed, in its own words.
        with suppress(MultipartParseError):
            if self._parser is not None:
                self._parser.write(data)
        if self.size_bytes > self._upload.size_bytes:
            self.rejected = RejectedRequest(507, "refusal.no_room")
        # Gradio's own limit is the operator's.
        elif not self._upload.client.is_operator and self._largest_bytes > MAX_VISITOR_UPLOAD_MEGABYTES * _MB:
            self.rejected = RejectedRequest(413, "api.body_too_large", limit=MAX_VISITOR_UPLOAD_MEGABYTES)
        if self.rejected is not None:
            raise _TooMuch("too much")
        return message

    def _on_part_begin(self) -> None:
        self._file_bytes = 0

    def _on_part_data(self, _: bytes, start: int, end: int) -> None:
        self._file_bytes += end - start
        self._largest_bytes = max(self._largest_bytes, self._file_bytes)

    async def send(self, message: Message) -> None:
        if self.rejected is not None:
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
        elif self._status == 200:
            self._answer += message.get("body", b"")
            if not message.get("more_body", False):
                # The owner is recorded before the answer is sent: the client asks for the path at once.
                for path in json.loads(self._answer):
                    self._uploads.keep(path, self._upload.client)
        await self._send(message)


def _read(body: bytes) -> tuple[dict[str, Any], list[str]]:
    """Return the body as JSON, and all paths in it that name files. Reject a body that is no JSON object, holds
    numbers that JSON does not have, or a NUL (neither paths nor records can hold it), or is nested deeper than
    anything of the page."""
    files = []
    try:
        # Decoded strictly: JSON read from bytes may hold halves of surrogate pairs.
        found = json.loads(body.decode())
        for one in _within(found):
            if (isinstance(one, str) and "\0" in one) or (isinstance(one, float) and not isfinite(one)):
                raise ValueError("no such value")
            if isinstance(one, dict) and "path" in one:
                files.append(str(one["path"]))
    except (ValueError, RecursionError):
        raise _unreadable("JSON") from None
    if not isinstance(found, dict):
        raise _unreadable("JSON")
    return found, files


def _within(found: object, depth: int = 0) -> Iterator[object]:
    """Yield a value and everything in it. Raises ValueError when it is nested too deeply."""
    if depth > _DEEPEST:
        raise ValueError("too deep")
    yield found
    inner = [*found, *found.values()] if isinstance(found, dict) else found if isinstance(found, list) else ()
    for one in inner:
        yield from _within(one, depth + 1)


def _fits(kind: str, value: Any) -> bool:
    """Whether a value fits the kind of an input; the page has no kinds but these."""
    match kind, value:
        case ("textbox" | "dropdown" | "radio" | "multimodaltextbox", None):
            return True
        case ("textbox" | "dropdown" | "radio", str()) | ("checkbox", bool()):
            return True
        case ("multimodaltextbox", {"text": str(), "files": list(files)}):
            return all(isinstance(one, dict) and isinstance(one.get("path"), str) for one in files)
        case ("multimodaltextbox", {"text": str(), **rest}):
            return rest.get("files") is None
        case _:
            return False


async def _body(scope: Scope, receive: Receive) -> bytes:
    request = Request(scope, receive)
    body = await body_of(request, _MOST_EVENT_BYTES) if announced_bytes(request) <= _MOST_EVENT_BYTES else None
    if body is None:
        raise RejectedRequest(413, "api.body_too_large", limit=_MOST_EVENT_BYTES // _MB)
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


def _unreadable(problem: str) -> RejectedRequest:
    return RejectedRequest(422, "api.unreadable", problem=problem)


def _answer(client: Client, rejected: RejectedRequest, path: str) -> Response:
    """Return the sentence in the form in which Gradio's client, or the page, reads a refusal."""
    sentence, headers = client.words(rejected.key, **rejected.parameters), {"Cache-Control": "no-store"}
    if "seconds" in rejected.parameters:
        headers["Retry-After"] = str(rejected.parameters["seconds"])
    if path == "/" or path.startswith("/export"):
        return PlainTextResponse(sentence, rejected.status, headers)
    answer: dict[str, object] = {"error": sentence}
    if path.startswith(_GRADIO):
        answer = {"detail": sentence}
    elif path == "/import":
        answer = {"isDone": False, "text": sentence}
    return JSONResponse(answer, rejected.status, headers)
