"""The components of the list of conversations: what a page comes with, and the mark that the list may be another."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import gradio as gr

from webui.panels.flat import flat


@dataclass(frozen=True)
class RailPanel:
    """The list's components, which a page comes with filled; actions change what stands in them.

    `stamp` changes whenever the list may have changed: the page then asks for the list as it is looked at, which only
    it knows, and does not while a name is being typed.
    """

    stamp: gr.HTML
    head: gr.HTML
    rows: gr.HTML
    foot: gr.HTML
    menus: gr.HTML


def build_rail() -> RailPanel:
    """Return the empty list."""
    with gr.Column(elem_id="rail"):
        stamp, head, rows, foot = (flat(f"rail-{name}") for name in ("stamp", "head", "rows", "foot"))
    return RailPanel(stamp, head, rows, foot, flat("rail-menus"))


def stamp_html(at: int, ended: str = "", newest: str = "") -> str:
    """Return the mark that the list may be another one now.

    After a turn it says how it `ended` (`done`, `failed`, `waiting`, `stopped`), and which is the `newest` picture.
    """
    told = f' data-ended="{escape(ended)}" data-newest="{escape(newest)}"' if ended else ""
    return f'<i data-at="{at}"{told}></i>'
