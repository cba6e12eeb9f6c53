"""The rail: conversations to go on with, to search and to keep in order; spend, settings, language and theme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from urllib.parse import quote

import gradio as gr

from agent import ConversationInfo
from webui.cards import button
from webui.icons import icon
from webui.panels.flat import flat
from webui.words import Words

# So many are listed at first, and so many more whenever one asks for more.
ROWS_AT_ONCE = 50
_BUS = "window.aivistaRail = { look: data => trigger('click', data), change: data => trigger('submit', data) };"


@dataclass(frozen=True)
class RailPanel:
    """The components of the rail.

    `stamp` changes whenever the list may have changed: the page then asks for the list as it is looked at, which only
    it knows, and does not while a name is being typed.
    """

    stamp: gr.HTML
    head: gr.HTML
    rows: gr.HTML
    foot: gr.HTML


@dataclass(frozen=True)
class MenuPanel:
    """What stands outside of the rail, which may be folded away: the menus, what is said, and the way to Python."""

    menus: gr.HTML
    said: gr.HTML
    bus: gr.HTML


def build_rail() -> RailPanel:
    """Return the empty rail."""
    with gr.Column(elem_id="rail"):
        return RailPanel(flat("rail-stamp"), flat("rail-head"), flat("rail-rows"), flat("rail-foot"))


def build_menus() -> MenuPanel:
    """Return the menus of conversations, without words until a visitor is known."""
    return MenuPanel(flat("rail-menus"), flat("rail-said"), flat("rail-bus", js_on_load=_BUS))


def stamp_html(at: int, ended: str = "", newest: str = "") -> str:
    """Return the mark that the list may be another one now.

    After a turn it says how it `ended` (`done`, `failed`, `waiting`, `stopped`), and which is the `newest` picture.
    """
    told = f' data-ended="{escape(ended)}" data-newest="{escape(newest)}"' if ended else ""
    return f'<i data-at="{at}"{told}></i>'


def head_html(words: Words) -> str:
    """Return the rail's head: the name, a new conversation, the search."""
    label, hint = escape(words("rail.search_label")), escape(words("rail.searching_hint"))
    return (
        f'<div class="rail-top"><span class="brand"><i></i>Aivista</span>'
        f"{button('rail', words('rail.hide'), 'panel-left', 'icon', bare=True)}</div>"
        f'<div class="rail-new">{button("new", words("rail.new"), "plus", "line wide")}</div>'
        f'<div class="rail-find" role="search" aria-label="{label}">{icon("search", 15)}'
        '<input id="rail-find" type="search" maxlength="200" '
        f'placeholder="{escape(words("rail.search"))}" aria-label="{label}" title="{hint}" '
        'autocomplete="off" spellcheck="false" enterkeyhint="search"><kbd aria-hidden="true"></kbd></div>'
    )


def rows_html(
    words: Words, infos: Sequence[ConversationInfo], current: str, *, has_more: bool, now: datetime | None = None
) -> str:
    """Return the conversations, the pinned ones first, the others by day; both come newest first."""
    now = now or datetime.now(UTC)
    groups = groupby(infos, key=lambda info: "pinned" if info.is_pinned else _age(info.updated_at, now))
    heads = {"pinned": icon("pin", 12) + escape(words("rail.pinned"))}
    listed = "".join(
        f"<h3>{heads.get(name) or escape(words(f'rail.{name}'))}</h3>"
        f"<ul>{''.join(_row(words, info, current) for info in members)}</ul>"
        for name, members in groups
    )
    listed = listed or f'<p class="none">{escape(words("rail.none"))}</p>'
    more = ""
    if has_more:
        more = f'<button type="button" class="b wide" data-rail="more">{escape(words("rail.more"))}</button>'
    return f'<nav class="rail-list" aria-label="{escape(words("rail.label"))}">{listed}{more}</nav>'


@dataclass(frozen=True)
class FoundRow:
    """A conversation that was found, and the piece of it in which the words stand, with where (start, end)."""

    info: ConversationInfo
    excerpt: str
    marks: Sequence[tuple[int, int]]
    is_title: bool


def found_html(words: Words, query: str, found: Sequence[FoundRow], current: str) -> str:
    """Return what a search found, each with the piece that holds the words."""
    said = words.counted("rail.found", len(found)) if found else words("rail.nothing_found", query=query)
    rows = "".join(_row(words, one.info, current, one) for one in found)
    return (
        f'<nav class="rail-list rail-found" aria-label="{escape(words("rail.search_label"))}">'
        f'<p class="none" role="status">{escape(said)}</p><ul>{rows}</ul></nav>'
    )


def foot_html(words: Words, spend: str) -> str:
    """Return the rail's foot: what was spent, as `spend_html` tells it, and the page's own tools."""
    library = words("kept.library")
    return (
        f'<div class="rail-foot">{spend}'
        f'<div class="rail-tools">{button("settings", words("rail.settings"), "settings", "ghost")}'
        f'<span class="grow"></span>{_opener("library", library, "archive")}'
        f"{button('shortcuts', words('keys.title'), 'keyboard', 'icon', bare=True)}"
        f"{_language_button(words)}{_theme_button(words)}</div></div>"
    )


def conversation_opener(words: Words, info_id: str, title: str, *, is_pinned: bool, is_top: bool = False) -> str:
    """Return the button that opens the menu of a conversation."""
    name = words("kept.this") if is_top else words("kept.menu", title=title)
    data = f' data-id="{escape(info_id)}" data-title="{escape(title)}" data-pinned="{str(is_pinned).lower()}"'
    return _opener("conversation", name, "ellipsis", data)


def menus_html(words: Words) -> str:
    """Return the two menus: of a conversation, whose script says which one it is about, and of all of them."""
    pin, unpin = escape(words("kept.pin")), escape(words("kept.unpin"))
    turned = f' data-pin="{pin}" data-unpin="{unpin}"'
    rule = '<hr role="separator">'
    conversation = (
        _item("rename", words("kept.rename"), "pencil")
        + _item("pin", words("kept.pin"), "pin", turned)
        + _item("duplicate", words("kept.duplicate"), "copy")
        + rule
        + _link(words("kept.export_zip"), "file-archive", "zip")
        + _link(words("kept.export_md"), "file-text", "md")
        + _link(words("kept.export_html"), "globe", "html")
        + rule
        + _item("delete", words("kept.delete"), "trash", ' class="danger"')
    )
    library = (
        _item("import", words("kept.import"), "upload")
        + _link(words("kept.export_all"), "download", "")
        + rule
        + _item("trash", words("trash.title"), "trash")
    )
    said = {"importing": "kept.importing", "cut": "kept.import_cut", "exporting": "kept.exporting"}
    told = "".join(f' data-{name}="{escape(words(key))}"' for name, key in said.items())
    return (
        f'<div id="menu-conversation" class="menu" popover role="menu" aria-label="{escape(words("kept.this"))}" '
        f'data-name="{escape(words("kept.name"))}">{conversation}</div>'
        f'<div id="menu-library" class="menu" popover role="menu" aria-label="{escape(words("kept.library"))}"{told}>'
        f"{library}</div>"
        '<input type="file" id="import-file" accept=".zip,application/zip" tabindex="-1" '
        f'aria-label="{escape(words("kept.import_label"))}"><iframe name="aivista-save" id="aivista-save" '
        f'title="{escape(words("kept.export_all"))}" tabindex="-1" hidden></iframe>'
    )


def said_html(
    words: Words, text: str, at: int, *, undo: str = "", was_open: bool = False, is_problem: bool = False
) -> str:
    """Return one sentence about what was just done, with the way back: `undo` is the id of what was deleted."""
    role, name = ("alert", "circle-alert") if is_problem else ("status", "circle-check")
    back = ""
    if undo:
        back = (
            f'<button type="button" class="b" data-rail="undo" data-id="{escape(undo)}" '
            f'data-open="{str(was_open).lower()}">{escape(words("kept.undo"))}</button>'
        )
    close = (
        f'<button type="button" class="b icon" data-rail="hush" aria-label="{escape(words("action.close"))}" '
        f'title="{escape(words("action.close"))}">{icon("x")}</button>'
    )
    return (
        f'<p class="toast{" bad" if is_problem else ""}" role="{role}" data-at="{at}">{icon(name, 17)}'
        f"<span>{escape(text)}</span>{back}{close}</p>"
    )


def _row(words: Words, info: ConversationInfo, current: str, found: FoundRow | None = None) -> str:
    title = info.title or words("top.untitled")
    mark = ' aria-current="page"' if info.id == current else ""
    picture = f'<i class="no-thumb">{icon("message-square", 14)}</i>'
    if info.thumbnail_digest:
        address = f"media/{quote(info.id)}/{info.thumbnail_digest}?size=64"
        picture = f'<img src="{address}" alt="" width="24" height="24" loading="lazy">'
    shown, excerpt = escape(title), ""
    if found is not None and found.is_title:
        shown = _marked(found)
    elif found is not None:
        excerpt = f"<small>{_marked(found)}</small>"
    return (
        f'<li><button type="button" data-act="open" data-arg="{escape(info.id)}"{mark} title="{escape(title)}">'
        f'{picture}<span dir="auto">{shown}</span>{excerpt}</button>'
        f"{conversation_opener(words, info.id, title, is_pinned=info.is_pinned)}</li>"
    )


def _marked(found: FoundRow) -> str:
    """Return the excerpt with its words marked; marks come in order and do not overlap."""
    pieces, at = [], 0
    for start, end in found.marks:
        pieces.append(f"{escape(found.excerpt[at:start])}<mark>{escape(found.excerpt[start:end])}</mark>")
        at = end
    return "".join([*pieces, escape(found.excerpt[at:])])


def _opener(menu: str, name: str, icon_name: str, data: str = "") -> str:
    return (
        f'<button type="button" class="b icon opener" data-menu="{menu}" aria-haspopup="menu" '
        f'aria-label="{escape(name)}" title="{escape(name)}"{data}>{icon(icon_name)}</button>'
    )


def _item(do: str, label: str, icon_name: str, more: str = "") -> str:
    return (
        f'<button type="button" role="menuitem" tabindex="-1" data-rail="{do}"{more}>{icon(icon_name)}'
        f"<span>{escape(label)}</span></button>"
    )


def _link(label: str, icon_name: str, kind: str) -> str:
    return (
        f'<a role="menuitem" tabindex="-1" href="export" target="aivista-save" data-kind="{kind}">{icon(icon_name)}'
        f"<span>{escape(label)}</span></a>"
    )


def _age(moment: datetime, now: datetime) -> str:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    days = (now.astimezone().date() - moment.astimezone().date()).days
    if days <= 0:
        return "today"
    if days == 1:
        return "yesterday"
    return "week" if days <= 7 else "older"


def _language_button(words: Words) -> str:
    other = "en" if words.language == "zh-CN" else "zh-CN"
    return button("language", words("page.switch"), "languages", "icon", arg=other, bare=True)


def _theme_button(words: Words) -> str:
    named = {name: words(f"rail.theme_{name}") for name in ("system", "light", "dark")}
    data = "".join(f' data-{name}="{escape(label)}"' for name, label in named.items())
    plain = button("theme", named["system"], "contrast", "icon", bare=True)
    return plain.replace("<button ", f"<button{data} ", 1)
