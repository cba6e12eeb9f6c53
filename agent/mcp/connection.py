"""One server: connected to in the background, listed, called, and connected to again when it is lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from contextvars import Context
from importlib.metadata import version
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.client import IncomingMessage
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from mcp_types import Tool as ListedTool

from agent.mcp.limits import CONNECT_S, FIRST_PAUSE_S, LIST_LASTS_S, LONGEST_PAUSE_S, TOO_LONG
from agent.mcp.offers import Offer, offers_of
from agent.mcp.pins import Pins
from agent.mcp.states import ServerProblem, ServerState
from agent.mcp.stdio import StdioLink
from agent.mcp.streamable_http import HttpLink
from agent.mcp_config import McpServer, StdioServer
from agent.redaction import without_secrets
from agent.untrusted import plain_text

_MOST_PAGES = 20
_MOST_LISTED = 500
_SAID_CHARACTERS = 400
_BETWEEN_LISTS_S = 0.5
_STEADY_S = 30.0
_CLOSE_S = 1.0
# How the SDK says that the server knows our session no more, and that an event was too long for it.
_SESSION_GONE = "Session terminated"
_EVENT_TOO_LONG = "byte limit"

_log = logging.getLogger(__name__)


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

    def need(self) -> None:
        """Connect, if that was not begun yet, and look whether what is known of its tools is still so."""
        if self._keeper is None:
            self._problem = "connecting"
            # Whatever the turn that happens to be first carries with it is not the server's.
            self._keeper = asyncio.get_running_loop().create_task(self._keep(), context=Context())
        elif self._client is not None and time.monotonic() - self._listed_s > LIST_LASTS_S:
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
        pause = FIRST_PAUSE_S
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
                pause = FIRST_PAUSE_S
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _link(self) -> StdioLink | HttpLink:
        if isinstance(self.server, StdioServer):
            return StdioLink(self.server, self._inherited, on_end=self._lose)
        return HttpLink(self.server)

    async def _connected(self, link: StdioLink | HttpLink) -> None:
        """Connect, and return when the connection is lost."""
        self._is_lost = False
        us = Implementation(name="aivista", version=version("aivista"))
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(CONNECT_S):
                client = Client(link, client_info=us, message_handler=self._heard, cache=None)
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
        if link.last_words:
            _log.log(level, "the MCP server %s wrote: %s", self.name, self._hidden(link.last_words))

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

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._wake.set()

    def _lose(self) -> None:
        self._is_lost = True
        self._wake.set()

    def _failed(self, error: MCPError) -> CallFailed:
        said = error.error.message
        if TOO_LONG in said or _EVENT_TOO_LONG in said:
            return CallFailed(f"{self.name} failed: {TOO_LONG}. Ask it for less at once.")
        if error.code == CONNECTION_CLOSED or _SESSION_GONE in said:
            self._lose()
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
