"""The sentences of the sketch model, in English and Chinese: `agent/locales/sketch.*.toml`, by section and key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def sentences(section: str, *, in_chinese: bool) -> Mapping[str, str]:
    """Return the sentences of a section by their keys, with `{parameters}`."""
    return _file("zh-CN" if in_chinese else "en")[section]


@cache
def _file(language: str) -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(
        resources.files("agent").joinpath("locales", f"sketch.{language}.toml").read_text(encoding="utf-8")
    )
