"""Two pictures on the stage, compared: by a slider, side by side, by their difference."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent import Conversation, Picture, RequestRefused
from webui.cards import View, button, picture_alt, tag
from webui.differences import CLEAR_LEVELS
from webui.icons import icon
from webui.panels.viewer import full_buttons
from webui.words import Words

EDGE_PX = 2048
_MODES = {"slider": "square-split-horizontal", "side": "columns-2", "difference": "diff"}


def read_pair(argument: str) -> tuple[str, str]:
    """Return the handles a click names, first and second; the first is empty where only one is named."""
    named = argument.split()[:2]
    if len(named) == 2:
        return named[0], named[1]
    return "", named[0] if named else ""


def pair(conversation: Conversation, first: str, second: str) -> tuple[Picture | None, Picture]:
    """Return the pictures to compare; without a first one it is chosen by `counterpart`.

    Raises RequestRefused when the conversation does not hold one that is named.
    """
    shown = conversation.picture(second)
    return (conversation.picture(first) if first else counterpart(conversation, shown)), shown


def counterpart(conversation: Conversation, picture: Picture) -> Picture | None:
    """Return the picture another one is best compared with: what it was made from, else the one before it, else the
    one after it; None when there is no other."""
    for handle in picture.parents:
        try:
            parent = conversation.picture(handle)
        except RequestRefused:
            continue
        if parent.handle != picture.handle:
            return parent
    handles = [one.handle for one in conversation.all_pictures]
    at = handles.index(picture.handle)
    beside = (at - 1, at + 1) if at else (at + 1,)
    return next((conversation.all_pictures[one] for one in beside if one < len(handles)), None)


def compare_html(view: View, conversation: Conversation, first: Picture | None, second: Picture) -> str:
    """Return the stage with two pictures compared, or with the reason why one alone cannot be."""
    if first is None:
        return _alone(view.words, second)
    words = view.words
    return (
        f'<div class="cmp" data-pair="{escape(first.handle)} {escape(second.handle)}" '
        f'data-difference="{view.difference_url(first.handle, second.handle)}"{_sentences(words, first, second)}>'
        f"{_bar(words, second.handle)}{_picker(words, conversation.all_pictures, first.handle, second.handle)}"
        f"{_modes(words)}{_well(view, first, second)}{_tools(words)}"
        f'<p class="cmp-said" role="status"></p><p class="cmp-sizes">{escape(sizes(words, first, second))}</p></div>'
    )


def sizes(words: Words, first: Picture, second: Picture) -> str:
    """Return how large both are, and that they were fitted where they are not alike."""
    one, two = _size(first), _size(second)
    if one == two:
        return words("compare.same_size", size=one)
    return words("compare.other_size", first=first.handle, first_size=one, second=second.handle, second_size=two)


def _size(picture: Picture) -> str:
    return f"{picture.image.width or 1}×{picture.image.height or 1}"


def _alone(words: Words, picture: Picture) -> str:
    text = words("compare.alone_text", handle=picture.handle)
    return (
        f'{_bar(words, picture.handle)}<div class="empty"><div class="empty-art">{icon("square-split-horizontal", 26)}'
        f"</div><h3>{escape(words('compare.alone'))}</h3><p>{escape(text)}</p></div>"
    )


def _sentences(words: Words, first: Picture, second: Picture) -> str:
    """Return what the script says, as attributes; what it fills in stays in braces."""
    names = {"first": first.handle, "second": second.handle}
    said = {
        "computing": words("compare.computing"),
        "failed": words("compare.failed"),
        "same": words("compare.same", compared="{compared}"),
        "numbers": words(
            "compare.numbers", changed="{changed}", clear="{clear}", largest="{largest}", levels=CLEAR_LEVELS
        ),
        "compared": words("compare.compared", compared="{compared}"),
        "share": words("compare.share", share="{share}", **names),
    }
    return "".join(f' data-{name}="{escape(text)}"' for name, text in said.items())


def _bar(words: Words, handle: str) -> str:
    back = words("action.open", handle=handle)
    return (
        f'<div class="cv-bar"><b>{escape(words("compare.title"))}</b><span class="grow"></span>'
        f"{button('view', back, 'image', 'icon', arg=handle, bare=True)}{full_buttons(words)}"
        f"{button('stage', words('action.close'), 'x', 'icon', bare=True)}</div>"
    )


def _picker(words: Words, pictures: Sequence[Picture], first: str, second: str) -> str:
    swap = escape(words("compare.swap"))
    return (
        f'<div class="cmp-pick">{_select("first", words("compare.first"), pictures, first)}'
        f'<button type="button" class="b icon" data-cmp="swap" aria-label="{swap}" title="{swap}">'
        f"{icon('arrow-left-right')}</button>{_select('second', words('compare.second'), pictures, second)}</div>"
    )


def _select(name: str, label: str, pictures: Sequence[Picture], chosen: str) -> str:
    options = "".join(
        f'<option value="{escape(one.handle)}"{" selected" if one.handle == chosen else ""}>'
        f"{escape(one.handle)} · {_size(one)}</option>"
        for one in pictures
    )
    return f'<label><span>{escape(label)}</span><select data-cmp-pick="{name}">{options}</select></label>'


def _modes(words: Words) -> str:
    labels = {
        "slider": words("compare.slider"),
        "side": words("compare.side"),
        "difference": words("compare.difference"),
    }
    cells = "".join(
        f'<button type="button" role="radio" aria-checked="{str(name == "slider").lower()}" '
        f'tabindex="{0 if name == "slider" else -1}" data-cmp-mode="{name}">{icon(picture, 15)}'
        f"<span>{escape(labels[name])}</span></button>"
        for name, picture in _MODES.items()
    )
    return f'<div class="cmp-modes" role="radiogroup" aria-label="{escape(words("compare.mode"))}">{cells}</div>'


def _well(view: View, first: Picture, second: Picture) -> str:
    words, image = view.words, first.image
    names = {"first": first.handle, "second": second.handle}
    ratio = (image.width or 1) / (image.height or 1)
    return (
        f'<div class="cmp-well" style="--ar:{ratio:.4f}"><div class="cmp-frame" role="group" '
        f'aria-label="{escape(words("compare.panes"))}">{_pane(view, "first", first)}{_pane(view, "second", second)}'
        f'<img class="cmp-diff" hidden alt="{escape(words("compare.difference_alt", **names))}">'
        f'<i class="cmp-line">{icon("chevrons-left-right", 18)}</i>'
        f'<input class="cmp-range" type="range" min="0" max="100" step="1" value="50" '
        f'aria-label="{escape(words("compare.divide", **names))}"></div></div>'
    )


def _pane(view: View, place: str, picture: Picture) -> str:
    return (
        f'<div class="cmp-pane {place}"><img src="{view.url(picture.handle, EDGE_PX)}" draggable="false" '
        f'alt="{escape(picture_alt(view.words, picture))}">{tag(picture.handle)}</div>'
    )


def _tools(words: Words) -> str:
    """Return a row of tools for each way to compare; all stand in one place, so that changing it moves nothing."""
    zoom = "".join(
        f'<button type="button" class="b icon" data-cmp="{act}" aria-label="{escape(label)}" title="{escape(label)}">'
        f"{icon(name)}</button>"
        for act, label, name in (
            ("out", words("compare.zoom_out"), "zoom-out"),
            ("in", words("compare.zoom_in"), "zoom-in"),
            ("fit", words("compare.zoom_fit"), "fullscreen"),
        )
    )
    return (
        f'<div class="cmp-tools"><p data-for="slider">{escape(words("compare.slider_help"))}</p>'
        f'<div data-for="side">{zoom}<output>100 %</output></div>'
        f'<p data-for="difference">{escape(words("compare.difference_help"))}</p></div>'
    )
