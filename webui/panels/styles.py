"""The style library over the page: what there is and why it was found, one's own styles, and the way to try one."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import gradio as gr

from agent import Style
from webui.icons import icon
from webui.panels.flat import flat
from webui.style_finding import FAMILIES, MINE, Shown, family_name, grouped, title_of
from webui.words import Words

LONGEST_QUERY = 200
FILE_NAME = "aivista-styles.json"
_BUS = "window.aivistaStyles = { act: data => trigger('click', data), paint: data => trigger('submit', data) };"


@dataclass(frozen=True)
class StylesPanel:
    """The components of the library: `bus` brings its clicks, the others are what they change."""

    head: gr.HTML
    note: gr.HTML
    cards: gr.HTML
    form: gr.HTML
    bus: gr.HTML

    @property
    def outputs(self) -> list[gr.HTML]:
        """What a click of the library changes."""
        return [self.head, self.note, self.cards, self.form]


def build_styles() -> StylesPanel:
    """Return the library, closed and empty: it is filled when somebody opens it."""
    with gr.Column(elem_id="styles"), gr.Column(elem_id="styles-box"):
        head, note, listed, form = (flat(f"sty-{name}") for name in ("head", "note", "list", "form"))
        bus = flat("sty-bus", js_on_load=_BUS)
    return StylesPanel(head, note, listed, form, bus)


def head_html(words: Words) -> str:
    """Return the title, the search box and what one can do with styles of one's own."""
    find = escape(words("styles.find"))
    return (
        f'<h2 id="sty-title">{escape(words("styles.title"))}</h2>'
        f'<button type="button" class="b icon" data-act="styles_close" aria-label="{escape(words("action.close"))}" '
        f'title="{escape(words("action.close"))}">{icon("x")}</button>'
        f'<p>{escape(words("styles.lead"))}</p><div class="sty-tools" role="search">'
        f'<label class="sty-find">{icon("search")}<input id="sty-find" type="search" maxlength="{LONGEST_QUERY}" '
        f'placeholder="{find}" aria-label="{find}" autocomplete="off" spellcheck="false"></label>'
        f"{_button('new', words('styles.new'), 'plus', 'line')}"
        f'<label class="b line sty-file" title="{escape(words("styles.import_title"))}">{icon("upload")}'
        f'<span>{escape(words("styles.import"))}</span><input type="file" id="sty-file" '
        f'accept=".json,application/json" aria-label="{escape(words("styles.import_title"))}"></label>'
        f"{_button('export', words('styles.export'), 'download', 'line')}</div>"
    )


def list_html(words: Words, shown: Sequence[Shown], query: str, family: str, price: str = "") -> str:
    """Return the families to choose from, and the styles: by family, or the surest first when something is sought.

    `price` is what trying one may cost at most.
    """
    if query or family:
        cards = "".join(_card(words, one, price, heading="h3") for one in shown)
        body = f'<div class="sty-grid">{cards}</div>' if shown else _nothing(words, query, family)
    else:
        body = "".join(_group(words, name, members, price) for name, members in grouped(shown))
    count = words.counted("styles.count", len(shown))
    return (
        f'<div class="sty-chips" role="group" aria-label="{escape(words("styles.families"))}">'
        f"{_chips(words, family)}</div>"
        f'<div class="sty-cards" data-query="{escape(query)}" data-family="{escape(family)}" tabindex="-1">'
        f'<p class="sty-count" role="status">{escape(count)}</p>{body}</div>'
    )


def form_html(words: Words, fields: Mapping[str, str], style_id: str = "") -> str:
    """Return the form of a style: of a new one, or of one's own with that id."""
    title = words("styles.edit_title") if style_id else words("styles.new_title")
    rows = (
        _input(words("styles.form_name_en"), "name_en", fields, 80)
        + _input(words("styles.form_name_zh"), "name_zh", fields, 80)
        + _input(words("styles.form_aliases"), "aliases", fields, 3300, words("styles.hint_commas"), is_wide=True)
        + _area(words("styles.form_description_en"), "description_en", fields, 1000, 2)
        + _area(words("styles.form_description_zh"), "description_zh", fields, 1000, 2)
        + _area(words("styles.form_phrases"), "phrases", fields, 4900, 5, words("styles.hint_phrases"))
        + _area(words("styles.form_negative"), "negative", fields, 4900, 5, words("styles.hint_negative"))
        + _input(words("styles.form_tags"), "tags", fields, 840, words("styles.hint_commas"), is_wide=True)
    )
    return (
        f'<form id="sty-fields" data-id="{escape(style_id)}" autocomplete="off" novalidate>'
        f"<h3>{escape(title)}</h3><p>{escape(words('styles.form_lead'))}</p>"
        f'<div class="sty-rows">{rows}</div><footer>{_button("cancel", words("styles.cancel"), "", "line")}'
        f'<button type="submit" class="b solid">{escape(words("styles.save"))}</button></footer></form>'
    )


def note_html(text: str, *, undo: str = "", is_problem: bool = False) -> str:
    """Return one sentence about what was just done, with the way back, or why it was not."""
    if not text:
        return ""
    role, tone, name = ("alert", "bad", "circle-alert") if is_problem else ("status", "ok", "circle-check")
    back = _button("undo", undo, "undo-2", "line") if undo else ""
    return f'<p class="sty-said {tone}" role="{role}">{icon(name, 17)}<span>{escape(text)}</span>{back}</p>'


def download_html(text: str, data: bytes) -> str:
    """Return the sentence with the file, which the page saves as soon as it sees it."""
    address = f"data:application/json;base64,{base64.b64encode(data).decode()}"
    return note_html(text) + f'<a class="sty-save" hidden download="{FILE_NAME}" href="{address}"></a>'


def _group(words: Words, family: str, members: Sequence[Shown], price: str) -> str:
    cards = "".join(_card(words, one, price) for one in members)
    name = escape(family_name(words, family))
    return f'<section><h3>{name} <small>{len(members)}</small></h3><div class="sty-grid">{cards}</div></section>'


def _chips(words: Words, chosen: str) -> str:
    names = {"": words("styles.all"), MINE: words("styles.mine")}
    names |= {family: family_name(words, family) for family in FAMILIES}
    return "".join(
        f'<button type="button" class="chip toggle" data-style="family" data-id="{family}" '
        f'aria-pressed="{"true" if family == chosen else "false"}"><span>{escape(name)}</span></button>'
        for family, name in names.items()
    )


def _card(words: Words, shown: Shown, price: str, *, heading: str = "h4") -> str:
    """Return a style's card; its `heading` is one below that of what it stands in."""
    style, title = shown.style, title_of(words, shown.style)
    described = style.description.zh if words.language == "zh-CN" else style.description.en
    text = described or style.description.en or style.description.zh
    mine = f'<span class="tag">{escape(words("styles.own"))}</span>' if style.is_own else ""
    why = f'<p class="why">{icon("search", 13)}<span>{escape(shown.why)}</span></p>' if shown.why else ""
    own = ""
    if style.is_own:
        own = _button("edit", words("styles.edit"), "pencil", arg=style.id, about=title)
        own += _button("delete", words("styles.delete"), "trash", arg=style.id, about=title)
    tried = _button("try", words("styles.try"), "brush", "line", arg=style.id, about=title, price=price)
    return (
        f'<article class="sty" data-id="{escape(style.id)}"><{heading}>{escape(title)}{mine}</{heading}>'
        f"<p>{escape(text)}</p>{why}{_phrases(words, style)}<footer>"
        f"{tried}{own}</footer></article>"
    )


def _phrases(words: Words, style: Style) -> str:
    phrases = "".join(f"<li>{escape(phrase)}</li>" for phrase in style.phrases)
    avoided = escape(words("styles.avoids", phrases=words("styles.join").join(style.negative)))
    names = escape(words("styles.also", names=words("styles.join").join((*style.aliases.en, *style.aliases.zh))))
    more = (f"<p>{avoided}</p>" if style.negative else "") + (
        f"<p>{names}</p>" if style.aliases.en or style.aliases.zh else ""
    )
    return (
        f"<details><summary>{icon('chevron-right', 14)}{escape(words('styles.phrases'))}</summary>"
        f"<ul>{phrases}</ul>{more}</details>"
    )


def _nothing(words: Words, query: str, family: str) -> str:
    text = words("styles.none_own") if family == MINE and not query else words("styles.none_found")
    return f'<div class="sty-none">{icon("palette", 26)}<p>{escape(text)}</p></div>'


def _button(
    do: str, label: str, icon_name: str, look: str = "", arg: str = "", about: str = "", price: str = ""
) -> str:
    named = f' aria-label="{escape(f"{label}: {about}")}"' if about else ""
    shape = icon(icon_name) if icon_name else ""
    return (
        f'<button type="button" class="b {look}" data-style="{do}" data-id="{escape(arg)}"{named}>'
        f"{shape}<span>{escape(label)}</span>{f'<small>≤ {escape(price)}</small>' if price else ''}</button>"
    )


def _input(
    label: str, name: str, fields: Mapping[str, str], limit: int, hint: str = "", *, is_wide: bool = False
) -> str:
    return (
        f'<label class="{"wide" if is_wide else ""}"><span>{escape(label)}</span>'
        f'<input name="{name}" maxlength="{limit}" value="{escape(fields.get(name, ""))}">{_hint(hint)}</label>'
    )


def _area(label: str, name: str, fields: Mapping[str, str], limit: int, rows: int, hint: str = "") -> str:
    return (
        f"<label><span>{escape(label)}</span>"
        f'<textarea name="{name}" maxlength="{limit}" rows="{rows}">\n{escape(fields.get(name, ""))}</textarea>'
        f"{_hint(hint)}</label>"
    )


def _hint(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""
