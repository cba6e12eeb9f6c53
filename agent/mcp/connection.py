"""One server: connected to in the background, listed, called, and connected to again when it is lost.

One that is a program of this machine is spoken to by one line of JSON a message, over its input and output, and no
child of it outlives it, however it ends: the SDK's own transport leaves alone what was started by a program that ends
by itself, and waits for ever for one that lives on when it is cancelled a second time. One at an address is asked by
the SDK's streamable HTTP, through the guard that every outbound request of ours passes.
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

# With pictures in it.
_MAX_MESSAGE_BYTES = 16 << 20
_TOO_LONG = "its answer is longer than 16 MB"
_CONNECT_S = 30.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0
# A list of tools older than this is asked for again when a turn begins; the turn does not wait for it.
_LIST_LASTS_S = 30.0
_TIMES = httpx2.Timeout(30.0, connect=5.0, read=300.0)
_LOCKED = frozenset({401, 403})


class HttpLink:
    """The way to such a server, for `mcp.Client`.

    `is_refused` is set when the guard would not dial, `is_locked` when the server wants another key. What is asked for
    goes to the configured address alone: the SDK follows no redirect away from it.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._stack = AsyncExitStack()
        self.is_refused = False
        self.is_locked = False
        self.stderr_tail = ""

    async def __aenter__(self) -> TransportStreams:
        """Return the streams of the server's messages and of ours; nothing is sent yet."""
        headers = {name: value.get_secret_value() for name, value in self._server.headers.items()}
        # What is unpacked may be a thousand times as long as what was counted.
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
        """End the session, and close every connection."""
        return await self._stack.__aexit__(kind, error, trace)


class _LimitedTransport(httpx2.AsyncBaseTransport):
    """Notes why nothing came, and lets no answer grow. Which port a server listens on, the operator has said.

    An address of this machine or its network, which the guard would never dial, is dialled as the operator wrote it:
    in numbers, so that no name can lead elsewhere.
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
            # It may go on for hours; each event of it is limited where it is put together.
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
                # The one kind of error that costs the SDK this answer and not the whole session.
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
    """The way to such a server, for `mcp.Client`: the child lives as long as the context.

    `inherited` is what it gets of our environment. `on_end` is called when it can answer no more.
    Entering raises OSError when the program cannot be started.
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
        """The end of what the program wrote to its log."""
        return self._last_words.decode(errors="replace").strip()

    async def __aenter__(self) -> tuple[Incoming, Outgoing]:
        """Start the program and return the streams of its messages and of ours."""
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
        """End the program: by closing its input, then by a word, then by force."""
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
            # Its own children as well, also when it has gone already, and also when we are cancelled meanwhile.
            _kill(process)
            for task in self._tasks:
                task.cancel()
            for stream in self._streams:
                stream.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # To the end of its pipes, or their transports would stay open.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), _POLITE_S)

    async def _until_the_end(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            # What breaks when a pipe does, or when the session has gone, is the end and no more; a line without an end
            # is a ValueError.
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
                    # Many a program greets on the wrong pipe.
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
    """Return where the program runs: the user's own folder, as where it would be started by hand."""
    home = Path(inherited.get("HOME") or inherited.get("USERPROFILE") or sys.executable)
    return home if home.is_dir() else Path(home.anchor)


async def _has_ended(process: Process) -> bool:
    # `Process.wait` waits for the pipes, too, which a child of the program may hold open.
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


def _kill(process: Process) -> None:
    _signal(process, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


_MOST_PAGES = 20
_MOST_LISTED = 500
_SAID_CHARACTERS = 400
_BETWEEN_LISTS_S = 0.5
_STEADY_S = 30.0
_CLOSE_S = 1.0
# How the SDK says that the server knows our session no more, and that an event was too long for it.
_SESSION_GONE = "Session terminated"
_EVENT_TOO_LONG = "byte limit"


class CallFailed(Exception):
    """A call has no answer; the message is a sentence for the model, with nothing of ours in it."""


class Connection:
    """A server of the operator's and what is known of it. `offers` are its tools now, none while it is not connected;
    `away` are then those that it had.

    One task holds the connection from its beginning to its end: the SDK's scopes must be left where they were entered.
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
        """How it stands."""
        return ServerState(self.name, len(self.offers), self._problem)

    def ensure_connected(self) -> None:
        """Connect, if that was not begun yet, and look whether what is known of its tools is still so."""
        if self._keeper is None:
            self._problem = "connecting"
            # Whatever the turn that happens to be first carries with it is not the server's.
            self._keeper = asyncio.get_running_loop().create_task(self._keep(), context=Context())
        elif self._client is not None and time.monotonic() - self._listed_s > _LIST_LASTS_S:
            self._wake.set()

    async def settled(self) -> None:
        """Return when it is connected, or when trying to has failed once since it was lost."""
        await self._settled.wait()

    def wait_no_longer(self) -> None:
        """Let the turns to come go without waiting for it, until it has been connected once."""
        self._settled.set()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the answer of one of its tools. Raises CallFailed."""
        client = self._client
        if client is None:
            raise CallFailed(f"The server {self.name} is away. Go on without it.")
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            async with asyncio.timeout(self.server.timeout_s):
                # Not `call_tool`: that tries patterns of the server's on its answer, on the loop that serves us all.
                return await client.session.send_request(request, CallToolResult)
        except TimeoutError:
            raise CallFailed(f"{self.name} gave no answer within {self.server.timeout_s:g} s.") from None
        except MCPError as error:
            raise self._failed(error) from None
        except Exception as error:
            _log.warning("an answer of the MCP server %s cannot be read: %s", self.name, self._shown(error))
            raise CallFailed(f"{self.name} answered with something that is no answer of MCP.") from None

    async def aclose(self) -> None:
        """End the connection, and the server's program with it."""
        if self._keeper is None:
            return
        # The second time it is in the middle of an orderly end that takes too long.
        for _ in range(2):
            self._keeper.cancel()
            _, open_still = await asyncio.wait({self._keeper}, timeout=_CLOSE_S)
            if not open_still:
                return

    # The task that holds the connection

    async def _keep(self) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            began_s = time.monotonic()
            link = self._link()
            try:
                await self._connected(link)
                problem: ServerProblem = "ended" if isinstance(link, StdioLink) else "unreachable"
                error: Exception | None = None
            # Of whatever kind it is: the SDK, its transports and a hostile server may raise anything.
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
                # One that says at every moment that it has other tools is asked now and then.
                await asyncio.sleep(max(0.0, self._listed_s + _BETWEEN_LISTS_S - time.monotonic()))
                async with asyncio.timeout(self.server.timeout_s):
                    await self._list(client)

    def _disconnected(self, problem: ServerProblem, error: Exception | None, link: StdioLink | HttpLink) -> None:
        if self._client is not None:
            # The next turn may wait a moment for it again.
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
                # A server without tools has not even the question for them.
                break
            listed += page.tools
            cursor = page.next_cursor
            if not cursor or len(listed) > _MOST_LISTED:
                break
        offers, left_out = offers_of(self.name, listed[:_MOST_LISTED], self.server.tools, self._taken)
        if left_out and left_out != self._left_out:
            told = self._hidden(", ".join(left_out))
            _log.warning("of the tools of the MCP server %s, some are left out: %s", self.name, told)
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
        said = error.error.message
        if _TOO_LONG in said or _EVENT_TOO_LONG in said:
            return CallFailed(f"{self.name} failed: {_TOO_LONG}. Ask it for less at once.")
        if error.code == CONNECTION_CLOSED or _SESSION_GONE in said:
            self._mark_lost()
            return CallFailed(f"{self.name} broke off before it answered; whether it did anything is not known.")
        return CallFailed(f"{self.name} answers with an error: {self._hidden(said)}")

    def _shown(self, error: Exception) -> str:
        said = "; ".join(f"{type(one).__name__} {one}".strip() for one in _single(error))
        return self._hidden(said)

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
