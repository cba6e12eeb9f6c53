"""The bar over an opened picture, and the buttons that let it, the painter or a comparison fill the window."""

from __future__ import annotations

from html import escape

from agent import Conversation, Picture
from webui.cards import View, button
from webui.icons import icon
from webui.words import Words


def full_buttons(words: Words, closing: str = "x") -> str:
    """Return the button that fills the window and the one that ends it, of which the styles show one."""
    return _press(words("viewer.full"), "open", "maximize") + _press(words("viewer.close"), "close", closing)


def viewer_bar(view: View, conversation: Conversation, picture: Picture, preview_px: int) -> str:
    """Return the bar of an opened picture; beside its handle, all of it is for the full window alone.

    The pictures beside it are named in `data-ahead`, so that the page has them before they are asked for.
    """
    words, handle = view.words, picture.handle
    handles = [one.handle for one in conversation.pictures]
    # A picture of another branch is shown as well, and stands in no row.
    at = handles.index(handle) if handle in handles else None
    before = handles[at - 1] if at else ""
    after = handles[at + 1] if at is not None and at + 1 < len(handles) else ""
    place = "" if at is None else words("viewer.at", number=at + 1, count=len(handles))
    back = _step(words("viewer.previous"), "chevron-left", before)
    forth = _step(words("viewer.next"), "chevron-right", after)
    ahead = " ".join(view.url(one, preview_px) for one in (before, after) if one)
    return (
        f'<div class="cv-bar" data-ahead="{escape(ahead)}"><div class="vw-steps">{back}{forth}</div>'
        f'<div class="vw-title"><span class="vw-at">{escape(place)}</span><b>{escape(handle)}</b></div>'
        f'<span class="grow"></span>'
        f"{_zoom(words)}{_more(view, handle)}{full_buttons(words)}</div>"
    )


def _step(label: str, shape: str, handle: str) -> str:
    return button("view", label, shape, "icon", arg=handle, bare=True, is_off=not handle)


def _zoom(words: Words) -> str:
    # Its name is the number that the script writes into it.
    fit = f'<button type="button" class="b" data-viewer="fit" title="{escape(words("viewer.fit"))}"></button>'
    closer = _press(words("viewer.zoom_in"), "closer", "plus")
    further = _press(words("viewer.zoom_out"), "further", "minus")
    return f'<div class="vw-zoom">{further}{fit}{closer}</div>'


def _more(view: View, handle: str) -> str:
    words = view.words
    details, download = escape(words("viewer.details")), escape(words("action.download"))
    return (
        f'<div class="vw-more"><button type="button" class="b" data-viewer="details" aria-pressed="false" '
        f'title="{details}">{icon("info")}<span>{details}</span></button>'
        f"{button('compare', words('compare.action'), 'square-split-horizontal', arg=handle)}"
        f'<a class="b" href="{view.url(handle, is_download=True)}" download title="{download}">{icon("download")}'
        f"<span>{download}</span></a></div>"
    )


def _press(label: str, act: str, shape: str) -> str:
    name = escape(label)
    return (
        f'<button type="button" class="b icon" data-viewer="{act}" aria-label="{name}" title="{name}">'
        f"{icon(shape, 18)}</button>"
    )
