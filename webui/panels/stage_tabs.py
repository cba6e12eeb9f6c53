"""The tabs of the stage: what stands beside the conversation, one pane at a time; on a phone the bar of all panes."""

from __future__ import annotations

from html import escape

import gradio as gr

from webui.cards import button
from webui.icons import icon
from webui.panels.flat import flat
from webui.words import Words

# The tabs in their order: the pane's id in the page, the word for it, and its icon on a phone.
TABS = {
    "canvas": ("tabs.canvas", "image"),
    "gallery": ("tabs.gallery", "layout-grid"),
    "tree": ("tabs.tree", "git-fork"),
    "files": ("tabs.files", "folder-open"),
    "trace": ("tabs.trace", "list-tree"),
}


def build_stage_tabs() -> gr.HTML:
    """Return the bar, without words until a visitor is known."""
    return flat("tabs")


def stage_tabs_html(words: Words) -> str:
    """Return the bar in the visitor's words. Which tab is open, the page itself keeps."""
    tabs = "".join(
        f'<button type="button" role="tab" id="tab-{name}" data-tab="{name}" aria-controls="{name}" '
        f'aria-selected="{str(name == "canvas").lower()}" tabindex="{0 if name == "canvas" else -1}">'
        f"{icon(shape, 20)}<span>{escape(words(key))}</span></button>"
        for name, (key, shape) in TABS.items()
    )
    chats = (
        f'<button type="button" class="to-chats" data-act="rail">{icon("panel-left", 20)}'
        f"<span>{escape(words('tabs.chats'))}</span></button>"
    )
    chat = (
        f'<button type="button" class="to-chat" data-tab="chat">{icon("message-square", 20)}'
        f"<span>{escape(words('tabs.chat'))}</span></button>"
    )
    wide = escape(words("tabs.wide"))
    width = (
        f'<button type="button" class="b icon stage-width" aria-pressed="true" aria-label="{wide}" title="{wide}">'
        f"{icon('chevrons-left')}{icon('chevrons-right')}</button>"
    )
    return (
        f'{chats}{chat}<div role="tablist" aria-label="{escape(words("tabs.label"))}">{tabs}</div>'
        f'<span class="grow"></span>{width}{button("stage", words("action.close"), "x", "icon", bare=True)}'
    )
