"""How much a server may take of us."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 1 << 20
MAX_TOOLS: Final = 64
CONNECT_S: Final = 30.0
# How long a turn waits for servers that are just being connected.
TURN_WAITS_S: Final = 2.0
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
# A list of tools older than this is asked for again when a turn begins; the turn does not wait for it.
LIST_LASTS_S: Final = 30.0

TOO_LONG: Final = "its answer is longer than 1 MB"
