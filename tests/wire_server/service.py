"""The REST API: from a request's path to its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any

import orjson

from tests.wire_server import rules
from tests.wire_server.answers import Finish, PictureAnswer, Text
from tests.wire_server.chunks import prompt_tokens
from tests.wire_server.connection import Connection, HttpRequest
from tests.wire_server.methods import described, embedded, page
from tests.wire_server.models import MODELS, RETIRED, Kind, WireModel
from tests.wire_server.player import JSON_HEADERS, STREAM_HEADERS, Player
from tests.wire_server.refusals import (
    Declared,
    Json,
    Refused,
    Violation,
    bad_key,
    error_body,
    retired_model,
    unknown_model,
)
from tests.wire_server.request import WireRequest
from tests.wire_server.serving import MAX_BODY_BYTES, Disconnect, Gate, Records, Script
from tests.wire_server.signatures import Ledger
from tests.wire_server.steps import Answer, Asked

_PATH = re.compile(r"/(?P<version>v1|v1beta)/models(?:/(?P<model>[^/:]+)(?::(?P<method>\w+))?)?")
_SECRET_HEADERS = frozenset({"x-goog-api-key", "authorization", "cookie"})
_FEW_TOKENS = 16
_GENERATING = ("generateContent", "streamGenerateContent")


class Service:
    """Everything one server is: its rules, its script, what it has seen."""

    def __init__(self, *, keeps_bodies: bool = True, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self.records = Records(keeps_bodies)
        self.script: Script[Answer] = Script()
        self.ledger = Ledger()
        self.gate = Gate(self.records)
        self.rejected_keys: set[str] = set()
        # Models that no key is offered: the list is without them, and a request for one is a 404.
        self.withheld: set[str] = set()
        # Errors that a test declares: for every request with a key, or with any, and for those of a model.
        self.denied_keys: dict[str | None, Json] = {}
        self.denied_models: dict[str, Json] = {}
        self.max_body_bytes = max_body_bytes
        self.dice: Random | None = None
        self.control: Callable[[HttpRequest, Connection], Coroutine[Any, Any, None]] | None = None

    def clear(self) -> None:
        """Forget what was scripted and seen, and permit everything again."""
        for kept in (self.script, self.records, self.withheld, self.denied_keys, self.denied_models):
            kept.clear()

    async def handle(self, http: HttpRequest, connection: Connection) -> None:
        """Answer one HTTP request."""
        if http.path.startswith("/_") and self.control is not None:
            await self.control(http, connection)
            return
        number = self.records.next_number()
        headers = STREAM_HEADERS if ":stream" in http.path else JSON_HEADERS
        try:
            await self._serve(http, connection, number)
        except Declared as refusal:
            connection.write_whole(refusal.status, headers, orjson.dumps(refusal.body))
        except Refused as refusal:
            # A key the test itself declared bad breaks no rule.
            if http.headers.get("x-goog-api-key") not in self.rejected_keys:
                self.records.add(Violation(refusal.rule, refusal.message, number))
            connection.write_whole(refusal.status, headers, orjson.dumps(refusal.body))
        except Exception as fault:
            self.records.add(fault)
            if connection.has_begun:
                connection.hang_up()
                return
            connection.write_whole(
                500, headers, orjson.dumps(error_body(500, f"The test's own answer failed: {fault!r}"))
            )

    async def _serve(self, http: HttpRequest, connection: Connection, number: int) -> None:
        self._check_key(http)
        if http.method == "GET":
            connection.write_whole(200, JSON_HEADERS, orjson.dumps(self._listing(http)))
            return
        model, method = _target(http)
        if model.name in self.withheld:
            raise Declared(unknown_model(model.name, "v1beta", "generateContent").body)
        if model.name in self.denied_models:
            raise Declared(self.denied_models[model.name])
        if http.body_bytes > self.max_body_bytes:
            sentence = f"Request payload size exceeds the limit: {self.max_body_bytes} bytes."
            raise Refused("body_too_big", sentence)
        request = WireRequest(
            number=number,
            model=model.name,
            method=method,
            headers={name: value for name, value in http.headers.items() if name not in _SECRET_HEADERS},
            size_bytes=http.body_bytes,
            body=_parsed(http),
        )
        try:
            request = replace(request, normal=rules.normal_body(method, request.body))
        finally:
            self.records.add(request)
        for note in rules.check(request, self.ledger):
            self.records.add(Violation("mixed_tools", note, number))
        if method in _GENERATING:
            await self._generate(request, connection)
        elif method == "countTokens":
            connection.write_whole(200, JSON_HEADERS, orjson.dumps(_count(request)))
        else:
            connection.write_whole(200, JSON_HEADERS, orjson.dumps(embedded(request.normal, model.dimensions)))

    async def _generate(self, request: WireRequest, connection: Connection) -> None:
        # A model that thinks has said nothing yet when so few tokens are spent; no scripted answer is used up for it.
        is_cut = request.config.get("maxOutputTokens", _FEW_TOKENS) < _FEW_TOKENS
        default = PictureAnswer() if request.kind is Kind.IMAGE else Text("Hello.")
        answer = Finish("MAX_TOKENS") if is_cut else self.script.next(request.kind, request, default)
        player = Player(Asked(request, self.ledger, f"answer-{request.number}", self.dice), connection, self.gate)

        def note_leaving() -> None:
            self.records.add(Disconnect(request.number, request.model, request.method, player.chunks_sent))

        connection.on_lost = note_leaving
        await player.play(answer)

    def _listing(self, http: HttpRequest) -> Json:
        match = _PATH.fullmatch(http.path)
        if match is None or match["method"]:
            raise Refused("path", f"GET {http.path} was not found on this server.", status=404)
        if match["version"] != "v1beta":
            raise unknown_model(match["model"] or "", match["version"], "GetModel")
        offered = {name: model for name, model in MODELS.items() if name not in self.withheld}
        if match["model"] is None:
            return page(list(offered.values()), http.query)
        if match["model"] not in offered:
            raise unknown_model(match["model"], match["version"], "GetModel")
        return described(offered[match["model"]])

    def _check_key(self, http: HttpRequest) -> None:
        if "key" in http.query:
            raise Refused("key_in_url", "The key belongs in the x-goog-api-key header, not in the URL.")
        key = http.headers.get("x-goog-api-key", "")
        if not key or key in self.rejected_keys:
            raise bad_key()
        if denied := self.denied_keys.get(key) or self.denied_keys.get(None):
            raise Declared(denied)


def _target(http: HttpRequest) -> tuple[WireModel, str]:
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
    return model, method


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
