"""What the buttons of the page do that no pane has for itself: `data-act` is the action, `data-arg` what it is about.

A conversation is opened and kept as it is on record (`opening`), the composer gets what it works on (`composing`), and
turns begin (`beginning`).
"""

from __future__ import annotations

from pydantic import Field

from agent import Value
from webui.shell.actions import Feature

# The longest text fits.
page = Feature("page", most_bytes=4 << 20)


class Arg(Value):
    """What a button is about."""

    arg: str = Field(default="", max_length=1 << 20)


from webui.features.page import beginning, composing, opening  # noqa: E402,F401  they add their actions
