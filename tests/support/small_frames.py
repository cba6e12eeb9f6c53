"""Models whose pictures have fewer pixels, for tests in which the size is not what is tested."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path


def small_frames(folder: Path, shrunk_by: int = 2) -> Path:
    """Return a file with the bundled models as models of the operator's, each side of their pictures shrunk."""

    def shrunk(size: re.Match[str]) -> str:
        return f"= [{int(size[1]) // shrunk_by}, {int(size[2]) // shrunk_by}]"

    bundled = resources.files("agent.providers").joinpath("catalogue.toml").read_text(encoding="utf-8")
    small, sizes = re.subn(r"= \[(\d+), (\d+)\]$", shrunk, bundled, flags=re.MULTILINE)
    assert sizes > 20
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "small_frames.toml"
    path.write_text(small, encoding="utf-8")
    return path
