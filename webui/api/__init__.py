"""The HTTP API for programs, beside the page. It is built at the first request, so that the start of the page need
not wait for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from agent import Settings, Studio
from webui.http.sessions import Sessions


def api_mounts(
    studio: Callable[[], Studio],
    sessions: Sessions,
    settings: Settings,
    language: str | None = None,
    *,
    has_password: bool = False,
) -> list[Mount]:
    """Return the mounts `/api/v1` and `/v1`. Only the operator is expected to call unless the settings are `is_public`
    or the page asks for a password.

    `language` is that of callers who send no Accept-Language.
    """

    def application() -> ASGIApp:
        from webui.api.app import api_application

        return api_application(studio, sessions, settings, language, has_password=has_password)

    app = _LazyApp(application)
    mounts = [Mount("/api/v1", app), Mount("/v1", app)]
    for mount in mounts:
        # Matches every address below the path: a plain mount leaves out those with a line break.
        mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
    return mounts


class _LazyApp:
    """An ASGI application that is built at its first request. It sees the whole path, whatever it is mounted under."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._making:
            if self._app is None:
                self._app = await asyncio.to_thread(self._make)
        await self._app({**scope, "root_path": scope.get("app_root_path", "")}, receive, send)
