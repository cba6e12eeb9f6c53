"""The tools that a turn may call: the studio's own, and those of the operator's servers that are known by then."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from agent.mcp.states import ServerProblem, ServerState
from agent.mcp_config import McpServer, StdioServer
from agent.settings import Settings
from agent.tools.base import Tool

if TYPE_CHECKING:
    from agent.mcp.servers import McpServers

# The planner declares these itself; they are no `Tool`.
_PLANNERS = ("generate_image", "web_search")

# How long a turn waits for servers that are being connected.
_TURN_WAITS_S = 2.0

_log = logging.getLogger(__name__)


class Toolbox:
    """The tools of a studio; the `own` ones come before those of any server.

    When the studio is public, no program is started and no server on this machine or its network is connected, because
    anyone who finds the page could use them.
    """

    def __init__(self, settings: Settings, own: Sequence[Tool]) -> None:
        self._settings = settings
        self._own = {tool.name: tool for tool in own}
        self._usable = {name: one for name, one in settings.mcp_servers.items() if not _is_barred(one, settings)}
        for name in settings.mcp_servers.keys() - self._usable.keys():
            _log.warning("the MCP server %s is left out: this studio is public", name)
        self._servers: McpServers | None = None
        self._opening: asyncio.Task[McpServers] | None = None

    async def tools(self) -> Mapping[str, Tool]:
        """Return every tool by its name; the first turn may wait a short time until servers are connected."""
        if not self._usable:
            return self._own
        until_s = time.monotonic() + _TURN_WAITS_S
        if self._opening is None:
            self._opening = asyncio.create_task(self._opened())
        await asyncio.wait({self._opening}, timeout=_TURN_WAITS_S)
        if not self._opening.done():
            return self._own
        return {**self._own, **await self._opening.result().tools(until_s - time.monotonic())}

    def servers(self) -> tuple[ServerState, ...]:
        """Return the state of each of the operator's servers, in the order of the file."""
        known = self._servers.states() if self._servers is not None else {}
        otherwise: ServerProblem = "not_asked" if self._opening is None else "connecting"
        return tuple(
            known.get(name) or ServerState(name, problem=otherwise if name in self._usable else "not_when_public")
            for name in self._settings.mcp_servers
        )

    async def aclose(self) -> None:
        """Close every connection to a server."""
        if self._opening is not None:
            await (await self._opening).aclose()

    async def _opened(self) -> McpServers:
        # Importing the SDK takes half a second, and other users' turns must not wait for it.
        await asyncio.to_thread(import_module, "agent.mcp.servers")
        from agent.mcp.servers import McpServers

        self._servers = McpServers(
            self._usable,
            home=self._settings.home,
            inherited=self._settings.mcp_inherited,
            taken=frozenset((*self._own, *_PLANNERS)),
        )
        # The turn that started this may have stopped waiting.
        self._servers.ensure_connected()
        return self._servers


def _is_barred(server: McpServer, settings: Settings) -> bool:
    return settings.is_public and (isinstance(server, StdioServer) or server.allow_local)
