"""Clones of the project with a Spacefile of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LEAST = 'title = "Foxes & Co: 狐"\nemoji = "🦊"\ncolor_from = "red"\ncolor_to = "gray"\n'

Clone = Callable[..., Path]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """Return a function that makes a clone with further lines in its Spacefile; small ones hold hardly any source."""

    def make(more: str = "", *, is_small: bool = True) -> Path:
        root = tmp_path / "clone"
        root.mkdir(exist_ok=True)
        for name in ("pyproject.toml", "requirements.lock", "agent", "webui"):
            if (root / name).exists():
                continue
            if is_small and "." not in name:
                (root / name).mkdir()
                (root / name / "__init__.py").write_text(f'"""{name}"""\n', "utf-8")
            else:
                os.symlink(ROOT / name, root / name)
        (root / "Spacefile").write_text(LEAST + more, "utf-8")
        return root

    return make
