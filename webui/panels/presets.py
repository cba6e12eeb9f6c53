"""The menu of presets: the chips as the person saved them, each under a name, and a field to save them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from agent import MAX_PRESET_NAME_CHARACTERS, Preset, ReferenceMode
from webui.icons import icon
from webui.panels.composer import AUTO, REFERENCE_MODES, Chosen
from webui.ratio_shapes import shape_html
from webui.words import Words

_LONGEST_AVOIDED = 24
_REVIEWS = {"off": "presets.review_off", "always": "presets.review_always"}


@dataclass(frozen=True)
class Typed:
    """A new name for the preset with this id that was refused, to be typed on."""

    id: str
    name: str


def presets_html(
    words: Words,
    presets: Sequence[Preset],
    *,
    said: str = "",
    undo: bool = False,
    bad: bool = False,
    typed: Typed | None = None,
) -> str:
    """Return the menu: the presets, one sentence about what was just done, with its way back, and the field to save."""
    rows = "".join(_row(words, one, typed) for one in presets)
    shown = f'<ul role="list">{rows}</ul>' if presets else f'<p class="none">{escape(words("presets.none"))}</p>'
    name = escape(words("presets.name"))
    return (
        f'<h2 id="presets-title">{escape(words("presets.title"))}</h2>{shown}{_said(words, said, undo=undo, bad=bad)}'
        f'<form class="save" autocomplete="off"><input name="name" maxlength="{MAX_PRESET_NAME_CHARACTERS}" required '
        f'placeholder="{name}" aria-label="{name}" enterkeyhint="done" spellcheck="false">'
        f'<button type="submit" class="b line">{escape(words("presets.save"))}</button></form>'
    )


def summary(words: Words, chosen: Chosen) -> str:
    """Return what a preset fixes, as HTML: only what is not left to the agent."""
    cells = []
    if chosen.text_model != "flash":
        cells.append(escape(words(f"composer.{chosen.text_model}")))
    if chosen.image_model != AUTO:
        name = "flash_pro" if chosen.image_model == "both" else chosen.image_model
        cells.append(escape(words(f"composer.{name}")))
    if chosen.aspect_ratio != AUTO:
        cells.append(f"{shape_html(chosen.aspect_ratio)}{escape(chosen.aspect_ratio)}")
    if chosen.resolution != AUTO:
        cells.append(escape(chosen.resolution))
    if chosen.number_of_images != AUTO:
        cells.append(f"×{escape(chosen.number_of_images)}")
    if chosen.allow_search:
        cells.append(escape(words("composer.search")))
    if chosen.review != "on":
        cells.append(escape(words(_REVIEWS[chosen.review])))
    if chosen.negative_prompt:
        cells.append(escape(words("presets.avoids", words=_shortened(chosen.negative_prompt))))
    if chosen.reference_mode in set(ReferenceMode):
        count = f" ×{chosen.reference_count}" if chosen.reference_count != AUTO else ""
        cells.append(escape(words(REFERENCE_MODES[ReferenceMode(chosen.reference_mode)]) + count))
    if chosen.confirm:
        cells.append(escape(words("composer.confirm")))
    return "".join(f"<span>{cell}</span>" for cell in cells) or f"<span>{escape(words('presets.all_auto'))}</span>"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_AVOIDED else f"{text[: _LONGEST_AVOIDED - 1].rstrip()}…"


def _row(words: Words, preset: Preset, typed: Typed | None) -> str:
    name = escape(preset.name)
    kept = f' data-typed="{escape(typed.name)}"' if typed is not None and typed.id == preset.id else ""
    tools = _tool(words, preset, "rename", "pencil") + _tool(words, preset, "delete", "trash")
    return (
        f'<li data-id="{escape(preset.id)}" data-name="{name}"{kept}>'
        f'<button type="button" class="use" data-aid="use_preset">'
        f"<b>{name}</b><small>{summary(words, Chosen.of(preset.settings))}</small></button>{tools}</li>"
    )


def _tool(words: Words, preset: Preset, do: str, symbol: str) -> str:
    label = words(f"presets.{do}")
    name = escape(words("action.of", action=label, name=preset.name))
    return (
        f'<button type="button" class="b icon" data-aid="{do}_preset" aria-label="{name}" title="{escape(label)}">'
        f"{icon(symbol, 15)}</button>"
    )


def _said(words: Words, text: str, *, undo: bool, bad: bool) -> str:
    if not text:
        return ""
    back = ""
    if undo:
        back = f'<button type="button" class="b" data-aid="undo_preset">{escape(words("presets.undo"))}</button>'
    look, role = (" bad", "alert") if bad else ("", "status")
    return f'<p class="said{look}" role="{role}"><span>{escape(text)}</span>{back}</p>'
