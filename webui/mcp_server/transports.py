"""The MCP server served, until the client leaves or the process is told to end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from agent import Settings, Studio
from webui.api.auth import Buckets, Callers, TokenFile, Tokens
from webui.guard import LOOPBACK, HostRules
from webui.mcp_server.server import MOST_BYTES, Gate, mcp_server
from webui.whole_json import whole_json

PATH = "/mcp"
_LEAVING_S = 1


class TokenNeeded(Exception):
    """Others than the operator could come, and nobody has a token."""


async def serve_stdio(settings: Settings) -> None:
    """Serve the client at the other end of the pipes. Standard output is its alone.

    Raises AivistaError when the studio's records cannot be opened.
    """
    ended = _told_to_end()
    async with Studio(settings) as studio:
        studio.start_housekeeping()
        serving, end = asyncio.create_task(_stdio(studio)), asyncio.create_task(ended.wait())
        await asyncio.wait({serving, end}, return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if not serving.done():
        # A thread waits for the client's next line, and nothing wakes it: all is on record, so it is left behind.
        sys.stderr.flush()
        os._exit(0)
    await serving


async def serve_http(settings: Settings, host: str, port: int) -> None:
    """Serve streamable HTTP until the process is told to end. The address is printed once it answers.

    Raises TokenNeeded, and AivistaError when the studio's records cannot be opened.
    """
    is_loopback = host in LOOPBACK
    is_open = is_loopback and not settings.is_public
    tokens = TokenFile(settings.home)
    if not is_open and not settings.api_tokens and not tokens.hashes():
        raise TokenNeeded(f"{host} can be reached by others, so a token is needed; make one: aivista token new NAME.")
    settings = settings if is_open else settings.model_copy(update={"is_public": True})
    ended = _told_to_end()
    async with Studio(settings) as studio:
        studio.start_housekeeping()
        server = mcp_server(studio, Buckets(settings.api_turns_per_minute))
        app = Gate(
            server.streamable_http_app(host=host, streamable_http_path=PATH, max_request_body_size=MOST_BYTES),
            HostRules(is_loopback),
            Callers(Tokens(tokens, settings.api_tokens, is_open=is_open), Buckets(settings.api_requests_per_minute)),
        )
        await _Http(app, host, port).serve_until(ended, lambda: studio.wind_down(settings.grace_s))


async def _stdio(studio: Studio) -> None:
    server = mcp_server(studio)
    async with stdio_server() as (read_stream, write_stream):
        passing, passed = create_context_streams[SessionMessage | Exception](0)

        async def pass_on() -> None:
            async with passing:
                async for message in read_stream:
                    await passing.send(_made_whole(message))

        relay = asyncio.create_task(pass_on())
        await server.run(passed, write_stream, server.create_initialization_options())
        relay.cancel()


def _made_whole(message: SessionMessage | Exception) -> SessionMessage | Exception:
    """Return a line that could not be read as one that can, when half a character was all that was wrong with it."""
    if not isinstance(message, ValidationError):
        return message
    line = message.errors()[0]["input"]
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole_json(str(line)), by_name=False))
    except ValidationError:
        return message


class _Http(uvicorn.Server):
    """The HTTP server, whose end is told by us: uvicorn would raise the signal again before the studio is closed."""

    def __init__(self, app: Gate, host: str, port: int) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_config=None,
                access_log=False,
                ws="none",
                lifespan="on",
                timeout_graceful_shutdown=_LEAVING_S,
            )
        )
        self._url = f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    async def serve_until(self, ended: asyncio.Event, wind_down: Callable[[], Awaitable[None]]) -> None:
        """Serve until the event is set and `wind_down` has let the turns at work come to an end."""
        end = asyncio.create_task(self._end(ended, wind_down))
        try:
            await self.serve()
        finally:
            end.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port, and say where."""
        await super().startup(sockets)
        if self.started:
            print(f"Aivista's MCP server is open at {self._url}", flush=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to us."""
        yield

    async def _end(self, ended: asyncio.Event, wind_down: Callable[[], Awaitable[None]]) -> None:
        await ended.wait()
        # Told so once more, it waits no longer.
        ended.clear()
        winding, again = asyncio.ensure_future(wind_down()), asyncio.create_task(ended.wait())
        await asyncio.wait({winding, again}, return_when=asyncio.FIRST_COMPLETED)
        winding.cancel()
        again.cancel()
        # A client's open stream is cut, which it would report as an error.
        logging.getLogger("uvicorn.error").disabled = True
        self.should_exit = True


def _told_to_end() -> asyncio.Event:
    """Return an event that is set when the process is told to end."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ended.set)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    return ended
