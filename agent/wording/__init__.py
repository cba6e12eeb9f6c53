"""The words that users write, as regular expressions in data files: one file per language, by section and name.

A string entry is a regular expression; a list matches any of its members, and on its own only as whole words (not in
Chinese). `{name}` refers to another entry of the same section, `{section.name}` to an entry of another section.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "zh")

_IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_NAMED = re.compile(r"\{([a-z][a-z_.]*)\}")


def is_chinese(text: str) -> bool:
    """Return whether the text contains any Chinese character."""
    return _IDEOGRAPH.search(text) is not None


@functools.cache
def section(language: str, name: str) -> dict[str, Any]:
    """Return a section of a language's file, not expanded."""
    words: dict[str, Any] = _file(language)[name]
    return words


@functools.cache
def pattern(name: str, *languages: str, flags: int = 0, form: str = "{}") -> re.Pattern[str]:
    """Return an entry (`section.name`) as a pattern that matches the words of these languages; without any, of all.

    `form` is an expression in which `{}` is replaced by these words. Raises KeyError when no language has the entry.
    """
    part, _, entry = name.partition(".")
    known = [language for language in languages or LANGUAGES if entry in section(language, part)]
    if not known:
        raise KeyError(name)
    words = "|".join(whole(language, part, section(language, part)[entry]) for language in known)
    return re.compile(form.replace("{}", words), flags)


def whole(language: str, name: str, entry: str | list[str]) -> str:
    """Return an entry as a standalone expression: members of a list match only as whole words, except in Chinese."""
    expanded = expand(language, name, entry)
    return rf"\b{expanded}\b" if isinstance(entry, list) and language != "zh" else expanded


def expand(language: str, name: str, entry: str | list[str], more: Mapping[str, str] | None = None) -> str:
    """Return an entry of a section as one expression, with all references replaced; `more` adds further names."""
    if isinstance(entry, list):
        return "(?:" + "|".join(expand(language, name, one, more) for one in entry) + ")"

    def put(match: re.Match[str]) -> str:
        if more and match[1] in more:
            return more[match[1]]
        part, _, inner = match[1].rpartition(".")
        return expand(language, part or name, section(language, part or name)[inner], more)

    return _NAMED.sub(put, entry)


def place(name: str, word: str) -> int:
    """Return the position (from 1) of a word in a list (`section.name`), in any language."""
    part, _, entry = name.partition(".")
    lists = [section(language, part)[entry] for language in LANGUAGES]
    return next(n for words in lists for n, one in enumerate(words, 1) if re.fullmatch(one, word, re.IGNORECASE))


@functools.cache
def _file(language: str) -> dict[str, Any]:
    return tomllib.loads(files(__name__).joinpath(f"{language}.toml").read_text(encoding="utf-8"))
