"""JSON as people's programs send it, without halves of characters: an emoji that was cut in two is an escape alone."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Every escape is taken in turn, so that the `u` of `\\u` begins none.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def whole_json(text: str) -> str:
    """Return JSON in which U+FFFD stands for each half of a surrogate pair: no database takes those."""
    if _SURROGATE.search(text) is None:
        return text
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape["half"] else escape[0], text)


def whole_body(body: bytes) -> bytes:
    """Return the body of a request with JSON, made whole."""
    # What is no UTF-8 comes out as it went in.
    return whole_json(body.decode("latin-1")).encode("latin-1") if b"\\u" in body else body


def receiving_whole(scope: Scope, receive: Receive, most_bytes: int) -> Receive:
    """Return `receive` that brings JSON in one piece, made whole; anything else, and more than so much, as it comes."""
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
