"""Tables of sentences and what they mean: one line of a file each."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "tables"


@cache
def table(name: str) -> dict[str, Any]:
    """Return the lists of a file of `tests/tables` by their names."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
