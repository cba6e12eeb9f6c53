"""Turns of a studio whose operator lists MCP servers: each in a studio that has met them already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agent import Settings, Studio, ToolResultPart, TurnEvent
from tests.adapters.models import Asked, Line, says
from tests.adapters.tools import McpServer, ServerState
from tests.support.scenes import Scene, run
from tests.support.tool_calls import results
from tests.support.waiting import until


@dataclass
class Meeting:
    """A studio, a conversation in it, and what its planner is about to say."""

    studio: Studio
    scene: Scene
    conversation_id: str
    lines: list[Line]

    async def turn(self, *lines: Line, text: str = "go on") -> list[TurnEvent]:
        """Run one turn in which the planner answers with these lines, and return its events."""
        self.lines[:] = lines
        return await run(self.studio, self.conversation_id, text)

    @property
    def asked(self) -> Asked:
        """What the planner was asked last."""
        return self.scene.provider.asked[-1]

    @property
    def answer(self) -> ToolResultPart:
        """What the planner was answered last."""
        (only,) = results(self.asked)
        return only

    @property
    def tools(self) -> set[str]:
        """The names of the tools that the planner was last offered."""
        return {tool.name for tool in self.asked.tools}

    def state(self, name: str) -> ServerState:
        """How it stands with a server."""
        return next(one for one in self.studio.mcp_servers() if one.name == name)

    async def until_connected(self, name: str) -> None:
        """Return when the tools of a server can be had. Raises TimeoutError."""
        await until(lambda: self.state(name).problem is None)

    async def until_it_says(self, name: str, problem: str) -> None:
        """Return when this is what is wrong with a server. Raises TimeoutError."""
        await until(lambda: self.state(name).problem == problem)


@asynccontextmanager
async def meeting(
    settings: Settings, servers: Mapping[str, McpServer], *, is_awaited: bool = True, **changes: Any
) -> AsyncIterator[Meeting]:
    """Give a studio with these servers, after a first turn; unless that is not awaited, they are all connected."""
    # Taken in now, so that no turn of a test has to do without the tools because of it.
    await asyncio.to_thread(import_module, "agent.mcp.servers")
    lines = [says("Hello.")]
    scene = Scene(settings.model_copy(update={"mcp_servers": dict(servers), **changes}), text=lambda _: lines.pop(0))
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        met = Meeting(studio, scene, conversation.id, lines)
        await met.turn(says("Hello."))
        for name in servers if is_awaited else ():
            await met.until_connected(name)
        yield met
