"""The state of a server, for the operator of the studio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ServerProblem = Literal[
    "not_asked",
    "not_when_public",
    "connecting",
    "cannot_start",
    "ended",
    "no_answer",
    "unreachable",
    "address_refused",
    "locked",
    "not_understood",
]
"""Why a server provides no tools; the page has a message for each under `mcp.<problem>`.

`not_asked`: no turn has needed it yet. `locked`: it rejects the key. `ended`: its program stopped.
"""


@dataclass(frozen=True)
class ServerState:
    """The state of a server: its name in the operator's file, the number of offered tools, and its problem if any."""

    name: str
    tools: int = 0
    problem: ServerProblem | None = None
