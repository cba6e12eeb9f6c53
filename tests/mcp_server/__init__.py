"""MCP servers of the tests: real programs of the SDK's, on their pipes or on loopback, and one that keeps no rule."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tests.adapters.tools import StdioServer
from tests.support.lines import read_line, running

_FOLDER = Path(__file__).parent


def _program(script: str, *flags: str, env: Mapping[str, str] | None = None, **fields: Any) -> StdioServer:
    """Return a server of this folder, to be started on its pipes."""
    hidden = {name: SecretStr(value) for name, value in (env or {}).items()}
    return StdioServer(command=sys.executable, args=(str(_FOLDER / script), *flags), env=hidden, **fields)


desk, rogue = partial(_program, "desk.py"), partial(_program, "rogue.py")


@contextmanager
def desk_at_an_address(*flags: str) -> Iterator[str]:
    """Run the server of `desk.py` on loopback and give its address."""
    command = [sys.executable, str(_FOLDER / "desk.py"), "--http", *flags]
    with running(command) as (child, errors):
        yield read_line(child, errors)
