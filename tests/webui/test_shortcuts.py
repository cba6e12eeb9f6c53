"""One table of keys: the scripts obey it, the dialog lists it, and nobody reads keys by themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import webui
from tests.adapters.webui import (
    LANGUAGES,
    NATIVE,
    chords_of,
    is_single,
    key_table,
    load_words,
    script_table,
    shortcuts_html,
)

PAGE = Path(webui.__file__).parent
# One for each subject; of them, that of the keys.
SCRIPTS = [block for path in sorted(PAGE.rglob("*.js")) for block in path.read_text(encoding="utf-8").split("\n}\n")]
KEY_SCRIPT = next(text for text in SCRIPTS if "aivista.keys = " in text)
NAMES = [f"{group}.{name}" for group, rows in key_table().items() for name in rows]
# A key of a chord: a sign, or one of these names, which browsers give them.
KEYS = r"[^\s]|Letter|Space|Enter|Escape|Tab|Delete|Backspace|Home|End|ContextMenu|F\d+|Arrow(Left|Right|Up|Down)"


def asked() -> set[str]:
    """Return every name that a script asks for."""
    call = r"""\b(?:keys|aivista\.keys)\.(?:is|find|walk|usesKey)\(event, "([a-z_.]+)\""""
    inside = r"""(?<!\.)\b(?:is|find)\(event, "([a-z_.]+)\""""
    found = {name for text in SCRIPTS for name in re.findall(call, text)}
    return found | set(re.findall(inside, KEY_SCRIPT))


def test_the_scripts_ask_for_every_key_of_the_table_and_for_no_other_and_read_none_by_themselves() -> None:
    ours = {name for name in NAMES if NATIVE not in key_table()[name.partition(".")[0]][name.partition(".")[2]]}
    assert asked() == ours
    assert {f"{group}.{name}" for group, rows in script_table().items() for name in rows} == ours
    # What somebody types into a list to jump is handed on, and a wheel's Ctrl is no key press.
    reading = re.compile(r"event\.(?:key\s*(?:[!=]==?|in\b|\.)|keyCode|code\b)|\[event\.key\]")
    assert [text for text in SCRIPTS if text != KEY_SCRIPT and reading.search(text)] == []


def test_every_chord_can_be_pressed_and_means_one_thing_within_one_place() -> None:
    chord = rf"((Mod|Alt|Shift)\+)*({KEYS})"
    rows = {(group, name): chords_of(row) for group, rows in key_table().items() for name, row in rows.items()}
    assert [name for name, chords in rows.items() if not chords] == []
    assert [one for chords in rows.values() for one in chords if not re.fullmatch(chord, one)] == []
    for group in ("page", "composer", "painter", "gallery", "tree", "files"):
        pressed = [one for (place, _), chords in rows.items() if place == group for one in chords]
        assert sorted(set(pressed)) == sorted(pressed), group


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_dialog_lists_every_key_in_words(language: str) -> None:
    words = load_words(language)
    html = shortcuts_html(words)
    assert html.count("<dt>") == len(NAMES)
    assert html.count("<section") == len(key_table())
    assert "<kbd><b>Ctrl</b><i>+</i><b>Shift</b><i>+</i><b>O</b></kbd>" in html
    assert "<kbd><b>Shift</b><i>+</i><b>←</b><b>→</b><b>↑</b><b>↓</b></kbd>" in html
    assert "<kbd><b>+</b><b>=</b><b>-</b>" in html
    assert words("keys.single") in html


def test_a_sign_alone_is_a_single_key_and_its_rows_are_marked_so_that_the_switch_strikes_them_out() -> None:
    assert [chord for chord in ("S", "+", "?", "Letter") if is_single(chord)] == ["S", "+", "?", "Letter"]
    assert not any(map(is_single, ("Enter", "Escape", "Mod+K", "Shift+F10", "Delete", "ArrowLeft")))
    html = shortcuts_html(load_words("en"))
    assert "<div data-single><dt>Invert</dt>" in html
    assert "<div><dt>Send</dt>" in html
