"""An aspect ratio drawn: a small frame of that shape, as it stands beside the numbers."""

from __future__ import annotations

EDGE_PX = 14
# Thinner than this a frame is a line.
_LEAST_PX = 4


def shape_size(ratio: str, edge_px: int = EDGE_PX) -> tuple[int, int]:
    """Return width and height in pixels of a frame of the ratio `W:H`, its longer side `edge_px`.

    Raises ValueError for anything else.
    """
    width, height = (int(part) for part in ratio.split(":"))
    if width <= 0 or height <= 0:
        raise ValueError("a ratio has two sides")
    longer = max(width, height)
    return max(_LEAST_PX, round(edge_px * width / longer)), max(_LEAST_PX, round(edge_px * height / longer))


def shape_html(ratio: str, edge_px: int = EDGE_PX) -> str:
    """Return the frame as HTML, nothing for what is no ratio."""
    try:
        width, height = shape_size(ratio, edge_px)
    except ValueError:
        return ""
    return f'<i class="shape" style="width:{width}px;height:{height}px" aria-hidden="true"></i>'
