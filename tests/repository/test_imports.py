"""Tests know the program by its doors: those that still reach inside are on a list that may only become shorter."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.sources import nodes

TESTS = Path(__file__).parents[1]
LIST = Path(__file__).parent / "reaching_inside.txt"
# The doors of the program, and the values that go through them.
DOORS = frozenset(("agent", "agent.spending", "webui"))


def imports_of(path: Path) -> set[str]:
    """Return the modules of the program that a file names."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {module for module in found if module.partition(".")[0] in {"agent", "webui"}}


def test_no_test_reaches_inside_that_did_not_and_whoever_stops_is_off_the_list() -> None:
    reaching = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if path.parent.name != "adapters" and not imports_of(path) <= DOORS
    }
    listed = set(LIST.read_text("utf-8").split())
    assert reaching - listed == set(), "import what a test needs of the inside through `tests/adapters`"
    assert listed - reaching == set(), f"take these off {LIST.name}"
