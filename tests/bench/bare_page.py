"""A bare Gradio page of the same parts as ours: as many components of each kind, unstyled, with no event.

`python -m tests.bench.bare_page` prints the parts of our page; with a port and these parts it serves the bare one. It
imports nothing else for that: its start is measured.
"""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import gradio as gr

# Kinds of blocks that only hold others: the bare page stands in a column.
_HOLDERS = {"Column", "Row", "Form", "Group", "Tab", "Tabs", "Accordion"}


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
        page, _ = build_page(lambda: Studio(settings), load_catalogue(), sessions, is_kept=True)
    kinds = ((type(block).__name__, bool(getattr(block, "visible", True))) for block in page.blocks.values())
    return [(kind, is_shown) for kind, is_shown in kinds if kind not in _HOLDERS]


def _add(kind: str, is_shown: bool) -> None:
    component = getattr(gr, kind)
    told: dict[str, Any] = {"visible": is_shown, "interactive": True, "choices": ["a", "b", "c"]}
    if kind == "MultimodalTextbox":
        told["elem_id"] = "box"
    taken = inspect.signature(component).parameters
    component(**{name: value for name, value in told.items() if name in taken})


if __name__ == "__main__":
    if sys.argv[1:]:
        with gr.Blocks(analytics_enabled=False) as page:
            for part in json.loads(sys.argv[2]):
                _add(*part)
        page.launch(server_port=int(sys.argv[1]), quiet=True)
    else:
        print(json.dumps(parts()))
