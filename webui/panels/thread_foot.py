"""What lies over the thread: the way to the newest message, and the grey shape of a thread that is being opened."""

from __future__ import annotations

from html import escape

import gradio as gr

from webui.icons import icon
from webui.panels.flat import flat
from webui.words import Words

# The widths of the lines of the shape, in per cent: a question on the right, an answer, a picture.
_LINES = (46, 88, 62)


def build_thread_foot() -> gr.HTML:
    """Return it, empty until a visitor is known."""
    return flat("thread-foot")


def thread_foot_html(words: Words) -> str:
    """Return it in the visitor's words. When which part is shown, the page itself knows."""
    name = escape(words("top.newest"))
    lines = "".join(f'<i style="width:{width}%"></i>' for width in _LINES)
    return (
        f'<button type="button" class="b line to-newest" data-thread="newest">{icon("arrow-down")}<span>{name}</span>'
        f'</button><div class="bones" aria-hidden="true"><div>{lines}<i class="bone-pic"></i></div></div>'
    )
