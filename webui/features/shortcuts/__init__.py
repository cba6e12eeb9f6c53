"""The list of every key, made from the table that the scripts obey, with the switch for single keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webui.shell.actions import Context, Feature
from webui.shell.patches import Reply
from webui.shortcuts import chords_of, is_single
from webui.shortcuts import shortcuts as table
from webui.words import Words

shortcuts = Feature("shortcuts")
# How a key is shown; one that is not here is shown as it is called. What is printed on a key is in no language but for
# a few, which have a word.
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


class Row(NamedTuple):
    """What some keys do. Each chord is the keys that are held, and those of which one is pressed."""

    name: str
    is_single: bool
    chords: Sequence[tuple[Sequence[str], Sequence[str]]]


@shortcuts.action
async def open(at: Context) -> Reply:
    """Show the list. Whether single keys are on, the browser keeps."""
    return Reply(patches=(at.fragment("shortcuts", "shortcuts/dialog.html", groups=key_groups(at.words)),))


def key_groups(words: Words) -> Mapping[str, Sequence[Row]]:
    """Return the rows of the list by group."""
    return {group: [_row(words, group, name) for name in rows] for group, rows in table().items()}


def _row(words: Words, group: str, name: str) -> Row:
    chords = chords_of(table()[group][name])
    held: dict[tuple[str, ...], list[str]] = {}
    for chord in chords:
        # A plus that is a key itself stands alone; elsewhere it joins.
        *modifiers, key = [chord] if chord == "+" else chord.split("+")
        held.setdefault(tuple(_shown(words, one) for one in modifiers), []).append(_shown(words, key))
    is_all_single = all(is_single(chord) for chord in chords)
    return Row(words(f"keys.{group}_{name}"), is_all_single, list(held.items()))


def _shown(words: Words, key: str) -> str:
    return words(_NAMED[key]) if key in _NAMED else _SIGNS.get(key, key)
