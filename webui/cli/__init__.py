"""The command `aivista`: flags are parsed and checked before anything heavy is imported."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from webui.cli.parser import CommandFailed, exit_code_of, read_flags

if TYPE_CHECKING:
    from agent import Settings


def main(argv: Sequence[str] | None = None) -> int:
    """Run the studio until it is told to end, or another command; return the exit code.

    0 for success, 1 when a command found something that the user must see to, or 2 when it failed, which is explained
    in one sentence. Invalid flags end the program.
    """
    flags = read_flags(argv)
    return exit_code_of(lambda: _run(flags))


def _run(flags: Namespace) -> int:
    if flags.command == "space":
        from webui.cli.space import run_command

        return run_command(flags)
    from webui.cli.serve import check_port, open_studio, prepare, prepare_log

    if flags.home is not None and not flags.home.strip():
        raise CommandFailed("--home is empty; name a folder.")
    if flags.command is None:
        check_port(flags.host, flags.port)
    elif flags.command == "mcp" and flags.http is not None:
        check_port(*flags.http)
    settings = _settings(flags)
    if flags.command is None:
        return open_studio(flags, settings)
    if flags.command in ("mcp", "token"):
        prepare(settings)
    elif not settings.home.is_dir():
        raise CommandFailed(f"there is no folder {settings.home}; name the studio's with --home.")
    else:
        prepare_log(settings)
    if flags.command == "mcp":
        return _serve_mcp(flags, settings)
    from webui.cli.housekeeping import COMMANDS

    return COMMANDS[flags.command](settings.home, flags)


def _settings(flags: Namespace) -> Settings:
    from agent import Settings, catalogue_of

    home = None if flags.home is None else Path(flags.home)
    tokens = [*filter(None, [os.environ.get("AIVISTA_API_TOKENS", "")]), *flags.api_token]
    settings = Settings.from_env({**os.environ, "AIVISTA_API_TOKENS": ",".join(tokens)}, home=home)
    if flags.command in (None, "mcp"):
        # A model that no variable may name must end the start, not the first turn.
        catalogue_of(settings)
    return settings


def _serve_mcp(flags: Namespace, settings: Settings) -> int:
    from webui.mcp_server.server import TokenNeeded, serve_http, serve_stdio

    if flags.http is None:
        if sys.stdin.isatty():
            print("aivista: waiting for an MCP client on standard input; Ctrl+C ends it.", file=sys.stderr)
        asyncio.run(serve_stdio(settings))
        return 0
    try:
        asyncio.run(serve_http(settings, *flags.http))
    except TokenNeeded as problem:
        raise CommandFailed(str(problem)) from None
    return 0
