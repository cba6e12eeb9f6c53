"""`aivista mcp` as a process of its own, met on its pipes or at an address by the official client."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import Popen
from types import MappingProxyType
from typing import IO

import anyio
from mcp import Client, StdioServerParameters
from mcp.server.stdio import stdio_server

from tests.page import clean_environment
from tests.page.process import start
from tests.support.warm_start import WarmCommand

PATIENCE_S = 60


@contextmanager
def serving(
    home: Path, *last: str, before: Sequence[str] = (), environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[Popen[str] | WarmCommand, IO[str]]]:
    """Run the server; give its process and the file with what it writes to its standard error."""
    arguments = [*before, "mcp", "--home", str(home), *last]
    with tempfile.TemporaryFile("w+") as errors:
        child = start(arguments, errors, environment=clean_environment(**environment), has_input=True)
        assert child.stdin is not None
        assert child.stdout is not None
        with child.stdin, child.stdout:
            try:
                yield child, errors
            finally:
                child.kill()
                child.wait(PATIENCE_S)


@asynccontextmanager
async def on_pipes(
    home: Path, mode: str = "auto", *, environment: Mapping[str, str] = MappingProxyType({}), is_cold: bool = False
) -> AsyncIterator[Client]:
    """Run the server and meet it on its pipes; whatever it writes to its output must be the protocol, and when they
    are closed it ends.

    In the mode `legacy` they shake hands as they did before 2026. If it `is_cold`, the client starts it by its command.
    """
    strange: list[object] = []

    async def hear(message: object) -> None:
        if isinstance(message, Exception):
            strange.append(message)

    if is_cold:
        command = ["-m", "webui", "mcp", "--home", str(home)]
        program = StdioServerParameters(command=sys.executable, args=command, env=clean_environment(**environment))
        async with Client(program, message_handler=hear, mode=mode, read_timeout_seconds=PATIENCE_S) as client:
            yield client
    else:
        with serving(home, environment=environment) as (child, _):
            assert child.stdin is not None
            assert child.stdout is not None
            # What a server does with its own pipes, a client does with the other ends.
            pipes = stdio_server(anyio.wrap_file(child.stdout), anyio.wrap_file(child.stdin))
            async with Client(pipes, message_handler=hear, mode=mode, read_timeout_seconds=PATIENCE_S) as client:
                try:
                    yield client
                finally:
                    # Whoever reads from it would wait for ever.
                    child.stdin.close()
            assert child.wait(PATIENCE_S) == 0
    assert strange == []
