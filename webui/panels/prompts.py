"""The prompt gallery over the page: wishes in groups, a search, and what the person said and starred themselves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import gradio as gr

from webui.icons import icon
from webui.panels.flat import flat
from webui.prompt_book import Prompt, PromptGroup, prompt_groups
from webui.words import Words

MINE = "mine"


def build_prompts() -> gr.HTML:
    """Return the gallery, closed; it needs no more than the visitor's words."""
    with gr.Column(elem_id="prompts"), gr.Column(elem_id="prompts-box"):
        return flat("prm")


def prompts_html(words: Words) -> str:
    """Return the gallery. What is found, and what is the person's own, the page's script knows alone."""
    groups = prompt_groups(words.language)
    find, close = escape(words("prompts.find")), escape(words("action.close"))
    return (
        f'<header><h2 id="prm-title">{escape(words("prompts.title"))}</h2>'
        f'<button type="button" class="b icon" data-aid="close_prompts" aria-label="{close}" title="{close}">'
        f"{icon('x')}</button><p>{escape(words('prompts.lead'))}</p>"
        f'<label class="prm-find">{icon("search")}<input id="prm-find" type="search" maxlength="100" '
        f'placeholder="{find}" aria-label="{find}" autocomplete="off" spellcheck="false" enterkeyhint="search"></label>'
        f'<div class="prm-chips" role="group" aria-label="{escape(words("prompts.groups"))}">{_chips(words, groups)}'
        f'</div></header><div class="prm-cards" tabindex="-1">{"".join(_section(one) for one in groups)}'
        f"{_mine(words)}"
        f'<p class="prm-none" role="status" hidden>{escape(words("prompts.none"))}</p></div>'
    )


def _chips(words: Words, groups: Sequence[PromptGroup]) -> str:
    names = {"": words("prompts.all"), MINE: words("prompts.mine")} | {one.id: one.name for one in groups}
    return "".join(
        f'<button type="button" class="chip toggle" data-aid="prompt_group" data-group="{name}" '
        f'aria-pressed="{"false" if name else "true"}"><span>{escape(label)}</span></button>'
        for name, label in names.items()
    )


def _section(group: PromptGroup) -> str:
    cards = "".join(_card(one) for one in group.prompts)
    return (
        f'<section data-group="{escape(group.id)}"><h3>{icon(group.icon, 15)}{escape(group.name)}</h3>'
        f'<div class="prm-grid">{cards}</div></section>'
    )


def _card(prompt: Prompt) -> str:
    blank = prompt.blank
    place = f' data-blank="{blank[0]},{blank[1]}"' if blank else ""
    shown = escape(prompt.plain)
    if blank:
        first, last = blank
        inside = f"<mark>{escape(prompt.plain[first:last])}</mark>"
        shown = f"{escape(prompt.plain[:first])}{inside}{escape(prompt.plain[last:])}"
    return (
        f'<button type="button" class="prm" data-aid="use_prompt" data-text="{escape(prompt.plain)}"{place}>'
        f"<b>{escape(prompt.title)}</b><span>{shown}</span></button>"
    )


def _mine(words: Words) -> str:
    """Return the group of what the person said, which its script fills, and the pattern of a row of it."""
    star = escape(words("prompts.star"))
    return (
        f'<section data-group="{MINE}" hidden><h3>{icon("rotate-ccw-clock", 15)}{escape(words("prompts.mine"))}</h3>'
        f'<p class="prm-own-none">{escape(words("prompts.mine_none"))}</p><div class="prm-grid"></div>'
        f'<template><div class="prm-own"><button type="button" class="prm" data-aid="use_prompt"><span></span></button>'
        f'<button type="button" class="b icon" data-aid="star_prompt" aria-pressed="false" aria-label="{star}" '
        f'title="{star}">{icon("star", 15)}</button></div></template></section>'
    )
