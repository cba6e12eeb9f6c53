"""What an event of the page may carry: for each input a value of its kind, and no file that was not uploaded here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LONGEST_SESSION = 64
_DEEPEST = 50
# Neither paths nor records can hold them.
_NO_SIGN = re.compile(r"[\x00\ud800-\udfff]")
_WORDS = frozenset({"textbox", "dropdown", "radio"})


class Unfit(ValueError):
    """An event that the page itself does not send."""


@dataclass(frozen=True)
class EventShapes:
    """The kinds of the inputs of each event, by its number, the numbers by name, and which events wait in Gradio's
    queue: those of programs. The page's own are answered at once."""

    kinds: Mapping[int, tuple[str, ...]]
    numbers: Mapping[str, int]
    queued: frozenset[object]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> EventShapes:
        """Return the shapes of a page, as Gradio describes it to the browser."""
        types = {one["id"]: str(one["type"]) for one in config["components"]}
        events = [one for one in config["dependencies"] if one["backend_fn"]]
        return cls(
            {one["id"]: tuple(types[name] for name in one["inputs"]) for one in events},
            {one["api_name"]: one["id"] for one in events if one["api_visibility"] == "public"},
            frozenset(one["id"] for one in events if one["queue"] is not False),
        )

    def check(self, number: object, data: object, folder: Path) -> None:
        """Hold the values of an event against its inputs; files must lie in the folder. Raises Unfit."""
        if isinstance(number, bool) or not isinstance(number, int) or number not in self.kinds:
            raise Unfit("fn_index")
        kinds = self.kinds[number]
        if not isinstance(data, list) or len(data) != len(kinds):
            raise Unfit("data")
        for place, (kind, value) in enumerate(zip(kinds, data, strict=True)):
            if not _fits(kind, value, folder):
                raise Unfit(f"data.{place}")


def read_json(body: bytes) -> dict[str, Any]:
    """Return the object that a body holds. Raises Unfit, also for numbers that JSON has not, for a NUL or half of a
    character in a text, and for what is nested deeper than anything of the page."""
    try:
        found = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Unfit("JSON") from None
    if not isinstance(found, dict) or not _is_plain(found):
        raise Unfit("JSON")
    return found


def session_of(told: object) -> str | None:
    """Return the session that an event names, None for none. Raises Unfit for what Gradio's client makes none of."""
    if told is None:
        return None
    is_name = isinstance(told, str) and 0 < len(told) <= _LONGEST_SESSION
    if not (isinstance(told, str) and is_name and told.isascii() and told.replace("-", "").isalnum()):
        raise Unfit("session_hash")
    return told


def paths_in(value: object) -> list[str]:
    """Return every path that a value names as a file, wherever in it."""
    match value:
        case {"path": path, **rest}:
            return [str(path), *paths_in(rest)]
        case dict():
            return [path for one in value.values() for path in paths_in(one)]
        case list():
            return [path for one in value for path in paths_in(one)]
        case _:
            return []


def _refuse(name: str) -> None:
    raise ValueError(name)


def _is_plain(found: object) -> bool:
    level = [found]
    for _ in range(_DEEPEST):
        below: list[object] = []
        for one in level:
            if isinstance(one, str) and _NO_SIGN.search(one):
                return False
            if isinstance(one, dict):
                below += (*one.keys(), *one.values())
            elif isinstance(one, list):
                below += one
        if not below:
            return True
        level = below
    return False


def is_below(path: str, folder: Path) -> bool:
    """Whether a path leads into the folder, whatever links and dots it goes by."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(folder)
    except ValueError:
        return False


def _fits(kind: str, value: object, folder: Path) -> bool:
    if kind in _WORDS:
        return value is None or isinstance(value, str)
    match kind:
        case "state":
            return value is None
        case "checkbox":
            return isinstance(value, bool)
        case "number":
            return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        case "multimodaltextbox":
            return value is None or _is_message(value, folder)
        case _:
            return False


def _is_message(value: object, folder: Path) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    files = value.get("files")
    return files is None or (isinstance(files, Sequence) and all(_is_upload(one, folder) for one in files))


def _is_upload(value: object, folder: Path) -> bool:
    path = value.get("path") if isinstance(value, dict) else None
    return isinstance(path, str) and is_below(path, folder)
