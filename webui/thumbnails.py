"""Pictures of the thread as small as they are shown: the browser is offered sizes, and fetches what comes near."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from agent import Picture
from webui.cards import THREAD_EDGE_PX, View

# Longer edges: for frames of a contact sheet, for a picture as wide as the thread, and the same on a fine screen.
_EDGES_PX = (336, 672, THREAD_EDGE_PX)
_ALONE = "(max-width: 760px) 92vw, 672px"
_IN_SHEET = "(max-width: 760px) 46vw, 330px"


def thread_picture(view: View, picture: Picture, alt: str, *, is_in_sheet: bool) -> str:
    """Return a picture as the thread shows it, in whichever size the screen needs; one far away is not fetched yet.

    Nothing is offered that is larger than the picture itself.
    """
    width, height = picture.image.width or THREAD_EDGE_PX, picture.image.height or THREAD_EDGE_PX
    longer = max(width, height)
    offered = [edge for smaller, edge in pairwise((0, *_EDGES_PX)) if smaller < longer]
    widths = (max(1, round(width * min(edge, longer) / longer)) for edge in offered)
    sources = ", ".join(f"{view.url(picture.handle, edge)} {wide}w" for edge, wide in zip(offered, widths, strict=True))
    # Not decoded asynchronously: what is drawn anew would flash.
    return (
        f'<img src="{view.url(picture.handle, offered[-1])}" srcset="{sources}" '
        f'sizes="{_IN_SHEET if is_in_sheet else _ALONE}" loading="lazy" alt="{escape(alt)}">'
    )
