"""From a request's path to its answer."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from tests.openai_server import chat_rules, picture_rules
from tests.openai_server.answers import Answer, Event, HangUp, Picture, Text, WaitForRelease, Whole
from tests.openai_server.form import parse_form
from tests.openai_server.models import MODELS, ServedModel
from tests.openai_server.refusals import Json, Refused, Violation
from tests.openai_server.request import ChatRequest, PictureRequest
from tests.wire_server.connection import Connection, HttpRequest
from tests.wire_server.pictures import paint
from tests.wire_server.records import PATIENCE_S

Request = ChatRequest | PictureRequest
# Looks at the request and says what to answer; None leaves it to the default.
Brain = Callable[[ChatRequest], Answer | None] | Callable[[PictureRequest], Answer | None]

_JSON = {"content-type": "application/json"}
_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
_HEADERS = frozenset(
    ["host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length", "authorization"]
)


@dataclass
class Service:
    """Everything one server is: its key, its script, and what it has seen."""

    key: str | None
    chats: list[ChatRequest] = field(default_factory=list)
    pictures: list[PictureRequest] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    chat_answers: deque[Answer] = field(default_factory=deque)
    picture_answers: deque[Answer] = field(default_factory=deque)
    chat_brain: Callable[[ChatRequest], Answer | None] | None = None
    picture_brain: Callable[[PictureRequest], Answer | None] | None = None
    held: int = 0
    disconnects: int = 0
    _count: int = 0
    _waiting: set[asyncio.Future[None]] = field(default_factory=set)
    _lets_next_pass: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Return when the claim about what was seen holds. Raises TimeoutError when it does not come true in time."""
        with self._changed:
            if not self._changed.wait_for(is_true, PATIENCE_S):
                raise TimeoutError(f"still not so after {PATIENCE_S} s; seen: {self}")

    def release(self) -> None:
        """Let every held answer go on, or the next that is held: its request may still be on its way."""
        self._lets_next_pass = not self._waiting
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def handle(self, http: HttpRequest, connection: Connection) -> None:
        """Answer one HTTP request."""
        self._count += 1
        try:
            await self._serve(http, connection)
        except Refused as refusal:
            self.violations.append(Violation(refusal.rule, refusal.message, self._count))
            connection.write_whole(refusal.status, _JSON, orjson.dumps(refusal.body))
        except Exception as fault:
            self.faults.append(fault)
            connection.hang_up()

    async def _serve(self, http: HttpRequest, connection: Connection) -> None:
        self._check_headers(http)
        if http.method == "GET" and http.path.startswith("/files/"):
            self.fetched.append(http.path)
            if "missing" in http.path:
                connection.write_whole(404, {}, b"")
            else:
                connection.write_whole(200, {"content-type": "image/png"}, paint(1024, 1024, "image/png", http.path))
            return
        kept = {name: value for name, value in http.headers.items() if name != "authorization"}
        if http.method != "POST" or http.path not in _PATHS:
            raise Refused("path", f"Invalid URL ({http.method} {http.path})", status=404)
        request = self._chat(http, kept) if http.path == _CHAT else self._picture(http, kept)
        await self._play(self._next(request), request, connection)

    def _chat(self, http: HttpRequest, headers: dict[str, str]) -> ChatRequest:
        body = _parsed(http)
        request = ChatRequest(self._count, headers, body)
        self.chats.append(request)
        chat_rules.check_chat(body, _model(body.get("model"), paints=False))
        return request

    def _picture(self, http: HttpRequest, headers: dict[str, str]) -> PictureRequest:
        if http.path == _EDITS:
            fields, files = parse_form(bytes(http.body), http.headers.get("content-type", ""))
            request = PictureRequest(self._count, headers, True, fields, files)
            self.pictures.append(request)
            picture_rules.check_edit(fields, files, _model(fields.get("model"), paints=True))
            return request
        body = _parsed(http)
        fields = picture_rules.check_generation(body, _model(body.get("model"), paints=True))
        request = PictureRequest(self._count, headers, False, fields)
        self.pictures.append(request)
        return request

    def _check_headers(self, http: HttpRequest) -> None:
        given = http.headers.get("authorization")
        if given != (None if self.key is None else f"Bearer {self.key}"):
            raise Refused("key", f"Incorrect API key provided: {given}", status=401, code="invalid_api_key")
        if unknown := set(http.headers) - _HEADERS:
            raise Refused("header", f"{min(unknown)} tells more than was asked")

    def _next(self, request: Request) -> Answer:
        answer: Answer | None = None
        if isinstance(request, ChatRequest):
            if self.chat_answers:
                return self.chat_answers.popleft()
            answer = self.chat_brain(request) if self.chat_brain is not None else None
            return answer or Text("Hello.")
        if self.picture_answers:
            return self.picture_answers.popleft()
        answer = self.picture_brain(request) if self.picture_brain is not None else None
        return answer or Picture()

    async def _play(self, answer: Answer, request: Request, connection: Connection) -> None:
        connection.on_lost = self._note_leaving
        for step in answer.steps(request):
            match step:
                case WaitForRelease():
                    await self._wait()
                case HangUp():
                    connection.hang_up()
                    return
                case Whole():
                    body = step.body if isinstance(step.body, bytes) else orjson.dumps(step.body)
                    connection.write_whole(step.status, {**_JSON, **step.headers}, body)
                    return
                case Event():
                    data = step.data if isinstance(step.data, bytes) else orjson.dumps(step.data)
                    if not connection.has_begun:
                        connection.write_head(200, _STREAM)
                    connection.write_piece(b"data: %b\n\n" % data)
            await connection.drain()
        connection.write_end()

    async def _wait(self) -> None:
        if self._lets_next_pass:
            self._lets_next_pass = False
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        self._change(held=1)
        try:
            await future
        finally:
            self._waiting.discard(future)
            self._change(held=-1)

    def _note_leaving(self) -> None:
        self._change(disconnects=1)

    def _change(self, *, held: int = 0, disconnects: int = 0) -> None:
        with self._changed:
            self.held += held
            self.disconnects += disconnects
            self._changed.notify_all()


_CHAT, _GENERATIONS, _EDITS = "/v1/chat/completions", "/v1/images/generations", "/v1/images/edits"
_PATHS = (_CHAT, _GENERATIONS, _EDITS)


def _parsed(http: HttpRequest) -> Json:
    if http.headers.get("content-type") != "application/json":
        raise Refused("content_type", f"Unsupported content type: {http.headers.get('content-type')}", status=415)
    try:
        body = orjson.loads(http.body)
    except orjson.JSONDecodeError as fault:
        raise Refused("json", f"We could not parse the JSON body of your request: {fault}") from fault
    if not isinstance(body, dict):
        raise Refused("json", "The body must be an object.")
    return body


def _model(name: object, *, paints: bool) -> ServedModel:
    model = MODELS.get(str(name))
    if model is None or model.paints is not paints:
        raise Refused("model", f"The model `{name}` does not exist", status=404, code="model_not_found")
    return model
