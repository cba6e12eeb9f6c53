"""The rail: the list of conversations, a new one, spend, settings, language and theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from urllib.parse import quote

import gradio as gr

from agent.conversation import ConversationInfo
from webui.cards import button
from webui.panels.flat import flat
from webui.receipts import price
from webui.words import Words


def build_rail() -> gr.HTML:
    """Return the empty rail."""
    with gr.Column(elem_id="rail"):
        return flat("rail-html")


def rail_html(words: Words, infos: Sequence[ConversationInfo], current: str, now: datetime | None = None) -> str:
    """Return the rail with the conversations that hold something, grouped by day, newest first."""
    now = now or datetime.now(UTC)
    shown = [info for info in infos if info.title]
    groups = groupby(shown, key=lambda info: _age(info.updated_at, now))
    listed = "".join(
        f"<h3>{escape(words(f'rail.{age}'))}</h3><ul>{_rows(words, members, current)}</ul>" for age, members in groups
    )
    listed = listed or f'<p class="none">{escape(words("rail.none"))}</p>'
    spent = sum(info.price_usd for info in infos)
    amount = price(words, spent) if spent else "$0.00"
    return (
        f'<div class="rail-top"><span class="brand"><i></i>Aivista</span>'
        f"{button('rail', words('rail.hide'), 'panel-left', 'icon', bare=True)}</div>"
        f'<div class="rail-new">{button("new", words("rail.new"), "plus", "line wide")}</div>'
        f'<nav class="rail-list" aria-label="{escape(words("rail.label"))}">{listed}</nav>'
        f'<div class="rail-foot"><div class="spend"><span>{escape(words("rail.spent"))}</span><b>{amount}</b></div>'
        f'<div class="rail-tools">{button("settings", words("rail.settings"), "settings", "ghost")}'
        f'<span class="grow"></span>{_language_button(words)}{_theme_button(words)}</div></div>'
    )


def _rows(words: Words, infos: Iterable[ConversationInfo], current: str) -> str:
    rows = []
    for info in infos:
        mark = ' aria-current="page"' if info.id == current else ""
        picture = '<i class="no-thumb"></i>'
        if info.thumbnail_digest:
            address = f"media/{quote(info.id)}/{info.thumbnail_digest}?size=64"
            picture = f'<img src="{address}" alt="" width="24" height="24" loading="lazy">'
        rows.append(
            f'<li><button type="button" data-act="open" data-arg="{escape(info.id)}"{mark}>{picture}'
            f"<span>{escape(info.title or words('top.untitled'))}</span></button></li>"
        )
    return "".join(rows)


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
