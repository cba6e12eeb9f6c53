"""`aivista mcp` as a client starts it: a real process, met on its pipes by the official client."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters

from tests.page import clean_environment

PATIENCE_S = 60


@asynccontextmanager
async def on_pipes(home: Path, mode: str = "auto", **environment: str) -> AsyncIterator[Client]:
    """Start the server as a client does, and meet it; whatever it writes to its output must be the protocol.

    In the mode `legacy` they shake hands as they did before 2026.
    """
    strange: list[object] = []

    async def hear(message: object) -> None:
        if isinstance(message, Exception):
            strange.append(message)

    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "webui", "mcp", "--home", str(home)],
        env=clean_environment(**environment),
    )
    async with Client(command, message_handler=hear, mode=mode, read_timeout_seconds=PATIENCE_S) as client:
        yield client
    assert strange == []
