"""Every text on the page, by key, in the visitor's language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from agent import EXACT_ADJUSTMENT_LABEL, ErrorInfo, error_sentences

LANGUAGES: tuple[str, ...] = ("en", "zh-CN")
# The names of models that are no models, by their labels in the records.
_OWN_MODELS = {EXACT_ADJUSTMENT_LABEL: "receipt.exact", "Sketch": "composer.sketch"}


class _Blank(dict[str, Any]):
    """Parameters of a sentence; a missing one reads as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


@dataclass(frozen=True)
class Words:
    """The texts of one language. Calling it with a key returns the sentence with its {parameters} filled in."""

    language: str
    table: Mapping[str, str]

    def __call__(self, key: str, **parameters: object) -> str:
        return self.table[key].format_map(_Blank(parameters))

    def counted(self, key: str, count: int, **parameters: object) -> str:
        """Return the sentence for a count: `<key>_one` when the count is one and that key exists."""
        chosen = f"{key}_one" if count == 1 and f"{key}_one" in self.table else key
        return self(chosen, count=f"{count:,}", **parameters)

    def model(self, label: str) -> str:
        """Return the name of a model; the studio's own operations have translated names."""
        return self(_OWN_MODELS[label]) if label in _OWN_MODELS else label

    def error(self, info: ErrorInfo) -> str:
        """Return the sentence of a failure."""
        return info.sentence(self.language)


@cache
def load_words(language: str) -> Words:
    """Return the texts of one of LANGUAGES; sentences of failures stand under `error.<code>`."""
    text = resources.files("webui").joinpath("locales", f"{language}.toml").read_text(encoding="utf-8")
    groups = {**tomllib.loads(text), "error": error_sentences(language)}
    table = {f"{group}.{key}": value for group, keys in groups.items() for key, value in keys.items()}
    return Words(language, table)


def choose_language(fixed: str | None, chosen: str | None, accepted: str) -> str:
    """Return the page's language: the visitor's choice, else the operator's, else what the browser accepts.

    `accepted` is an Accept-Language header; English when nothing fits.
    """
    for wanted in (chosen, fixed):
        if wanted in LANGUAGES:
            return str(wanted)
    for part in sorted((p.strip() for p in accepted.split(",") if p.strip()), key=_weight, reverse=True):
        tag = part.partition(";")[0].strip().lower()
        if tag.startswith("zh"):
            return "zh-CN"
        if tag.startswith("en"):
            return "en"
    return "en"


def _weight(part: str) -> float:
    try:
        return float(part.partition("q=")[2] or 1)
    except ValueError:
        return 0.0
