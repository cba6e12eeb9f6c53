"""Whether the process lives and whether it takes turns, for whoever runs it: no cookie, no password, nothing private.

`/healthz` answers as long as the process does: where it stays silent, start the process again. `/readyz` is 503 while
the studio closes or cannot write: send visitors elsewhere meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from webui.guard import FOREIGN_HOST, HostRules

ALIVE, READY = "/healthz", "/readyz"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

NotReady = Callable[[], Awaitable[Sequence[str]]]


class Health:
    """ASGI middleware before all others. `not_ready` says what keeps the studio from taking turns."""

    def __init__(self, app: ASGIApp, rules: HostRules, not_ready: NotReady) -> None:
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
        if not self.rules.allows_probe(Headers(scope=scope).get("host", "")):
            return PlainTextResponse(FOREIGN_HOST, 403, _HEADERS)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Ask with GET.", 405, {**_HEADERS, "Allow": "GET, HEAD"})
        missing = await self._missing() if scope["path"] == READY else ()
        if missing:
            return JSONResponse({"status": "not ready", "not_ready": list(missing)}, 503, _HEADERS)
        return JSONResponse({"status": "ready" if scope["path"] == READY else "alive"}, 200, _HEADERS)

    async def _missing(self) -> Sequence[str]:
        # However many ask at once, the records are tried once.
        if self._probe is None or self._probe.done():
            self._probe = asyncio.ensure_future(self._not_ready())
        return await asyncio.shield(self._probe)
