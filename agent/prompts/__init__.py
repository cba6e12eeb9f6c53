"""The prompts of the agent and its function for pictures: files beside this one, with `{name}` places to fill."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def prompt(name: str) -> str:
    """Return the text of a prompt, unfilled."""
    return _written(f"{name}.txt").strip()


@cache
def declared(name: str) -> dict[str, Any]:
    """Return the description and the properties of a tool, unfilled."""
    return tomllib.loads(_written(f"{name}.toml"))


def _written(name: str) -> str:
    return resources.files("agent.prompts").joinpath(name).read_text(encoding="utf-8")
