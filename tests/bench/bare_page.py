"""A bare Gradio page of the same parts as ours: as many components of each kind, unstyled, with no event.

`python -m tests.bench.bare_page` prints the parts of our page; with a port and these parts it serves the bare one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import gradio as gr

# Kinds of blocks that only hold others: the bare page stands in a column.
_HOLDERS = {"Column", "Row", "Form", "Group", "Tab", "Tabs", "Accordion"}
COMPOSER = "box"
_CHOICES = ["a", "b", "c"]


def parts() -> list[tuple[str, bool]]:
    """Return the kind of each component of our page, and whether it is shown."""
    import tempfile
    from pathlib import Path

    from agent import Settings, Studio
    from agent.providers.catalogue import load_catalogue
    from webui.http.sessions import open_sessions
    from webui.page import build_page

    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        sessions = open_sessions(settings, is_shared=False, language=None)
        page = build_page(lambda: Studio(settings), load_catalogue(), sessions).blocks
    kinds = ((type(block).__name__, bool(getattr(block, "visible", True))) for block in page.blocks.values())
    return [(kind, is_shown) for kind, is_shown in kinds if kind not in _HOLDERS]


def serve(port: int, wanted: Sequence[tuple[str, bool]]) -> None:
    """Serve a page of these parts until the process ends."""
    with gr.Blocks(analytics_enabled=False) as page:
        for kind, is_shown in wanted:
            _add(kind, is_shown=is_shown)
    page.launch(server_port=port, quiet=True)


def _add(kind: str, *, is_shown: bool) -> None:
    match kind:
        case "State" | "BrowserState" | "Timer":
            getattr(gr, kind)()
        case "MultimodalTextbox":
            gr.MultimodalTextbox(elem_id=COMPOSER, interactive=True, visible=is_shown)
        case "Dropdown" | "Radio" | "CheckboxGroup":
            getattr(gr, kind)(_CHOICES, interactive=True, visible=is_shown)
        case "Button" | "HTML" | "JSON" | "Chatbot":
            getattr(gr, kind)(visible=is_shown)
        case _:
            getattr(gr, kind)(interactive=True, visible=is_shown)


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(int(sys.argv[1]), json.loads(sys.argv[2]))
    else:
        print(json.dumps(parts()))
