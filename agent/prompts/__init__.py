"""The prompts of the agent and the declarations of its tools: files beside this one, with `{name}` placeholders."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def prompt(name: str) -> str:
    """Return the text of a prompt with its placeholders."""
    return _written(f"{name}.txt").strip()


@cache
def declared(name: str) -> dict[str, Any]:
    """Return the description and the properties of a tool, with their placeholders."""
    return tomllib.loads(_written(f"{name}.toml"))


def _written(name: str) -> str:
    return resources.files("agent.prompts").joinpath(name).read_text(encoding="utf-8")
