"""How it stands with a server, for whoever looks after the studio."""

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
"""Why a server gives no tools; the page has a sentence for each under `mcp.<problem>`.

`not_asked`: no turn has needed it yet. `locked`: it wants another key. `ended`: its program stopped.
"""


@dataclass(frozen=True)
class ServerState:
    """A server's name in the operator's file, how many of its tools are offered, and what is wrong if anything is."""

    name: str
    tools: int = 0
    problem: ServerProblem | None = None
