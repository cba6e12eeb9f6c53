"""The styles that come with the studio, from the TOML files of `style_data`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources

from agent.storage.style_values import Style


@lru_cache(maxsize=1)
def curated_styles() -> tuple[Style, ...]:
    """Return every curated style, family by family."""
    folder = resources.files("agent.storage") / "style_data"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    return tuple(Style.model_validate(row) for table in tables for row in table["style"])
