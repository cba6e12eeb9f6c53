"""Who calls, and what a call of a tool works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import SecretStr

from agent import Studio

SCOPE_KEY = "aivista.mcp.caller"

Report = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Caller:
    """Whose things may be seen and made, and the key of their own that came along; the operator's over stdio."""

    owner: str = "local"
    key: SecretStr | None = None


@dataclass(frozen=True)
class Call:
    """A call of a tool: `report` tells the client what is being done now."""

    studio: Studio
    caller: Caller
    report: Report


class CallRefused(Exception):
    """A call that this door refuses by itself; its text is the sentence for the caller."""
