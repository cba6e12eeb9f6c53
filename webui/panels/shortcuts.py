"""The dialog that lists every key, made from the table that the scripts obey, with the switch for single keys."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import gradio as gr

from webui.cards import button
from webui.panels.flat import flat
from webui.shortcuts import chords_of, is_single, shortcuts
from webui.words import Words

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
    "Home": "Home",
    "End": "End",
}
_NAMED = {"Space": "keys.space", "Letter": "keys.letter", "ContextMenu": "keys.context_menu"}


def build_shortcuts() -> gr.HTML:
    """Return the dialog, closed and without words until a visitor is known."""
    with gr.Column(elem_id="shortcuts"), gr.Column(elem_id="shortcuts-box"):
        return flat("keys")


def shortcuts_html(words: Words) -> str:
    """Return the dialog in the visitor's words. Whether single keys are on, the browser keeps."""
    groups = "".join(_group(words, group) for group in shortcuts())
    single, why = escape(words("keys.single")), escape(words("keys.single_why"))
    return (
        f'<header><h2 id="keys-title">{escape(words("keys.title"))}</h2>'
        f"{button('shortcuts_close', words('action.close'), 'x', 'icon', bare=True)}</header>"
        f'<label class="keys-single"><input type="checkbox" role="switch" id="keys-single" checked '
        f'aria-describedby="keys-why"><span>{single}<small id="keys-why">{why}</small></span></label>'
        f'<div class="keys-groups" tabindex="0" role="group" aria-labelledby="keys-title">{groups}</div>'
    )


def _group(words: Words, group: str) -> str:
    rows = "".join(_row(words, group, name) for name in shortcuts()[group])
    name = f"keys-{group}"
    title = f'<h3 id="{name}">{escape(words(f"keys.{group}"))}</h3>'
    return f'<section aria-labelledby="{name}">{title}<dl>{rows}</dl></section>'


def _row(words: Words, group: str, name: str) -> str:
    chords = chords_of(shortcuts()[group][name])
    single = " data-single" if all(is_single(chord) for chord in chords) else ""
    held: dict[tuple[str, ...], list[str]] = {}
    for chord in chords:
        *modifiers, key = _parts(chord)
        held.setdefault(tuple(modifiers), []).append(key)
    shown = "".join(_chord(words, modifiers, keys) for modifiers, keys in held.items())
    return f"<div{single}><dt>{escape(words(f'keys.{group}_{name}'))}</dt><dd>{shown}</dd></div>"


def _parts(chord: str) -> list[str]:
    # A plus that is a key itself stands alone; elsewhere it joins.
    return [chord] if chord == "+" else chord.split("+")


def _chord(words: Words, modifiers: Sequence[str], keys: Sequence[str]) -> str:
    """Return keys that are pressed with the same ones held, these once before them."""
    before = "".join(f"{_key(words, one)}<i>+</i>" for one in modifiers)
    return f"<kbd>{before}{''.join(_key(words, key) for key in keys)}</kbd>"


def _key(words: Words, key: str) -> str:
    shown = words(_NAMED[key]) if key in _NAMED else _SIGNS.get(key, key)
    return f"<b>{escape(shown)}</b>"
