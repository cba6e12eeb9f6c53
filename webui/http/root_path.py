"""The path under which a proxy serves the studio, such as `/studio`."""

from __future__ import annotations

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROOT_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
"""What such a path looks like."""
_ROOT = "aivista.root_path"
_COOKIE_PATH = re.compile(r"(;\s*path=)/", re.IGNORECASE)


def root_path(request: Request) -> str:
    """Return the path under which the client reaches the studio: empty, or such as `/studio`."""
    return str(request.scope.get(_ROOT, ""))


def public_url(request: Request) -> str:
    """Return the URL at which the client reaches the studio, without a trailing slash."""
    return f"{'https' if is_https(request.scope) else 'http'}://{request.url.netloc}{root_path(request)}"


def is_https(scope: Scope) -> bool:
    """Whether the client used HTTPS, perhaps up to a proxy."""
    return bool(scope.get("scheme") == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https")


class RootPath:
    """ASGI middleware before all others. Behind it, every path is as if the studio had its own host.

    The prefix is `root_path` (empty or `/studio`), or what a proxy that `is_trusted` sends in `X-Forwarded-Prefix`. It
    is removed from the request, whether the proxy did so or not, and added to redirects and to the paths of cookies.
    """

    def __init__(self, app: ASGIApp, root_path: str, *, is_trusted: bool) -> None:
        self.app = app
        self.root_path = root_path
        self.is_trusted = is_trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = self._root(scope) if scope["type"] == "http" else ""
        if not root:
            await self.app(scope, receive, send)
        elif scope["path"] == root:
            # Without the trailing slash, the page's relative addresses would leave the prefix.
            query = scope["query_string"].decode("latin-1")
            await RedirectResponse(f"{root}/{'?' if query else ''}{query}", 308)(scope, receive, send)
        else:
            await self.app(_below(scope, root), receive, _below_root(root, send))

    def _root(self, scope: Scope) -> str:
        if self.root_path or not self.is_trusted:
            return self.root_path
        prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
        return prefix if ROOT_PATH.fullmatch(prefix) else ""


def _below(scope: Scope, root: str) -> Scope:
    """Return the scope as seen from below that path."""
    within = {**scope, _ROOT: root, "headers": list(scope["headers"])}
    if scope["path"].startswith(f"{root}/"):
        within["path"] = scope["path"].removeprefix(root)
        within["raw_path"] = (scope.get("raw_path") or b"").removeprefix(root.encode())
    headers = MutableHeaders(scope=within)
    # Gradio builds its URLs from this header, and from nothing else that differs between requests.
    headers["x-forwarded-host"] = (headers.get("x-forwarded-host") or headers.get("host", "")).split(",")[0] + root
    return within


def _below_root(root: str, send: Send) -> Send:
    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            if headers.get("location", "").startswith("/"):
                headers["location"] = root + headers["location"]
            cookies = [_COOKIE_PATH.sub(rf"\g<1>{root}/", one, count=1) for one in headers.getlist("set-cookie")]
            del headers["set-cookie"]
            for one in cookies:
                headers.append("set-cookie", one)
        await send(message)

    return forward
