"""A picture that came empty: kept, and told as what it is, so that nobody looks at a black frame and wonders."""

from __future__ import annotations

from html import escape

from agent import Blank, Picture
from webui.cards import View, button
from webui.icons import icon
from webui.words import Words

_SENTENCES = {Blank.BLACK: "blank.black", Blank.WHITE: "blank.white", Blank.CLEAR: "blank.clear"}


def blank_mark(words: Words, picture: Picture) -> str:
    """Return what stands over an empty picture; nothing over one that shows something."""
    if picture.blank is None:
        return ""
    said = escape(words(_SENTENCES[picture.blank]))
    return f'<span class="blank-mark">{icon("image-off", 20)}<span>{said}</span></span>'


def blank_note(view: View, picture: Picture) -> str:
    """Return what is to know of an empty picture, and the way on; nothing for one that shows something."""
    if picture.blank is None:
        return ""
    words = view.words
    again = button("retry", words("action.retry"), "rotate-ccw", "line", arg=picture.turn_id, price=view.turn_price)
    edit = button("edit_words", words("action.edit_words"), "pencil", "line", arg=picture.turn_id)
    said = escape(words("blank.note"))
    return f'<div class="blank-note" role="note">{icon("image-off", 16)}<p>{said}</p><span>{again}{edit}</span></div>'
