"""The composer's aids: buttons that write out a wish, open presets and the prompt gallery; what their scripts show."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from html import escape

from agent import Catalogue, ModelRole, expand_prompt_price
from webui.icons import icon
from webui.spend import dollars
from webui.words import Words

# By what the script is told: the words' key and the icon.
_AIDS = {
    "expand": ("aids.expand", "sparkles"),
    "presets": ("aids.presets", "bookmark"),
    "prompts": ("aids.prompts", "lightbulb"),
}
_ZONES = {
    "message": ("drop.message", "drop.message_more", "image-plus"),
    "paint": ("drop.paint", "drop.paint_more", "brush"),
    "nothing": ("drop.nothing", "drop.nothing_more", "ban"),
}


def aids_html(words: Words, catalogue: Catalogue, provider: str, on: date, *, upload_limit_megabytes: int) -> str:
    """Return the three buttons, and what scripts need.

    What writing out a wish costs is told for both text models: the script knows which one is chosen. It refuses files
    of more than `upload_limit_megabytes` before they are sent.
    """
    told = {name: _price(words, catalogue, provider, name, on) for name in ("flash", "thinking")}
    buttons = "".join(_button(words(key), name, symbol, told) for name, (key, symbol) in _AIDS.items())
    return (
        f'<div class="aids" role="group" aria-label="{escape(words("aids.more"))}">{buttons}</div>'
        f"{_templates(words, upload_limit_megabytes)}"
    )


def _price(words: Words, catalogue: Catalogue, provider: str, name: str, on: date) -> str:
    model = catalogue.model(ModelRole(name), provider)
    if model.is_sketch:
        return words("aids.expand_rules")
    if not model.prices:
        return words("aids.expand_unpriced", model=model.label)
    return words("aids.expand_price", model=model.label, price=dollars(expand_prompt_price(model, on)))


def _button(label: str, name: str, symbol: str, told: Mapping[str, str]) -> str:
    label = escape(label)
    prices, role = "", ' aria-haspopup="dialog"'
    title = label
    if name == "expand":
        prices, role = "".join(f' data-{model}="{escape(text)}"' for model, text in told.items()), ""
        title = f"{label} · {escape(told['flash'])}"
    return (
        f'<button type="button" class="b line" data-aid="{name}" data-label="{label}"{prices}{role} '
        f'title="{title}">{icon(symbol, 15)}<span>{label}</span></button>'
    )


def _templates(words: Words, limit_megabytes: int) -> str:
    """Return what scripts clone: the line of a wish that is being written, the place for a drop, an upload's row."""
    stop, cancel = escape(words("fuller.stop")), escape(words("upload.cancel"))
    working = (
        f'<template id="tpl-working"><p class="fuller-wait" role="status"><i class="dot"></i>'
        f'<span>{escape(words("fuller.working"))}</span><button type="button" class="b" data-aid="stop_wish">{stop}'
        f"</button></p></template>"
    )
    shown = "".join(
        f'<div data-zone="{name}">{icon(symbol, 28)}<b>{escape(words(title))}</b>'
        f"<span>{escape(words(more))}</span></div>"
        for name, (title, more, symbol) in _ZONES.items()
    )
    drop = f'<template id="tpl-drop"><div id="drop-target" aria-hidden="true">{shown}</div></template>'
    said = {"large": "upload.large", "kind": "upload.kind", "failed": "upload.failed", "full": "upload.full"}
    # What a sentence takes, the script fills in.
    places = {name: f"{{{name}}}" for name in ("name", "megabytes", "limit")}
    data = "".join(f' data-{name}="{escape(words(key, **places))}"' for name, key in said.items())
    row = (
        f'<template id="tpl-upload" data-most="{limit_megabytes}"{data}><li><span class="name"></span>'
        f'<progress max="100" aria-label="{escape(words("upload.progress", name="{name}"))}"></progress>'
        f'<span class="at"></span>'
        f'<button type="button" class="b icon" data-aid="cancel_upload" aria-label="{cancel}" title="{cancel}">'
        f"{icon('x', 14)}</button></li></template>"
    )
    return working + drop + row
