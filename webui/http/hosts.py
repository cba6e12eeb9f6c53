"""Checks that every request passes first: health, known hosts, no requests from pages of other sites; and our cookie
and headers on the page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webui.api.problems import HEADERS, RefusalCode, Refused, answer_with, problem_of_refusal
from webui.http.sessions import COOKIE, COOKIE_LIFE_S, Sessions, cookie_line

# Routes of programs, which read problem documents.
PROGRAMS = ("/api/", "/v1/")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ALIVE, READY = "/healthz", "/readyz"

# Gradio's page needs inline scripts, and `new Function` for the small scripts of gr.HTML. Pictures from other sites are
# forbidden: an injected instruction could send data away in their addresses.
_PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' blob: data:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    # The last directive: it is completed by the sites that may embed the page.
    "frame-ancestors 'self'"
)


@dataclass
class HostRules:
    """The host names that a request may ask for. The host of the share link is added to `names` once it is known.

    A deployment that knows its names (`is_named`) answers to them and to bare addresses: no name server can redirect
    those, and health checks use them. `embedders` are the sites that may embed the page.
    """

    is_loopback: bool
    names: set[str] = field(default_factory=lambda: set(LOOPBACK))
    is_named: bool = False
    embedders: tuple[str, ...] = ()

    def allows_host(self, host: str) -> bool:
        """Whether a request for this `Host` is for us. A name that merely resolves here is a DNS rebinding attack."""
        name = _name(host)
        if self.is_loopback:
            return name in self.names
        return not self.is_named or name in self.names or is_address(name)

    @property
    def page_policy(self) -> str:
        """The Content-Security-Policy of the page."""
        return " ".join((_PAGE_POLICY, *self.embedders))

    def allows_origin(self, origin: str | None, headers: Headers) -> bool:
        """Whether a page of this origin may send requests: one that came from the very host it now asks, or none at
        all."""
        if origin is None:
            return True
        try:
            place = urlsplit(origin).netloc.lower()
        except ValueError:
            return False
        # `RootPath` appends its path.
        forwarded = headers.get("x-forwarded-host", "").partition("/")[0]
        own = {headers.get("host", "").lower(), forwarded.lower()} - {""}
        return bool(place) and (place in own or (_name(place) in self.names - LOOPBACK))


def is_address(name: str) -> bool:
    """Whether a host is named by a bare address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


class Health:
    """ASGI middleware before all others: liveness and readiness for the operator. It needs no cookie and no password,
    and tells nothing private.

    `/healthz` answers as long as the process lives; when it does not answer, restart the process. `/readyz` is 503
    while the studio closes or cannot write, with the reasons of `not_ready`: send visitors elsewhere meanwhile.
    """

    def __init__(self, app: ASGIApp, rules: HostRules, not_ready: Callable[[], Awaitable[Sequence[str]]]) -> None:
        self.app = app
        self.rules = rules
        self._not_ready = not_ready
        self._probe: asyncio.Task[Sequence[str]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in (ALIVE, READY):
            await self.app(scope, receive, send)
            return
        await (await self._answer(scope))(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        host = Headers(scope=scope).get("host", "")
        # A bare address, or no host: no name server can redirect those to somebody else's machine.
        if host and not is_address(_name(host)) and not self.rules.allows_host(host):
            return PlainTextResponse("This studio does not answer to that host name.", 403, HEADERS)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Ask with GET.", 405, {**HEADERS, "Allow": "GET, HEAD"})
        if scope["path"] == ALIVE:
            return JSONResponse({"status": "alive"}, 200, HEADERS)
        # However many ask at once, the records are tried once.
        if self._probe is None or self._probe.done():
            self._probe = asyncio.ensure_future(self._not_ready())
        missing = await asyncio.shield(self._probe)
        if missing:
            return JSONResponse({"status": "not ready", "not_ready": list(missing)}, 503, HEADERS)
        return JSONResponse({"status": "ready"}, 200, HEADERS)


class Guard:
    """ASGI middleware around the whole page."""

    def __init__(self, app: ASGIApp, rules: HostRules, sessions: Sessions) -> None:
        self.app = app
        self.rules = rules
        self.sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # The studio uses no WebSockets.
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, refused = Headers(scope=scope), None
        if not self.rules.allows_host(headers.get("host", "")):
            refused = RefusalCode.FOREIGN_HOST
        # Nor may they read: on hosts other than localhost Gradio lets a page of any origin read, with the cookies it
        # has.
        elif not self.rules.allows_origin(headers.get("origin"), headers):
            refused = RefusalCode.FOREIGN_ORIGIN
        if refused is not None:
            problem = problem_of_refusal(self.sessions.words(Request(scope)), Refused(refused))
            is_program = scope["path"].startswith(PROGRAMS)
            answer = PlainTextResponse(problem.detail, problem.status, HEADERS)
            await (answer_with(problem, scope["path"]) if is_program else answer)(scope, receive, send)
            return
        cookies, given = Request(scope).cookies, ""
        if self.sessions.token_of(cookies.get(COOKIE)) is None:
            given = self.sessions.new_cookie()
            if scope["path"] == "/":
                # The first page already belongs to its visitor.
                carried = "; ".join(f"{name}={value}" for name, value in {**cookies, COOKIE: given}.items())
                others = [one for one in scope["headers"] if one[0] != b"cookie"]
                scope = {**scope, "headers": [*others, (b"cookie", carried.encode("latin-1"))]}

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "same-origin")
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", self.rules.page_policy)
                    if given:
                        is_embedded = bool(self.rules.embedders)
                        line = cookie_line(scope, COOKIE, given, COOKIE_LIFE_S, is_embedded=is_embedded)
                        headers.append("set-cookie", line)
            await send(message)

        # A client that left before everything was sent gets no answer.
        with suppress(ClientDisconnect):
            await self.app(scope, receive, with_headers)
