"""The bell: a switch by which the page tells, through the system, that a turn has ended while nobody looked."""

from __future__ import annotations

from html import escape

from webui.icons import icon
from webui.words import Words


def bell_html(words: Words) -> str:
    """Return the switch, hidden until the page knows that the browser can tell anything."""
    name = escape(words("top.bell"))
    return (
        f'<span class="bell"><button type="button" class="b icon" id="bell" role="switch" aria-checked="false" '
        f'aria-label="{name}" title="{name}" hidden>{icon("bell")}{icon("bell-ring")}</button>'
        '<span id="bell-note" role="status"></span></span>'
    )
