"""The page comes filled for its visitor: what Python would send when the page asks is written into its document.

Gradio builds a page from the configuration in its document, the same for everybody, and asks Python for the rest once
it has drawn that. What is in the configuration already needs no second drawing, and no waiting for an answer.
"""

from __future__ import annotations

import asyncio
import gzip
import logging

import orjson
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import AivistaError
from webui.features.page.filling import written
from webui.guard import LOOPBACK
from webui.screen import Screen, Updates, properties

_log = logging.getLogger(__name__)
# By then a page has its styles and scripts, and nobody has finished a sentence.
_DRAWN_AFTER_S = 2.0
_BEFORE = b"window.gradio_config = "
_AFTER = b";</script>"
# As in Gradio's own page: nothing in it may end the script that it stands in.
_IN_A_SCRIPT = [(char.encode(), f"\\u{ord(char):04x}".encode()) for char in "<>&'\u2028\u2029"]


class PageFill:
    """ASGI middleware around the page. A page that it cannot fill goes out as it is, and asks for what it lacks."""

    def __init__(self, app: ASGIApp, screen: Screen) -> None:
        self.app = app
        self.screen = screen
        self._has_served = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("GET", "/"):
            await self.app(scope, receive, send)
            return
        start: Message = {}
        pieces: list[bytes] = []

        async def held(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            pieces.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = b"".join(pieces)
            if start["status"] == 200:
                request, headers = Request(scope), MutableHeaders(raw=start["headers"])
                body = _packed(request, headers, await self._filled(request, body))
                headers["content-length"] = str(len(body))
                # It is this visitor's, and of this moment: no cache may show it again.
                headers["cache-control"] = "no-store"
            await send(start)
            await send({"type": "http.response.body", "body": body})
            self._warm_up_once()

        await self.app(scope, receive, held)

    def _warm_up_once(self) -> None:
        """Once the first page is out and drawn, have the studio load what its first turn would wait for."""
        if not self._has_served:
            self._has_served = True
            asyncio.get_running_loop().call_later(_DRAWN_AFTER_S, self.screen.studio().warm_up)

    async def _filled(self, request: Request, document: bytes) -> bytes:
        """Return the document with what its visitor is to see, or as it was."""
        visitor = self.screen.sessions.visitor(request)
        try:
            updates = await written(self.screen, visitor, request.query_params.get("c", ""))
        except AivistaError as error:
            # The page asks once more, and tells what is wrong.
            _log.info("the page went out unfilled: %s", error.info.code)
            return document
        if updates is None:
            return document
        try:
            return with_updates(document, updates)
        except (ValueError, TypeError) as error:
            # Another layout of Gradio's, or something that no JSON can hold: slower is better than nothing.
            _log.warning("the page went out unfilled: %s", type(error).__name__)
            return document


def _packed(request: Request, headers: MutableHeaders, body: bytes) -> bytes:
    """Return the page as it travels best: packed to a seventh for who comes from elsewhere. Gradio does not pack it."""
    if request.url.hostname in LOOPBACK or "gzip" not in request.headers.get("accept-encoding", ""):
        return body
    headers["content-encoding"] = "gzip"
    headers.add_vary_header("Accept-Encoding")
    return gzip.compress(body, compresslevel=4, mtime=0)


def with_updates(document: bytes, updates: Updates) -> bytes:
    """Return a page of Gradio's with components that look as after the updates. Raises ValueError for another one."""
    start = document.index(_BEFORE) + len(_BEFORE)
    end = document.index(_AFTER, start)
    config = orjson.loads(document[start:end])
    shown = {component._id: properties(component, update) for component, update in updates.items()}
    for one in config["components"]:
        one["props"].update(shown.get(one["id"], {}))
    told = orjson.dumps(config)
    for char, escaped in _IN_A_SCRIPT:
        told = told.replace(char, escaped)
    return document[:start] + told + document[end:]
