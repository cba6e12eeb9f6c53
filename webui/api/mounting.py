"""The API beside the page: built when the first program asks, since the page's start need not wait for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from agent import Settings, Studio
from webui.sessions import Sessions


def api_mounts(
    studio: Callable[[], Studio],
    sessions: Sessions,
    settings: Settings,
    language: str | None = None,
    *,
    has_password: bool = False,
) -> list[Mount]:
    """Return the mounts `/api/v1` and `/v1`. Nobody but the operator is thought to come where the settings are not
    `is_public` and the page asks for no password.

    `language` is that of callers who send no Accept-Language.
    """

    def application() -> ASGIApp:
        from webui.api.app import api_application

        return api_application(studio, sessions, settings, language, has_password=has_password)

    lazily = _Lazily(application)
    return [_Below("/api/v1", app=lazily), _Below("/v1", app=lazily)]


class _Below(Mount):
    """A mount of every address below its path. A plain one leaves out those in which a line ends."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


class _Lazily:
    """An application that is made at its first request. It sees the whole path, whatever it is mounted under."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app or await self._made()
        await app({**scope, "root_path": scope.get("app_root_path", "")}, receive, send)

    async def _made(self) -> ASGIApp:
        async with self._making:
            if self._app is None:
                self._app = await asyncio.to_thread(self._make)
            return self._app
