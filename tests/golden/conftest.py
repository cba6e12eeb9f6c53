"""The comparison of what comes out with the file on record."""

from __future__ import annotations

import json
from difflib import unified_diff
from pathlib import Path
from typing import Protocol

import pytest


class Golden(Protocol):
    """Compares what came out, text or what JSON can hold, with the file of that name."""

    def __call__(self, name: str, found: object) -> None:
        """Fail with the difference; with `--update-golden` write the file."""


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return the comparison with what is on record."""

    def compare(name: str, found: object) -> None:
        path = Path(__file__).parent / name
        text = found if isinstance(found, str) else json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        kept = path.read_text("utf-8") if path.exists() else ""
        if text != kept:
            lines = list(unified_diff(kept.splitlines(), text.splitlines(), "on record", "now", lineterm="", n=2))
            pytest.fail("\n".join([f"{name} has changed:", *lines[:80]]), pytrace=False)

    return compare
