"""The texts shown to users, in every language: one file per part and language, with `{parameters}` in sentences."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def sentences(part: str, language: str) -> Mapping[str, Any]:
    """Return the texts of a part, such as `errors`, in a language (`en`, `zh-CN`), by key."""
    file = resources.files("agent").joinpath("locales", f"{part}.{language}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
