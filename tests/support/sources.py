"""The code as trees, read once for all that look at it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file, as `ast.walk` gives them."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
