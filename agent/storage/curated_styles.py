"""The styles that come with the studio, from the TOML files of `style_data`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any

from agent.library import Style
from agent.style_rendering import StyleLook

# What an entry of the files has beside the style itself.
_BESIDE = frozenset({"described", "look"})


@lru_cache(maxsize=1)
def curated_styles() -> tuple[Style, ...]:
    """Return every curated style, family by family."""
    return tuple(
        Style.model_validate({name: value for name, value in row.items() if name not in _BESIDE}) for row in _rows()
    )


@lru_cache(maxsize=1)
def curated_descriptions() -> dict[str, tuple[str, ...]]:
    """Return how people describe each style without its name, in both languages, by the style's id."""
    return {row["id"]: (*row["described"]["en"], *row["described"]["zh"]) for row in _rows()}


@lru_cache(maxsize=1)
def curated_looks() -> dict[str, StyleLook]:
    """Return how each style is drawn by rules, by the style's id."""
    return {row["id"]: StyleLook.model_validate(row["look"]) for row in _rows()}


def _rows() -> list[dict[str, Any]]:
    folder = resources.files("agent.storage") / "style_data"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    return [row for table in tables for row in table["style"]]
