"""The table of every key the page acts on: what the scripts obey and the dialog lists."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

# A row's chords, or those of each part of it: ("Mod+K",) or {"left": ("ArrowLeft",), ...}.
Chords = tuple[str, ...]
Row = Chords | Mapping[str, Chords]
# The part of a row that the browser does by itself, or a part of Gradio's: no script asks for it.
NATIVE = "native"


@cache
def shortcuts() -> Mapping[str, Mapping[str, Row]]:
    """Return the rows by group and name, in the order in which they are listed."""
    text = resources.files("webui").joinpath("shortcuts.toml").read_text(encoding="utf-8")
    return {group: {name: _row(row) for name, row in rows.items()} for group, rows in tomllib.loads(text).items()}


def chords_of(row: Row) -> Chords:
    """Return every chord of a row once, in its order."""
    listed = [chord for chords in row.values() for chord in chords] if isinstance(row, Mapping) else row
    return tuple(dict.fromkeys(listed))


def is_single(chord: str) -> bool:
    """Whether a chord is one sign alone, which the switch turns off."""
    return len(chord) == 1 or chord == "Letter"


def script_table() -> dict[str, dict[str, list[str] | dict[str, list[str]]]]:
    """Return the table as the scripts read it, without what no script asks for."""
    return {
        group: {name: _plain(row) for name, row in rows.items() if NATIVE not in row}
        for group, rows in shortcuts().items()
    }


def _row(row: list[str] | dict[str, list[str]]) -> Row:
    if isinstance(row, dict):
        return {name: tuple(chords) for name, chords in row.items()}
    return tuple(row)


def _plain(row: Row) -> list[str] | dict[str, list[str]]:
    if isinstance(row, Mapping):
        return {name: list(chords) for name, chords in row.items()}
    return list(row)
