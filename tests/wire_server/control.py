"""The server scripted from another process: JSON in, JSON out, under paths that begin with an underscore."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import orjson

from tests.wire_server import answers
from tests.wire_server.connection import Connection, HttpRequest
from tests.wire_server.models import Kind
from tests.wire_server.refusals import Json
from tests.wire_server.request import WireRequest
from tests.wire_server.service import Service
from tests.wire_server.steps import Answer

_ANSWERS: dict[str, type[Answer]] = {
    found.__name__: found
    for found in vars(answers).values()
    if isinstance(found, type) and issubclass(found, Answer) and found is not Answer
}
_LONGEST_TEXT = 2_000
_ORDERS = {
    *("clear", "release", "on_text", "on_image", "always_text", "always_image", "reject", "withhold"),
    *("deny_key", "deny_model"),
}


def answer_from_json(data: Json) -> Answer:
    """Return the answer written as `{"kind": "Text", "text": "…"}`; answers inside are written the same way.

    Bytes are written `{"base64": "…"}`. Raises KeyError or TypeError when it is none.
    """
    fields = {name: _value(name, value) for name, value in data.items() if name != "kind"}
    return _ANSWERS[data["kind"]](**fields)


def _value(name: str, value: Any) -> Any:
    if name == "answer" and value is not None:
        return answer_from_json(value)
    if name == "calls":
        return [answers.Call(**item) for item in value]
    if name == "grounding" and value is not None:
        return answers.Grounding(**value)
    if name in ("data", "body") and isinstance(value, dict) and set(value) == {"base64"}:
        return base64.b64decode(value["base64"])
    return value


class Control:
    """POST /_control scripts the server; GET /_requests, /_violations, /_disconnects and /_state read what it saw."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def handle(self, http: HttpRequest, connection: Connection) -> None:
        """Answer one control request."""
        try:
            status, body = 200, self._answer(http)
        except (KeyError, TypeError, ValueError) as fault:
            status, body = 400, {"error": f"{type(fault).__name__}: {fault}"}
        connection.write_whole(status, {"content-type": "application/json"}, orjson.dumps(body, default=str))

    def _answer(self, http: HttpRequest) -> Any:
        records = self._service.records
        match http.method, http.path:
            case "POST", "/_control":
                self._script(orjson.loads(http.body))
                return self._state()
            case "GET", "/_requests":
                return [_described(request, "full" in http.query) for request in records.requests]
            case "GET", "/_violations":
                return [dataclasses.asdict(violation) for violation in records.violations]
            case "GET", "/_disconnects":
                return [dataclasses.asdict(disconnect) for disconnect in records.disconnects]
            case "GET", "/_state":
                return self._state()
            case _:
                raise ValueError(f"no such control: {http.method} {http.path}")

    def _script(self, orders: Json) -> None:
        if unknown := set(orders) - _ORDERS:
            raise ValueError(f"unknown orders: {sorted(unknown)}")
        service = self._service
        if orders.get("clear"):
            service.clear()
            service.gate.clear()
        for kind in (Kind.TEXT, Kind.IMAGE):
            queued = [answer_from_json(entry) for entry in orders.get(f"on_{kind}", [])]
            service.script.add(kind, *queued)
            if always := orders.get(f"always_{kind}"):
                service.script.add(kind, _Always(answer_from_json(always)))
        service.rejected_keys.update(orders.get("reject", []))
        service.withheld.update(orders.get("withhold", []))
        if denied := orders.get("deny_key"):
            service.denied_keys[None] = denied
        service.denied_models.update(orders.get("deny_model", {}))
        if orders.get("release"):
            service.gate.open()

    def _state(self) -> Json:
        records = self._service.records
        return {
            "requests": len(records.requests),
            "violations": len(records.violations),
            "disconnects": len(records.disconnects),
            "faults": [repr(fault) for fault in records.faults],
            "held": records.held,
            "remaining": self._service.script.remaining,
            "bytes": sum(request.size_bytes for request in records.requests),
        }


@dataclasses.dataclass(frozen=True)
class _Always:
    """A brain that says the same to everybody."""

    answer: Answer

    def __call__(self, request: WireRequest) -> Answer:
        return self.answer


def _described(request: WireRequest, is_full: bool) -> Json:
    described = dataclasses.asdict(request)
    described["kind"] = request.kind
    described.pop("normal")
    if not is_full:
        described["body"] = _shortened(described["body"])
    return described


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:80]}… {len(value)} characters"
    return value
