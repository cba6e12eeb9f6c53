"""Routes of ours beside the actions of the page: each for the visitor whose cookie asks, what is refused as one
sentence, and nothing that a browser could take for a page."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from agent import AivistaError
from webui.http.sessions import Sessions, Visitor

_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NO_STORE = {"Cache-Control": "no-store", **_SAFE}
# It may say something else tomorrow.
NO_CACHE = {"Cache-Control": "private, no-cache", **_SAFE}
# A handle never stands for other pixels, so an address with all its parameters always gives the same answer.
IMMUTABLE = {"Cache-Control": "private, max-age=86400, immutable", "Vary": "Cookie", **_SAFE}
PER_VISITOR = 4

Work: TypeAlias = Callable[[Request, Visitor], Awaitable[Response]]
Refusal: TypeAlias = Callable[[str, int, str], Response]


def as_text(sentence: str, status: int, code: str = "") -> Response:
    """Return a refusal as its sentence alone."""
    return PlainTextResponse(sentence, status, NO_STORE)


def as_json(sentence: str, status: int, code: str = "") -> Response:
    """Return a refusal as its sentence under `error`, and its code."""
    return JSONResponse({"error": sentence, "code": code}, status, NO_STORE)


def visitor_route(
    path: str,
    sessions: Sessions,
    work: Work,
    *,
    method: str = "GET",
    refusal: Refusal = as_text,
    visitor_of: Callable[[Request], Visitor | None] | None = None,
) -> Route:
    """Return a route that `work` answers for whoever has a cookie of ours, or whom `visitor_of` finds otherwise.

    To others it answers 403; what the studio refuses, or fails at, is a sentence with the status of its code.
    """

    async def answer(request: Request) -> Response:
        visitor = sessions.visitor(request)
        allowed = visitor_of(request) if visitor_of else visitor if visitor.token is not None else None
        if allowed is None:
            return refusal(visitor.words("route.not_yours"), 403, "")
        try:
            return await work(request, allowed)
        except AivistaError as error:
            return refusal(allowed.words.error(error.info), error.code.http_status, error.code.value)

    return Route(path, answer, methods=[method])


async def body_of(request: Request, most_bytes: int) -> bytes | None:
    """Return what was sent; None as soon as it is more than may be."""
    found = bytearray()
    async for some in request.stream():
        found += some
        if len(found) > most_bytes:
            return None
    return bytes(found)


def attachment(name: str) -> dict[str, str]:
    """Return the header with which an answer is saved under a name."""
    plain = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)
    exact = f"; filename*=UTF-8''{quote(name)}" if plain != name else ""
    return {"Content-Disposition": f'attachment; filename="{plain}"{exact}'}


@dataclass
class Workbench:
    """Where pictures are worked out while somebody looks: `places` at once for everybody, and `PER_VISITOR` at work or
    waiting for each.

    A browser that gave its request up before its turn came costs nothing.
    """

    places: int
    _room: asyncio.Semaphore = field(init=False, repr=False)
    _held: Counter[str] = field(init=False, default_factory=Counter, repr=False)

    def __post_init__(self) -> None:
        self._room = asyncio.Semaphore(self.places)

    async def run(self, request: Request, visitor: Visitor, work: Callable[[], Awaitable[Response]]) -> Response:
        """Return what the work makes: 429 for one who asks too much at once."""
        token = visitor.token or ""
        if self._held[token] >= PER_VISITOR:
            return as_text(visitor.words("route.too_much"), 429)
        self._held[token] += 1
        try:
            async with self._room:
                if await request.is_disconnected():
                    return as_text("", 499)
                return await work()
        finally:
            self._held[token] -= 1
            if not self._held[token]:
                del self._held[token]
