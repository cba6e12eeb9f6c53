"""Models whose pictures have fewer pixels, for tests in which the size is not what is tested."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path


def small_frames(folder: Path) -> Path:
    """Return a file with the bundled models as models of the operator's, each side of their pictures halved."""

    def halved(size: re.Match[str]) -> str:
        return f"= [{int(size[1]) // 2}, {int(size[2]) // 2}]"

    bundled = resources.files("agent.providers").joinpath("catalogue.toml").read_text(encoding="utf-8")
    small, sizes = re.subn(r"= \[(\d+), (\d+)\]$", halved, bundled, flags=re.MULTILINE)
    assert sizes > 20
    path = folder / "small_frames.toml"
    path.write_text(small, encoding="utf-8")
    return path
