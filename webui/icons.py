"""Line icons on a 24-pixel grid, from the package python-lucide."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from markupsafe import Markup

# The package brings no types.
_lucide = import_module("lucide")


@cache
def icon(name: str, size_px: int = 16) -> Markup:
    """Return one icon as inline SVG in the colour of the text around it, hidden from screen readers."""
    found = re.search(r"<svg[^>]*>(.*)</svg>", _lucide.lucide_icon(name), re.DOTALL)
    shapes = found[1].strip() if found else ""
    return Markup(  # noqa: S704  nothing that anybody said is in it
        f'<svg class="i" width="{size_px}" height="{size_px}" viewBox="0 0 24 24" fill="none" stroke="currentColor" '
        f'stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{shapes}</svg>'
    )
