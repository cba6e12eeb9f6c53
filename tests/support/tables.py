"""Tables of sentences and what they mean: one line of a file each."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """Return the lists of a file of `tests/tables` by their names."""
    return tomllib.loads((Path(__file__).parents[1] / "tables" / f"{name}.toml").read_text("utf-8"))


def filled(value: Any, words: dict[str, Any]) -> Any:
    """Return a value of a table with what its words stand for in their places; `$null` is None."""
    if isinstance(value, str):
        return None if value == "$null" else words.get(value, value)
    if isinstance(value, list):
        return [filled(one, words) for one in value]
    return {name: filled(one, words) for name, one in value.items()} if isinstance(value, dict) else value
