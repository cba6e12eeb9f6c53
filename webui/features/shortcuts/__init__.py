"""The list of keyboard shortcuts, from the table that the scripts use, with the switch for single keys."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from webui.shell.actions import Context, Feature
from webui.shell.templates import Reply
from webui.words import Words

shortcuts = Feature("shortcuts")
# How keys are shown; a key that is not listed is shown by its name. Only a few have a translated word, because what is
# printed on a key is mostly the same in all languages.
_SIGNS = {
    "ArrowLeft": "←",
    "ArrowRight": "→",
    "ArrowUp": "↑",
    "ArrowDown": "↓",
    "Escape": "Esc",
    "Delete": "Del",
    "Backspace": "⌫",
    "Mod": "Ctrl",
}
_NAMED = {"Space": "keys.space", "Letter": "keys.letter", "ContextMenu": "keys.context_menu"}

# The chords of a row, or of each of its parts: ["Mod+K"] or {"left": ["ArrowLeft"], ...}.
Chords = Sequence[str]
Keys = Chords | Mapping[str, Chords]
# The part of a row that the browser or Gradio handles: no script uses it.
NATIVE = "native"


class Row(NamedTuple):
    """A row of the list. Each chord consists of modifiers and the alternatives for the key pressed with them."""

    name: str
    is_single: bool
    chords: Sequence[tuple[Sequence[str], Sequence[str]]]


@shortcuts.action
async def open(at: Context) -> Reply:
    """Show the list. The browser keeps whether single keys are on."""
    return Reply(patches=(at.fragment("shortcuts", "shortcuts/dialog.html", groups=key_groups(at.words)),))


def key_groups(words: Words) -> Mapping[str, Sequence[Row]]:
    """Return the rows of the list by group."""
    return {group: [_row(words, group, name) for name in rows] for group, rows in key_table().items()}


def _row(words: Words, group: str, name: str) -> Row:
    chords = chords_of(key_table()[group][name])
    held: dict[tuple[str, ...], list[str]] = {}
    for chord in chords:
        # A plus that is a key itself stands alone; elsewhere it joins keys.
        *modifiers, key = [chord] if chord == "+" else chord.split("+")
        held.setdefault(tuple(_shown(words, one) for one in modifiers), []).append(_shown(words, key))
    is_all_single = all(is_single(chord) for chord in chords)
    return Row(words(f"keys.{group}_{name}"), is_all_single, list(held.items()))


def _shown(words: Words, key: str) -> str:
    return words(_NAMED[key]) if key in _NAMED else _SIGNS.get(key, key)


@cache
def key_table() -> Mapping[str, Mapping[str, Keys]]:
    """Return the rows by group and name, in the order of the list."""
    return tomllib.loads(resources.files("webui").joinpath("shortcuts.toml").read_text(encoding="utf-8"))


def chords_of(row: Keys) -> Chords:
    """Return all chords of a row, each once, in order."""
    listed = [chord for chords in row.values() for chord in chords] if isinstance(row, Mapping) else row
    return tuple(dict.fromkeys(listed))


def is_single(chord: str) -> bool:
    """Whether a chord is a single character, which the switch turns off."""
    return len(chord) == 1 or chord == "Letter"


def script_table() -> Mapping[str, Mapping[str, Keys]]:
    """Return the table as the scripts read it, without rows that no script uses."""
    return {
        group: {name: row for name, row in rows.items() if NATIVE not in row} for group, rows in key_table().items()
    }
