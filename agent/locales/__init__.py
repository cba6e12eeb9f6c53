"""What is said to people, in every language: a file for each part and language, sentences with `{parameters}`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def sentences(part: str, language: str) -> Mapping[str, Any]:
    """Return what a part, such as `errors`, says in a language (`en`, `zh-CN`), by key."""
    file = resources.files("agent").joinpath("locales", f"{part}.{language}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
