"""Repairs JSON with unpaired surrogates: a client may cut an emoji in two and escape one half."""

from __future__ import annotations

import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

_Model = TypeVar("_Model", bound=BaseModel)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Every escape is consumed in turn, so that the `u` of `\\u` does not begin another one.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def whole_json(text: str) -> str:
    """Return JSON with U+FFFD for each unpaired surrogate: no database takes those."""
    if _SURROGATE.search(text) is None:
        return text
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape["half"] else escape[0], text)


def read_value(model: type[_Model], text: str) -> _Model | None:
    """Return the value that a page sent as JSON, or None when it sent something else."""
    try:
        return model.model_validate_json(whole_json(text))
    except ValidationError:
        return None


def whole_body(body: bytes) -> bytes:
    """Return a JSON body, repaired."""
    # Bytes that are no UTF-8 pass unchanged.
    return whole_json(body.decode("latin-1")).encode("latin-1") if b"\\u" in body else body


def receiving_whole(scope: Scope, receive: Receive, most_bytes: int) -> Receive:
    """Return a `receive` that delivers a JSON body in one piece, repaired. Other bodies, and those larger than
    `most_bytes`, pass as they come."""
    if scope["method"] not in ("POST", "PATCH") or "json" not in Headers(scope=scope).get("content-type", ""):
        return receive
    is_gathering = True

    async def whole() -> Message:
        nonlocal is_gathering
        if not is_gathering:
            return await receive()
        is_gathering = False
        gathered = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return message
            gathered += message.get("body", b"")
            more = message.get("more_body", False)
            if not more or len(gathered) > most_bytes:
                body = bytes(gathered) if more else whole_body(bytes(gathered))
                return {"type": "http.request", "body": body, "more_body": more}

    return whole
