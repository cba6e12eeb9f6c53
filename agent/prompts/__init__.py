"""The prompts of the agent: text files beside this one, with `{name}` places to fill."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def prompt(name: str) -> str:
    """Return the text of a prompt, unfilled."""
    return resources.files("agent.prompts").joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()
