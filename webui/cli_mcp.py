"""`aivista mcp`: the studio as an MCP server for other programs' agents."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent import Settings


class McpProblem(Exception):
    """Why the server cannot be opened, in one sentence."""


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add `mcp` to the parser of the command line and return its parser."""
    mcp: argparse.ArgumentParser = commands.add_parser(
        "mcp",
        help="serve other programs' agents, as an MCP server",
        description="Serve the studio's tools and pictures to another program's agent by the Model Context Protocol: "
        "on its pipes, or with --http at an address. Exit code 0: done; 2: it cannot run.",
    )
    mcp.add_argument(
        "--http",
        type=_address,
        metavar="HOST:PORT",
        help="serve streamable HTTP at http://HOST:PORT/mcp (default: standard input and output)",
    )
    return mcp


def serve(flags: argparse.Namespace, settings: Settings) -> int:
    """Serve until the client leaves or the process is told to end; return the exit code.

    Raises McpProblem, and AivistaError when the studio's records cannot be opened.
    """
    from webui.mcp_server.transports import TokenNeeded, serve_http, serve_stdio

    if flags.http is None:
        if sys.stdin.isatty():
            print("aivista: waiting for an MCP client on standard input; Ctrl+C ends it.", file=sys.stderr)
        asyncio.run(serve_stdio(settings))
        return 0
    try:
        asyncio.run(serve_http(settings, *flags.http))
    except TokenNeeded as problem:
        raise McpProblem(str(problem)) from None
    return 0


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no address: write HOST:PORT, such as 127.0.0.1:8790")
    return host, int(port)
