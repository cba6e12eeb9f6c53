"""What every request passes: known hosts only, no writes from foreign pages, our cookie and headers on the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webui.sessions import COOKIE, Sessions

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
        "frame-ancestors 'self'",
    ]
)


@dataclass
class HostRules:
    """Which hosts may be asked for. `names` grows by the share link's host once that is known."""

    is_loopback: bool
    names: set[str] = field(default_factory=lambda: set(LOOPBACK))

    def allows_host(self, host: str) -> bool:
        """Whether a request for this `Host` is for us; a name that merely resolves here is a rebinding attack."""
        return not self.is_loopback or _name(host) in self.names

    def allows_origin(self, origin: str | None, headers: Headers) -> bool:
        """Whether a page of this origin may write: one that came from the very host it now asks, or none at all."""
        if origin is None:
            return True
        place = urlsplit(origin).netloc.lower()
        own = {headers.get("host", "").lower(), headers.get("x-forwarded-host", "").lower()} - {""}
        return bool(place) and (place in own or (_name(place) in self.names - LOOPBACK))


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
        if refusal:
            await PlainTextResponse(refusal, status_code=403)(scope, receive, send)
            return
        await self.app(scope, receive, self._with_headers(scope, send))

    def _refusal(self, scope: Scope, headers: Headers) -> str:
        if not self.rules.allows_host(headers.get("host", "")):
            return "This studio does not answer to that host name."
        is_write = scope.get("method", "GET") not in ("GET", "HEAD", "OPTIONS")
        if is_write and not self.rules.allows_origin(headers.get("origin"), headers):
            return "Another site may not use this studio."
        return ""

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        async def wrapped(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "same-origin")
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", PAGE_POLICY)
                    self._give_cookie(scope, headers)
            await send(message)

        return wrapped

    def _give_cookie(self, scope: Scope, headers: MutableHeaders) -> None:
        request = Request(scope)
        if self.sessions.token_of(request.cookies.get(COOKIE)) is None:
            secure = "; Secure" if request.headers.get("x-forwarded-proto") == "https" else ""
            value = f"{COOKIE}={self.sessions.new_cookie()}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax{secure}"
            headers.append("set-cookie", value)
