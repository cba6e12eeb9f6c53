"""The painter over the stage: brush, eraser and box for a mask, or the picture's edges drawn outwards."""

from __future__ import annotations

from html import escape

import gradio as gr

from webui.icons import icon
from webui.mask_wires import MAX_EDGE_PX, MAX_FEATHER_PX, MAX_GROWTH, MIN_FEATHER_PX
from webui.panels.flat import flat
from webui.shell.templates import render
from webui.words import Words

RATIOS = ("1:1", "4:3", "3:4", "16:9", "9:16", "21:9")
DEFAULT_FEATHER_PX = 8
BRUSH_PX = (4, 240, 56)
_TOOLS = (("painter.brush", "brush"), ("painter.eraser", "eraser"), ("painter.box", "square-dashed"))
_ACTS = (
    ("painter.undo", "undo-2"),
    ("painter.redo", "redo-2"),
    ("painter.invert", "contrast"),
    ("painter.clear", "trash"),
    ("painter.load", "image-up"),
    ("painter.last", "rotate-ccw-clock"),
)
_ZOOMS = (("painter.zoom_out", "minus"), ("painter.zoom_in", "plus"), ("painter.fit", "fullscreen"))
_SIDES = ("painter.left", "painter.top", "painter.right", "painter.bottom")
# What the page says by itself; it fills in the names in braces.
_SAID = (
    "painter.mask_note",
    "painter.share",
    "painter.nothing",
    "painter.nothing_grows",
    "painter.size_after",
    "painter.wrong_shape",
    "painter.not_read",
    "painter.empty_file",
    "painter.loaded",
    "painter.attached",
    "painter.added",
    "painter.new_picture",
    "painter.new_paint",
    "painter.new_gone",
)
_LEFT_OPEN = {name: f"{{{name}}}" for name in ("share", "width", "height", "mask_width", "mask_height")}


def build_canvas() -> gr.HTML:
    """Return the empty stage, beside which the page lays the painter."""
    return flat("canvas")


def build_painter() -> gr.HTML:
    """Return the painter, without words until a visitor is known."""
    return flat("painter")


def stage_buttons_html(words: Words, handle: str) -> str:
    """Return what opens the painter on the picture of the stage."""
    doors = (("mask", "painter.paint", "brush"), ("expand", "painter.expand", "expand"))
    return "".join(
        f'<button type="button" class="b line" data-paint="open" data-mode="{mode}" data-arg="{escape(handle)}">'
        f"{icon(shape)}<span>{escape(words(key))}</span></button>"
        for mode, key, shape in doors
    )


def choose_button_html(words: Words) -> str:
    """Return what lets a picture be chosen that is not in the conversation yet, to be painted over."""
    label = escape(words("stage.choose"))
    return f'<button type="button" class="b line" data-paint="choose">{icon("image-up")}<span>{label}</span></button>'


def painter_html(words: Words) -> str:
    """Return the whole painter in the visitor's words; it is never rendered again, so what is painted stays."""
    said = "".join(f' data-{_name(key).replace("_", "-")}="{escape(words(key, **_LEFT_OPEN))}"' for key in _SAID)
    return (
        f'<div id="pt" role="region" aria-label="{escape(words("painter.title"))}" data-mode="mask" '
        f'data-longest="{MAX_EDGE_PX}" data-growth="{MAX_GROWTH:g}"{said}>'
        f"{_bar(words)}{_mask_tools(words)}{_expand_tools(words)}{_well(words)}{_foot()}</div>"
        '<p id="pt-said" role="status"></p>'
        '<input type="file" id="pt-photo" accept="image/*,.heic,.heif,.avif" multiple hidden>'
        f'<template id="pt-chip">{_new_chip(words)}<p id="ctx-said" role="status"></p></template>'
        f'<template id="pt-also">{_also_line(words)}</template>'
    )


def _new_chip(words: Words) -> str:
    """Return the composer's line of a picture that has no handle yet; the script fills it in and shows it."""
    editing, expanding = escape(words("composer.editing")), escape(words("painter.expand_note"))
    opens, drops = escape(words("painter.new_open")), escape(words("painter.new_drop"))
    return (
        f'<div id="ctx-new"><span class="lab" data-editing="{editing}" data-expanding="{expanding}"></span>'
        f'<span class="ctx"><button type="button" class="opens" data-paint="again" title="{opens}">'
        f'<img alt="" width="20" height="20"><b>{escape(words("painter.new_picture"))}</b><small></small></button>'
        f'<button type="button" data-paint="unpaint" aria-label="{drops}" title="{drops}">{icon("x", 13)}</button>'
        "</span></div>"
    )


def _also_line(words: Words) -> str:
    """Return the composer's line of further pictures that are painted over, with the chip that the script fills in for
    each."""
    drops = escape(words("painter.give_up", handle="{handle}"))
    return (
        f'<div id="ctx-more"><span class="lab">{escape(words("painter.also"))}</span>'
        '<span class="ctx"><img alt="" width="20" height="20"><b></b><small></small>'
        f'<button type="button" data-paint="unpaint_one" title="{drops}">{icon("x", 13)}</button></span></div>'
    )


def _name(key: str) -> str:
    return key.removeprefix("painter.")


def _bar(words: Words) -> str:
    modes = "".join(
        f'<button type="button" class="b" data-paint="mode" data-mode="{mode}" aria-pressed="{is_pressed}">'
        f"<span>{escape(words(key))}</span></button>"
        for mode, key, is_pressed in (
            ("mask", "painter.mode_mask", "true"),
            ("expand", "painter.mode_expand", "false"),
        )
    )
    return (
        f'<div class="pt-bar"><b id="pt-handle"></b>{_segments(words("painter.mode"), modes)}<span class="grow"></span>'
        f"{render('viewer/full.html', words, closing='minimize')}"
        '<button type="button" class="b solid" data-paint="close">'
        f"<span>{escape(words('painter.done'))}</span></button></div>"
    )


def _mask_tools(words: Words) -> str:
    tools = "".join(
        _button(words, "tool", key, shape, f' data-tool="{_name(key)}" aria-pressed="{str(at == 0).lower()}"')
        for at, (key, shape) in enumerate(_TOOLS)
    )
    acts = "".join(_button(words, _name(key), key, shape) for key, shape in _ACTS)
    least, most, first = BRUSH_PX
    return (
        f'<div class="pt-tools" data-for="mask">{_segments(words("painter.tools"), tools)}'
        f"{_slider(words, 'painter.size', least, most, first)}"
        f"{_slider(words, 'painter.feather', MIN_FEATHER_PX, MAX_FEATHER_PX, DEFAULT_FEATHER_PX)}"
        f'<div class="pt-acts">{acts}</div><input type="file" id="pt-file" accept="image/*" hidden></div>'
    )


def _expand_tools(words: Words) -> str:
    ratios = "".join(f"<option>{ratio}</option>" for ratio in RATIOS)
    fields = "".join(
        f'<label><span>{escape(words(key))}</span><input type="number" inputmode="decimal" '
        f'data-side="{_name(key)}" min="0" max="{MAX_GROWTH * 100:.0f}" step="any" value="0"><i>%</i></label>'
        for key in _SIDES
    )
    return (
        f'<div class="pt-tools" data-for="expand"><label><span>{escape(words("painter.ratio"))}</span>'
        f'<select id="pt-ratio"><option value="">{escape(words("painter.ratio_free"))}</option>{ratios}'
        "</select></label>"
        f"{fields}{_button(words, 'reset', 'painter.reset', 'undo-2')}</div>"
    )


def _well(words: Words) -> str:
    edges = "".join(f'<i class="pt-edge" data-edge="{_name(key)}"></i>' for key in _SIDES)
    zoom = "".join(_button(words, "zoom", key, shape, f' data-zoom="{_name(key)}"') for key, shape in _ZOOMS)
    return (
        '<div class="pt-well"><div class="pt-view"><div class="pt-frame pt-new"></div>'
        '<div class="pt-pic"><img alt="" draggable="false">'
        f'<canvas id="pt-canvas" tabindex="0" role="application" aria-label="{escape(words("painter.canvas"))}" '
        'aria-describedby="pt-help"></canvas><i class="pt-ring"></i></div>'
        f'<div class="pt-frame pt-edges">{edges}</div></div>'
        f'<p id="pt-note" role="alert" hidden></p><p id="pt-help">{escape(words("painter.help"))}</p>'
        f'<div class="pt-zoom" role="group" aria-label="{escape(words("painter.zoom"))}">{zoom}</div></div>'
    )


def _foot() -> str:
    return (
        '<div class="pt-foot"><i class="pt-swatch"></i><output id="pt-share" aria-live="polite"></output>'
        '<span class="grow"></span><span id="pt-pixels"></span></div>'
    )


def _segments(label: str, buttons: str) -> str:
    return f'<div class="pt-seg" role="group" aria-label="{escape(label)}">{buttons}</div>'


def _button(words: Words, act: str, key: str, shape: str, more: str = "") -> str:
    label = escape(words(key))
    return (
        f'<button type="button" class="b icon" data-paint="{act}" aria-label="{label}" title="{label}"{more}>'
        f"{icon(shape, 18)}</button>"
    )


def _slider(words: Words, key: str, least: int, most: int, first: int) -> str:
    label, name = escape(words(key)), _name(key)
    return (
        f'<label class="pt-slide" title="{label}"><i class="pt-{name}"></i><input type="range" id="pt-{name}" '
        f'min="{least}" max="{most}" value="{first}" aria-label="{label}"><output>{first}</output></label>'
    )
