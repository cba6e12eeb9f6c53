"""Answers and requests as JSON, for the server that is scripted from another process."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

from tests.wire_server import answers
from tests.wire_server.answers import Answer
from tests.wire_server.refusals import Json
from tests.wire_server.request import WireRequest

_ANSWERS: dict[str, type[Answer]] = {
    found.__name__: found for found in vars(answers).values() if isinstance(found, type) and issubclass(found, Answer)
}


def answer_from_json(data: Json) -> Answer:
    """Return the answer written as `{"kind": "Text", "text": "…"}`; answers inside are written the same way.

    Bytes are written `{"base64": "…"}`. Raises KeyError or TypeError when it is none.
    """
    fields = {name: _value(name, value) for name, value in data.items() if name != "kind"}
    return _ANSWERS[data["kind"]](**fields)


def _value(name: str, value: Any) -> Any:
    if name == "answer":
        return answer_from_json(value)
    if name == "calls":
        return [answers.Call(**item) for item in value]
    if name == "grounding":
        return answers.Grounding(**value)
    if name in ("data", "body") and isinstance(value, dict) and set(value) == {"base64"}:
        return base64.b64decode(value["base64"])
    return value


def described(request: WireRequest) -> Json:
    """Return a request without the data of its pictures."""
    told = dataclasses.asdict(dataclasses.replace(request, normal={})) | {"kind": request.kind}
    return told | {"body": _shortened(told["body"])}


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if isinstance(value, str) and len(value) > 2_000:
        return f"{value[:80]}… {len(value)} characters"
    return value
