"""What every request passes: known hosts only, nothing for foreign pages, our cookie and headers on the page."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webui.api.problems import HEADERS, RefusalCode, Refused, answer_with, problem_of_refusal
from webui.sessions import COOKIE, Sessions

FOREIGN_HOST = "This studio does not answer to that host name."
# Where programs ask, which read problem documents.
PROGRAMS = ("/api/", "/v1/")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

# Gradio's page needs inline scripts, and `new Function` for the little scripts of gr.HTML; pictures from anywhere but
# here are what an injected instruction would use to carry words away.
PAGE_POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' blob: data:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        # The last one: who else may show the page is said after it.
        "frame-ancestors 'self'",
    ]
)


@dataclass
class HostRules:
    """Which hosts may be asked for. `names` grows by the share link's host once that is known.

    One on the network that knows its names (`is_named`) answers to them, and to bare addresses: no name server can have
    those point elsewhere, and whoever runs it looks by its address whether it lives. `embedders` are the sites that may
    show the page inside of theirs.
    """

    is_loopback: bool
    names: set[str] = field(default_factory=lambda: set(LOOPBACK))
    is_named: bool = False
    embedders: tuple[str, ...] = ()

    def allows_host(self, host: str) -> bool:
        """Whether a request for this `Host` is for us; a name that merely resolves here is a rebinding attack."""
        name = _name(host)
        if self.is_loopback:
            return name in self.names
        return not self.is_named or name in self.names or is_address(name)

    def allows_probe(self, host: str) -> bool:
        """Whether a request for this `Host` may ask how the studio is: by a bare address, or by none, as well.

        Nobody's name server can have those point at somebody else's machine.
        """
        return not host or is_address(_name(host)) or self.allows_host(host)

    @property
    def page_policy(self) -> str:
        """The Content-Security-Policy of the page."""
        return " ".join((PAGE_POLICY, *self.embedders))

    @property
    def is_embedded(self) -> bool:
        """Whether the page is shown inside of another site, whose visitors' browsers keep its cookies apart."""
        return bool(self.embedders)

    def allows_origin(self, origin: str | None, headers: Headers) -> bool:
        """Whether a page of this origin may ask: one that came from the very host it now asks, or none at all."""
        if origin is None:
            return True
        place = urlsplit(origin).netloc.lower()
        # `webui.root_path` appends its path.
        told = headers.get("x-forwarded-host", "").partition("/")[0]
        own = {headers.get("host", "").lower(), told.lower()} - {""}
        return bool(place) and (place in own or (_name(place) in self.names - LOOPBACK))


def is_address(name: str) -> bool:
    """Whether a host is named by its bare address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


class Guard:
    """ASGI middleware around the whole page."""

    def __init__(self, app: ASGIApp, rules: HostRules, sessions: Sessions) -> None:
        self.app = app
        self.rules = rules
        self.sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if refusal is not None:
            await self._refuse(refusal, scope)(scope, receive, send)
            return
        # Whoever left before all was sent is nobody to answer.
        with suppress(ClientDisconnect):
            cookies = Request(scope).cookies
            given = "" if self.sessions.token_of(cookies.get(COOKIE)) is not None else self.sessions.new_cookie()
            if given and scope["path"] == "/":
                # The first page is its visitor's already.
                carried = "; ".join(f"{name}={value}" for name, value in {**cookies, COOKIE: given}.items())
                others = [one for one in scope["headers"] if one[0] != b"cookie"]
                scope = {**scope, "headers": [*others, (b"cookie", carried.encode("latin-1"))]}
            await self.app(scope, receive, self._with_headers(scope, send, given))

    def _refusal(self, scope: Scope, headers: Headers) -> RefusalCode | None:
        if not self.rules.allows_host(headers.get("host", "")):
            return RefusalCode.FOREIGN_HOST
        # Nor read: on other hosts than localhost Gradio lets a page of any origin read, with whatever cookies it has.
        if not self.rules.allows_origin(headers.get("origin"), headers):
            return RefusalCode.FOREIGN_ORIGIN
        return None

    def _refuse(self, code: RefusalCode, scope: Scope) -> Response:
        """Return a problem document for programs, a sentence for a page."""
        problem = problem_of_refusal(self.sessions.words(Request(scope)), Refused(code))
        if scope["path"].startswith(PROGRAMS):
            return answer_with(problem, scope["path"])
        return PlainTextResponse(problem.detail, problem.status, HEADERS)

    def _with_headers(self, scope: Scope, send: Send, given: str) -> Send:
        """Return `send` that adds the headers of every answer, and the cookie that a visitor is given with a page."""

        async def wrapped(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "same-origin")
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", self.rules.page_policy)
                    if given:
                        headers.append("set-cookie", f"{COOKIE}={given}; Path=/; Max-Age=31536000; HttpOnly; {site}")
            await send(message)

        site = "SameSite=Lax"
        if Headers(scope=scope).get("x-forwarded-proto") == "https":
            # A page inside of another site gets no cookie back that is not marked for that.
            site = "SameSite=None; Secure; Partitioned" if self.rules.is_embedded else "SameSite=Lax; Secure"
        return wrapped
