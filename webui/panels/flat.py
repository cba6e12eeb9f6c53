"""gr.HTML as our own boxes: no prose styles of Gradio's, no wrappers in the layout."""

from __future__ import annotations

import gradio as gr


def flat(elem_id: str, value: str = "", js_on_load: str | None = None) -> gr.HTML:
    """Return an HTML box that is laid out as if it were our own element with that id."""
    return gr.HTML(value, apply_default_css=False, elem_classes="flat", elem_id=elem_id, js_on_load=js_on_load)
