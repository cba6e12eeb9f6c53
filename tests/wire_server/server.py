"""The strict Gemini API as a test uses it, in a thread or a process of its own, and from a request to its answer."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, ClassVar, Self

import orjson

from tests.support.lines import read_line, running
from tests.support.waiting import PATIENCE_S, wait_until
from tests.wire_server import rules
from tests.wire_server.answers import Answer, Asked, Finish, PictureAnswer, Text
from tests.wire_server.chunks import Writer, prompt_tokens
from tests.wire_server.control import answer_from_json, described
from tests.wire_server.models import MODELS, RETIRED, Kind, embedded, listed, page
from tests.wire_server.refusals import Declared, Json, Refused, Violation, bad_key, refuse, retired_model, unknown_model
from tests.wire_server.request import WireRequest
from tests.wire_server.serving import MAX_BODY_BYTES, Connection, HttpRequest, Serving
from tests.wire_server.signatures import Ledger

ROOT = Path(__file__).parents[2]
# Looks at the request and says what to answer; None leaves it to the default.
Brain = Callable[[WireRequest], Answer | None]
_PATH = re.compile(r"/(?P<version>v1|v1beta)/models(?:/(?P<model>[^/:]+)(?::(?P<method>\w+))?)?")
_SECRET_HEADERS = frozenset({"x-goog-api-key", "authorization", "cookie"})
_FEW_TOKENS = 16
_COMMON_HEADERS = {
    "server": "scaffolding on HTTPServer2",
    "x-content-type-options": "nosniff",
    "x-gemini-service-tier": "standard",
}


class GeminiServer(Serving):
    """A strict Gemini API. Use as a context manager; an exception of a test's own brain is raised on leaving.

    `requests` is every request whose body could be read, in the order of arrival; `keeps_bodies=False` keeps only
    their sizes, for measurements.
    """

    json_headers: ClassVar = {"content-type": "application/json; charset=UTF-8", **_COMMON_HEADERS}
    stream_headers: ClassVar = {
        "content-type": "text/event-stream",
        "content-disposition": "attachment",
        **_COMMON_HEADERS,
    }
    event_end = b"\r\n\r\n"

    def __init__(
        self,
        *,
        keeps_bodies: bool = True,
        max_body_bytes: int = MAX_BODY_BYTES,
        port: int = 0,
        text: Brain | None = None,
        image: Brain | None = None,
    ) -> None:
        super().__init__(port=port, most_bytes=max_body_bytes)
        self.requests: list[WireRequest] = []
        self._keeps_bodies = keeps_bodies
        self._ledger = Ledger()
        self._dice: Random | None = None
        self._rejected_keys: set[str] = set()
        self._withheld: set[str] = set()
        self._denied_keys: dict[str | None, Json] = {}
        self._denied_models: dict[str, Json] = {}
        for kind, brain in ((Kind.TEXT, text), (Kind.IMAGE, image)):
            self.add_answers(kind, [brain] if brain is not None else [])

    def count_as_recorded(self, seed: int) -> None:
        """Count tokens from now on as recorded answers do: no two alike."""
        self._dice = Random(seed)

    def on_text(self, *answers: Answer | Brain) -> None:
        """Queue answers of the text models; a callable answers whenever the queue is empty."""
        self.add_answers(Kind.TEXT, answers)

    def on_image(self, *answers: Answer | Brain) -> None:
        """Queue answers of the image models; a callable answers whenever the queue is empty."""
        self.add_answers(Kind.IMAGE, answers)

    def script(self, *answers: Answer) -> None:
        """Queue answers, each for the kind of model that gives such answers; for the rest use `on_image`."""
        for answer in answers:
            self.add_answers(Kind.IMAGE if answer.is_for_images else Kind.TEXT, [answer])

    def reject_key(self, key: str) -> None:
        """Answer every request with this key as the API answers a bad one."""
        self._rejected_keys.add(key)

    def withhold(self, *models: str) -> None:
        """Offer these models to no key: the list is without them, and asking for one is a 404."""
        self._withheld.update(models)

    def deny_key(self, body: Json, key: str | None = None) -> None:
        """Answer every request with this key, or with any, with this error, the list of models included."""
        self._denied_keys[key] = body

    def deny_model(self, model: str, body: Json) -> None:
        """Answer every request for this model with this error; the list still has it."""
        self._denied_models[model] = body

    def clear(self) -> None:
        """Forget what was scripted and seen, and permit everything again but a rejected key.

        Signatures stay: a conversation may go on.
        """
        super().clear()
        for kept in (self.requests, self._withheld, self._denied_keys, self._denied_models):
            kept.clear()

    # From a request's path to its answer.

    def headers_for(self, http: HttpRequest) -> dict[str, str]:
        return self.stream_headers if ":stream" in http.path else self.json_headers

    async def answer(self, http: HttpRequest, connection: Connection) -> None:
        if http.path.startswith("/_"):
            self._control(http, connection)
        else:
            await super().answer(http, connection)

    async def serve(self, http: HttpRequest, connection: Connection, number: int) -> None:
        self._check_key(http)
        if http.method == "GET":
            connection.write_whole(200, self.json_headers, self._listing(http))
            return
        match = _PATH.fullmatch(http.path)
        if match is None or not match["method"] or http.method != "POST":
            raise Refused("path", f"{http.method} {http.path} was not found on this server.", status=404)
        name, method = match["model"], match["method"]
        if name in RETIRED:
            raise retired_model(name)
        model = MODELS.get(name)
        if match["version"] != "v1beta" or model is None or method not in model.methods:
            raise unknown_model(name, match["version"], method)
        if method == "streamGenerateContent" and http.query.get("alt") != "sse":
            raise Refused("path", "Streaming without alt=sse answers one JSON array: ask for alt=sse.")
        if model.name in self._withheld:
            raise Declared(unknown_model(model.name, "v1beta", "generateContent").body)
        if model.name in self._denied_models:
            raise Declared(self._denied_models[model.name])
        sentence = f"Request payload size exceeds the limit: {self.most_bytes} bytes."
        refuse(http.body_bytes > self.most_bytes, "body_too_big", sentence)
        headers = {name: value for name, value in http.headers.items() if name not in _SECRET_HEADERS}
        request = WireRequest(number, model.name, method, headers, http.body_bytes, _parsed(http))
        try:
            request = replace(request, normal=rules.normal_body(method, request.body))
        finally:
            self.note(self.requests, request if self._keeps_bodies else replace(request, body={}, normal={}))
        for note in rules.check(request, self._ledger):
            self.note(self.violations, Violation("mixed_tools", note, number))
        if method == "countTokens":
            connection.write_whole(200, self.json_headers, _count(request))
        elif model.kind is Kind.EMBEDDING:
            connection.write_whole(200, self.json_headers, embedded(request.normal, model.dimensions))
        else:
            await self._generate(request, http, connection)

    async def _generate(self, request: WireRequest, http: HttpRequest, connection: Connection) -> None:
        # A model that thinks has said nothing yet when so few tokens are spent; no scripted answer is used up for it.
        is_cut = request.config.get("maxOutputTokens", _FEW_TOKENS) < _FEW_TOKENS
        default = PictureAnswer() if request.kind is Kind.IMAGE else Text("Hello.")
        answer: Answer = Finish("MAX_TOKENS") if is_cut else self.next_answer(request.kind, request, default)
        asked = Asked(request, self._ledger, f"answer-{request.number}", self._dice)
        writer = Writer(request, asked.answer_id, self._dice)
        written = writer.events if request.method == "streamGenerateContent" else writer.response
        await self.play(written(answer.steps(asked)), http, connection, request.number, request.model, request.method)

    def _listing(self, http: HttpRequest) -> Json:
        match = _PATH.fullmatch(http.path)
        if match is None or match["method"]:
            raise Refused("path", f"GET {http.path} was not found on this server.", status=404)
        offered = {name: model for name, model in MODELS.items() if name not in self._withheld}
        name = match["model"]
        if match["version"] != "v1beta" or (name and name not in offered):
            raise unknown_model(name or "", match["version"], "GetModel")
        return listed(offered[name]) if name else page(list(offered.values()), http.query)

    def _check_key(self, http: HttpRequest) -> None:
        refuse("key" in http.query, "key_in_url", "The key belongs in the x-goog-api-key header, not in the URL.")
        key = http.headers.get("x-goog-api-key", "")
        if not key:
            raise bad_key()
        if key in self._rejected_keys:
            raise Declared(bad_key().body)
        if denied := self._denied_keys.get(key) or self._denied_keys.get(None):
            raise Declared(denied)

    # From another process: JSON in, JSON out, under paths that begin with an underscore.

    def _control(self, http: HttpRequest, connection: Connection) -> None:
        try:
            status, told = 200, self._told(http)
        except (KeyError, TypeError, ValueError) as fault:
            status, told = 400, {"error": f"{type(fault).__name__}: {fault}"}
        connection.write_whole(status, self.json_headers, orjson.dumps(told, default=str))

    def _told(self, http: HttpRequest) -> Any:
        match http.path:
            case "/_requests":
                return list(map(described, self.requests))
            case "/_violations":
                return list(map(dataclasses.asdict, self.violations))
            case "/_control":
                self._obey(**orjson.loads(http.body))
            case path if path != "/_state":
                raise ValueError(f"no such control: {path}")
        told = {"requests": len(self.requests), "held": self.held, "remaining": self.remaining}
        return told | {"faults": [repr(fault) for fault in self.faults]}

    def _obey(
        self,
        *,
        clear: bool = False,
        on_text: tuple[Json, ...] = (),
        on_image: tuple[Json, ...] = (),
        deny_model: Json | None = None,
        release: bool = False,
    ) -> None:
        if clear:
            self.clear()
        self.on_text(*map(answer_from_json, on_text))
        self.on_image(*map(answer_from_json, on_image))
        self._denied_models |= deny_model or {}
        if release:
            self.release()


def _parsed(http: HttpRequest) -> Json:
    if not http.headers.get("content-type", "").startswith("application/json"):
        raise Refused("content_type", f"Unsupported content type: {http.headers.get('content-type')}")
    try:
        body = orjson.loads(http.body)
    except orjson.JSONDecodeError as fault:
        raise Refused("json", f"Invalid JSON payload received. {fault}") from fault
    if not isinstance(body, dict):
        raise Refused("json", "Invalid JSON payload received. Root element must be a message.")
    return body


def _count(request: WireRequest) -> Json:
    texts, pictures = prompt_tokens(request)
    details = [{"modality": "TEXT", "tokenCount": texts}]
    if pictures:
        details.append({"modality": "IMAGE", "tokenCount": pictures})
    return {"totalTokens": texts + pictures, "promptTokensDetails": details}


class GeminiProcess:
    """`python -m tests.wire_server` for as long as a `with` block lasts."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.wire_server", "--port", "0", *self._arguments]
        with ExitStack() as stack:
            self.url = read_line(*stack.enter_context(running(command, cwd=ROOT)))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def control(self, **orders: Any) -> Any:
        """Script the server; return its state."""
        return self._ask("/_control", json.dumps(orders).encode())

    def release(self) -> None:
        """Let the held answers go on, once there are any. Raises TimeoutError when none comes."""
        wait_until(lambda: self.read("state")["held"])
        self.control(release=True)

    def read(self, what: str) -> Any:
        """Return `requests`, `violations` or `state`."""
        return self._ask(f"/_{what}")

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", body, timeout=PATIENCE_S) as answer:
            return json.load(answer)
