"""The operator's servers together: asked for their tools at each turn, and closed with the studio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from agent.mcp.connection import Connection
from agent.mcp.limits import MAX_TOOLS
from agent.mcp.pins import Pins
from agent.mcp.states import ServerState
from agent.mcp.tooling import away_tool_of, tool_of
from agent.mcp_config import McpServer
from agent.tools.base import Tool

_log = logging.getLogger(__name__)


class McpServers:
    """Every server that may be used, in the order of the operator's file.

    `inherited` is what their programs get of our environment; `taken` are names that no tool of theirs may have.
    """

    def __init__(
        self, servers: Mapping[str, McpServer], *, home: Path, inherited: Mapping[str, str], taken: Collection[str]
    ) -> None:
        self._pins = Pins(home)
        self._connections = tuple(
            Connection(name, server, inherited=inherited, pins=self._pins, taken=taken)
            for name, server in servers.items()
        )
        self._told: frozenset[str] = frozenset()

    def need(self) -> None:
        """Connect in the background what is not connected, and have what is looked at anew if that was long ago."""
        for one in self._connections:
            one.need()

    async def tools(self, wait_s: float) -> dict[str, Tool]:
        """Return the tools of the servers that are connected, by the names that models call them by.

        It waits so long for servers that are just being connected; one that needs longer comes in at a later turn.
        Those of a server that was lost are there as well: they are not offered, and a call is told that it is away.
        """
        self.need()
        await self._wait(wait_s)
        offered = [(offer, one) for one in self._connections for offer in one.offers]
        self._tell_of(frozenset(offer.declaration.name for offer, _ in offered[MAX_TOOLS:]))
        lost = [(offer, one) for one in self._connections for offer in one.away]
        return {
            **{offer.declaration.name: away_tool_of(offer, one) for offer, one in lost},
            **{offer.declaration.name: tool_of(offer, one, self._pins) for offer, one in offered[:MAX_TOOLS]},
        }

    def states(self) -> dict[str, ServerState]:
        """Return how it stands with each server, by its name."""
        return {one.name: one.state for one in self._connections}

    async def aclose(self) -> None:
        """End every connection, and every program that was started; all at once, in a second or two."""
        await asyncio.gather(*(one.aclose() for one in self._connections))

    async def _wait(self, seconds: float) -> None:
        waits = {asyncio.ensure_future(one.settled()): one for one in self._connections}
        try:
            _, late = await asyncio.wait(waits, timeout=max(0.0, seconds))
            for one in late:
                waits[one].wait_no_longer()
        finally:
            for wait in waits:
                wait.cancel()

    def _tell_of(self, left_out: frozenset[str]) -> None:
        if left_out and left_out != self._told:
            _log.warning("more than %d tools of MCP servers; left out: %s", MAX_TOOLS, ", ".join(sorted(left_out)))
        self._told = left_out
