"""The connection to one server: made in the background, used to list and call tools, and made again when it is lost.

A server that is a program on this machine exchanges messages as lines of JSON over its standard input and output, and
its child processes never outlive it. The SDK's own transport does not kill the children of a program that exits by
itself, and when it is cancelled a second time, it waits for ever for a program that keeps running. A server at an
address is reached by the SDK's streamable HTTP, through the guard that checks all our outbound requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from contextvars import Context
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    ToolListChangedNotification,
    jsonrpc_message_adapter,
)
from mcp_types import Tool as ListedTool

from agent.errors import ToolArgumentError
from agent.fetching.guarded_transport import GuardedTransport
from agent.fetching.urls import refused
from agent.mcp.states import ServerProblem, ServerState
from agent.mcp.tool_listing import Offer, Pins, offers_of
from agent.mcp_config import HttpServer, McpServer, StdioServer
from agent.redaction import without_secrets
from agent.untrusted import plain_text
from agent.version import program_version

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

# A message may contain pictures.
_MAX_MESSAGE_BYTES = 16 << 20
_TOO_LONG = "its answer is longer than 16 MB"
_CONNECT_S = 30.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0
# A list of tools older than this is refreshed when a turn begins; the turn does not wait for it.
_LIST_LASTS_S = 30.0
_TIMES = httpx2.Timeout(30.0, connect=5.0, read=300.0)
_LOCKED = frozenset({401, 403})


class HttpLink:
    """The HTTP transport of a server, for `mcp.Client`.

    `is_refused` is set when the guard refused to connect, `is_locked` when the server rejected the key. Requests go
    only to the configured address: the SDK follows no redirect away from it.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._stack = AsyncExitStack()
        self.is_refused = False
        self.is_locked = False
        self.stderr_tail = ""

    async def __aenter__(self) -> TransportStreams:
        """Return the streams of the server's messages and of our messages; nothing is sent yet."""
        headers = {name: value.get_secret_value() for name, value in self._server.headers.items()}
        # No compression: decompressed data could be a thousand times as long as the counted bytes.
        headers["Accept-Encoding"] = "identity"
        client = httpx2.AsyncClient(
            transport=_LimitedTransport(self, self._server), headers=headers, timeout=_TIMES, trust_env=False
        )
        await self._stack.enter_async_context(client)
        streams = streamable_http_client(self._server.url, http_client=client, max_sse_event_size=_MAX_MESSAGE_BYTES)
        return await self._stack.enter_async_context(streams)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End the session and close every connection."""
        return await self._stack.__aexit__(kind, error, trace)


class _LimitedTransport(httpx2.AsyncBaseTransport):
    """A transport that records why a request failed and limits the size of answers.

    Every port is allowed, because the operator chose it.
    With `allow_local`, the guard is not used, because it would refuse an address of this machine or its network: only
    the address in the operator's file is dialled. It is numeric, so that no name can lead elsewhere.
    """

    def __init__(self, link: HttpLink, server: HttpServer) -> None:
        self._link = link
        self._only_host = httpx2.URL(server.url).host if server.allow_local else None
        self._inner: httpx2.AsyncBaseTransport = (
            httpx2.AsyncHTTPTransport(trust_env=False) if server.allow_local else GuardedTransport(ports=None)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            if self._only_host not in (None, request.url.host):
                raise refused(str(request.url), "it is not the address in the operator's file")
            answer = await self._inner.handle_async_request(request)
        except ToolArgumentError:
            self._link.is_refused = True
            raise
        self._link.is_locked = answer.status_code in _LOCKED
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            await answer.aclose()
            raise httpx2.RemoteProtocolError("the answer is packed although that was not asked for")
        if answer.headers.get("content-type", "").lower().startswith("text/event-stream"):
            # The stream may last for hours; the size of each event is limited where it is assembled.
            return answer
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=_LimitedBody(answer), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LimitedBody(httpx2.AsyncByteStream):
    def __init__(self, answer: httpx2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._answer.aiter_raw():
            size += len(piece)
            if size > _MAX_MESSAGE_BYTES:
                # The only kind of error that makes the SDK drop this answer and not the whole session.
                raise httpx2.StreamError(_TOO_LONG)
            yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()


_LAST_WORDS_BYTES = 2000
_POLITE_S = 0.3
_POLL_S = 0.01

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]
_Theirs = MemoryObjectSendStream[SessionMessage | Exception]
_Ours = MemoryObjectReceiveStream[SessionMessage]

_log = logging.getLogger(__name__)


class StdioLink:
    """The transport of a server that is a program, for `mcp.Client`: the child process lives as long as the context.

    `inherited` is the part of our environment that it gets. `on_end` is called when it can no longer answer. Entering
    the context raises OSError when the program cannot be started.
    """

    def __init__(self, server: StdioServer, inherited: Mapping[str, str], *, on_end: Callable[[], None]) -> None:
        self._server = server
        self._inherited = inherited
        self._on_end = on_end
        self._last_words = bytearray()
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: list[Incoming | Outgoing | _Theirs | _Ours] = []
        self._process: Process | None = None

    @property
    def stderr_tail(self) -> str:
        """The end of what the program wrote to stderr."""
        return self._last_words.decode(errors="replace").strip()

    async def __aenter__(self) -> tuple[Incoming, Outgoing]:
        """Start the program and return the streams of its messages and of our messages."""
        own = {name: value.get_secret_value() for name, value in self._server.env.items()}
        process = await asyncio.create_subprocess_exec(
            *(self._server.command, *self._server.args),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**self._inherited, **own},
            cwd=_folder(self._inherited),
            start_new_session=True,
            limit=_MAX_MESSAGE_BYTES,
        )
        self._process = process
        theirs, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, ours = anyio.create_memory_object_stream[SessionMessage](0)
        self._streams = [theirs, incoming, outgoing, ours]
        traffic = (partial(self._read, process, theirs), partial(self._write, process, ours))
        self._tasks = [asyncio.create_task(self._until_the_end(work)) for work in traffic]
        self._tasks.append(asyncio.create_task(self._listen(process)))
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the program: close its input, then send SIGTERM, then kill it."""
        process = self._process
        if process is None:
            return
        try:
            if process.stdin is not None:
                process.stdin.close()
            if not await _has_ended(process):
                _signal(process, signal.SIGTERM)
                await _has_ended(process)
        finally:
            # Kill its child processes too, even when it has already exited or when we are cancelled here.
            _signal(process, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
            for task in self._tasks:
                task.cancel()
            for stream in self._streams:
                stream.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Read its pipes to the end, or their transports would stay open.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), _POLITE_S)

    async def _until_the_end(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            # An error of a broken pipe or closed session only means the end; a line over the limit is a ValueError.
            with contextlib.suppress(OSError, ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await work()
        finally:
            self._on_end()

    async def _read(self, process: Process, theirs: _Theirs) -> None:
        async with theirs:
            while process.stdout is not None and (line := await process.stdout.readline()):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    # Many programs print a greeting to stdout.
                    _log.debug("a line of %s is no message of MCP", self._server.command)
                    continue
                await theirs.send(SessionMessage(message))

    async def _write(self, process: Process, ours: _Ours) -> None:
        async with ours:
            async for message in ours:
                if process.stdin is None:
                    return
                process.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()

    async def _listen(self, process: Process) -> None:
        while process.stderr is not None and (piece := await process.stderr.read(_LAST_WORDS_BYTES)):
            self._last_words += piece
            del self._last_words[:-_LAST_WORDS_BYTES]


def _folder(inherited: Mapping[str, str]) -> Path:
    """Return the program's working directory: the user's home folder, as when it is started by hand."""
    home = Path(inherited.get("HOME") or inherited.get("USERPROFILE") or sys.executable)
    return home if home.is_dir() else Path(home.anchor)


async def _has_ended(process: Process) -> bool:
    # `Process.wait` also waits for the pipes, which a child of the program may keep open.
    deadline = asyncio.get_running_loop().time() + _POLITE_S
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, number)


_MOST_PAGES = 20
_MOST_LISTED = 500
_SAID_CHARACTERS = 400
_BETWEEN_LISTS_S = 0.5
_STEADY_S = 30.0
_CLOSE_S = 1.0
# Texts of the SDK's errors: the server no longer knows our session, and an event was too long.
_SESSION_GONE = "Session terminated"
_EVENT_TOO_LONG = "byte limit"


class CallFailed(Exception):
    """A call without an answer; the message is a sentence for the model, without any of our secrets."""


class Connection:
    """A server of the operator and its state.

    `offers` are its current tools, empty while it is not connected; then `away` contains the tools that it had.

    One task owns the connection from start to end: the SDK's scopes must be left in the task that entered them.
    """

    def __init__(
        self, name: str, server: McpServer, *, inherited: Mapping[str, str], pins: Pins, taken: Collection[str]
    ) -> None:
        self.name = name
        self.server = server
        self.offers: tuple[Offer, ...] = ()
        self.away: tuple[Offer, ...] = ()
        self._problem: ServerProblem | None = "not_asked"
        self._inherited = inherited
        self._pins = pins
        self._taken = taken
        self._client: Client | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_lost = False
        self._listed_s = 0.0
        self._left_out: tuple[str, ...] = ()

    @property
    def state(self) -> ServerState:
        """The current state of the server."""
        return ServerState(self.name, len(self.offers), self._problem)

    def ensure_connected(self) -> None:
        """Start connecting if that has not begun yet; if the list of tools is old, refresh it in the background."""
        if self._keeper is None:
            self._problem = "connecting"
            # An empty context: context variables of the first turn must not leak into the connection.
            self._keeper = asyncio.get_running_loop().create_task(self._keep(), context=Context())
        elif self._client is not None and time.monotonic() - self._listed_s > _LIST_LASTS_S:
            self._wake.set()

    async def settled(self) -> None:
        """Wait until it is connected, or until one attempt has failed since the connection was lost."""
        await self._settled.wait()

    def wait_no_longer(self) -> None:
        """Stop later turns from waiting for it, until it has been connected once."""
        self._settled.set()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the answer of one of its tools. Raises CallFailed."""
        client = self._client
        if client is None:
            raise CallFailed(f"The server {self.name} is away. Go on without it.")
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            async with asyncio.timeout(self.server.timeout_s):
                # Not `call_tool`: it matches the server's own patterns against its answer, on our event loop.
                return await client.session.send_request(request, CallToolResult)
        except TimeoutError:
            raise CallFailed(f"{self.name} gave no answer within {self.server.timeout_s:g} s.") from None
        except MCPError as error:
            raise self._failed(error) from None
        except Exception as error:
            _log.warning("an answer of the MCP server %s cannot be read: %s", self.name, self._shown(error))
            raise CallFailed(f"{self.name} answered with something that is no answer of MCP.") from None

    async def aclose(self) -> None:
        """Close the connection and end the server's program."""
        if self._keeper is None:
            return
        # The second cancellation interrupts an orderly shutdown that takes too long.
        for _ in range(2):
            self._keeper.cancel()
            _, open_still = await asyncio.wait({self._keeper}, timeout=_CLOSE_S)
            if not open_still:
                return

    # The task that owns the connection

    async def _keep(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            began_s = time.monotonic()
            link = self._link()
            try:
                await self._connected(link)
                problem: ServerProblem = "ended" if isinstance(link, StdioLink) else "unreachable"
                error: Exception | None = None
            # The SDK, its transports and a hostile server may raise anything.
            except Exception as raised:
                problem, error = _problem_of(raised, link), raised
            self._disconnected(problem, error, link)
            if time.monotonic() - began_s > _STEADY_S:
                pause = _FIRST_PAUSE_S
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _link(self) -> StdioLink | HttpLink:
        if isinstance(self.server, StdioServer):
            return StdioLink(self.server, self._inherited, on_end=self._mark_lost)
        return HttpLink(self.server)

    async def _connected(self, link: StdioLink | HttpLink) -> None:
        """Connect, and return when the connection is lost."""
        self._is_lost = False
        us = Implementation(name="aivista", version=program_version())
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(_CONNECT_S):
                client = Client(link, client_info=us, message_handler=self._on_message, cache=None)
                await stack.enter_async_context(client)
                await self._list(client)
            self._client, self._problem = client, None
            self._settled.set()
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._is_lost:
                    return
                # A server that keeps announcing changed tools is asked only every _BETWEEN_LISTS_S.
                await asyncio.sleep(max(0.0, self._listed_s + _BETWEEN_LISTS_S - time.monotonic()))
                async with asyncio.timeout(self.server.timeout_s):
                    await self._list(client)

    def _disconnected(self, problem: ServerProblem, error: Exception | None, link: StdioLink | HttpLink) -> None:
        if self._client is not None:
            # The next turn may wait for it again for a short time.
            self._settled.clear()
        else:
            self._settled.set()
        level = logging.WARNING if problem != self._problem else logging.DEBUG
        self.away = self.offers or self.away
        self._client, self.offers, self._problem = None, (), problem
        reason = self._shown(error) if error is not None else "the connection was lost"
        _log.log(level, "the MCP server %s gives no tools (%s): %s", self.name, problem, reason)
        if link.stderr_tail:
            _log.log(level, "the MCP server %s wrote: %s", self.name, self._hidden(link.stderr_tail))

    async def _list(self, client: Client) -> None:
        listed: list[ListedTool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            try:
                page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                # A server without tools does not know the method.
                break
            listed += page.tools
            cursor = page.next_cursor
            if not cursor or len(listed) > _MOST_LISTED:
                break
        offers, left_out = offers_of(self.name, listed[:_MOST_LISTED], self.server.tools, self._taken)
        if left_out and left_out != self._left_out:
            names = self._hidden(", ".join(left_out))
            _log.warning("of the tools of the MCP server %s, some are left out: %s", self.name, names)
        self._left_out = left_out
        await self._pins.see(self.name, {one.tool: one.fingerprint for one in offers})
        self.offers, self.away = offers, ()
        self._listed_s = time.monotonic()

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._wake.set()

    def _mark_lost(self) -> None:
        self._is_lost = True
        self._wake.set()

    def _failed(self, error: MCPError) -> CallFailed:
        message = error.error.message
        if _TOO_LONG in message or _EVENT_TOO_LONG in message:
            return CallFailed(f"{self.name} failed: {_TOO_LONG}. Ask it for less at once.")
        if error.code == CONNECTION_CLOSED or _SESSION_GONE in message:
            self._mark_lost()
            return CallFailed(f"{self.name} broke off before it answered; whether it did anything is not known.")
        return CallFailed(f"{self.name} answers with an error: {self._hidden(message)}")

    def _shown(self, error: Exception) -> str:
        return self._hidden("; ".join(f"{type(one).__name__} {one}".strip() for one in _single(error)))

    def _hidden(self, text: str) -> str:
        return without_secrets(" ".join(plain_text(text).split()), self.server.secrets)[:_SAID_CHARACTERS]


def _single(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _single(one)
    else:
        yield error


def _problem_of(error: Exception, link: StdioLink | HttpLink) -> ServerProblem:
    kinds = tuple(_single(error))
    if isinstance(link, HttpLink) and link.is_refused:
        return "address_refused"
    if isinstance(link, HttpLink) and link.is_locked:
        return "locked"
    if any(isinstance(one, TimeoutError) for one in kinds):
        return "no_answer"
    if any(isinstance(one, httpx2.TransportError) for one in kinds):
        return "unreachable"
    if isinstance(link, StdioLink) and any(isinstance(one, OSError) for one in kinds):
        return "cannot_start"
    if any(isinstance(one, MCPError) and one.code == CONNECTION_CLOSED for one in kinds):
        return "ended" if isinstance(link, StdioLink) else "unreachable"
    return "not_understood"
