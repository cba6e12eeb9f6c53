"""The stage: one picture as large as fits with its neighbours and its receipt, or two compared."""

from __future__ import annotations

from agent import MODEL_COPY_SIDE_PX, Conversation, Picture, PixelSize, RequestRefused, fitted_size
from webui.features.viewer.actions import BY_NAME, picture_actions
from webui.features.viewer.image_routes import CLEAR_LEVELS
from webui.features.viewer.notes import shown_review, size_text
from webui.features.viewer.receipt import receipt_html
from webui.shell.templates import render
from webui.view import View, picture_alt
from webui.words import Words

_EDGE_PX = 2048


def empty_canvas_html(words: Words) -> str:
    """Return the stage before a picture is opened."""
    return render("viewer/empty.html", words)


def opened_canvas_html(view: View, conversation: Conversation | None) -> str:
    """Return the stage of a conversation that was just opened: the picture that the next words change."""
    if conversation is None or not conversation.pictures:
        return empty_canvas_html(view.words)
    target = conversation.edit_target
    return canvas_html(view, conversation, conversation.picture(target) if target else conversation.pictures[-1])


def canvas_html(view: View, conversation: Conversation, picture: Picture) -> str:
    """Return the stage with a picture open."""
    handle = picture.handle
    handles = [one.handle for one in conversation.pictures]
    # A picture of another branch is shown as well, and stands in no row.
    at = handles.index(handle) if handle in handles else None
    before = handles[at - 1] if at else ""
    after = handles[at + 1] if at is not None and at + 1 < len(handles) else ""
    return view.render(
        "viewer/picture.html",
        picture=picture,
        alt=picture_alt(view.words, picture),
        edge=_EDGE_PX,
        handles=handles,
        at=at,
        before=before,
        after=after,
        ahead=" ".join(view.url(one, _EDGE_PX) for one in (before, after) if one),
        actions=BY_NAME,
        row=picture_actions(view, picture, is_on_stage=True),
        shown=shown_review(view.words, picture.review),
        receipt=receipt_html(view, picture),
        uploaded=() if picture.receipt else _uploaded(view.words, picture),
    )


def _uploaded(words: Words, picture: Picture) -> list[str]:
    """Return what is known of an upload: as what it is kept, and what models see of it where that is less."""
    image, file = picture.image, picture.original
    if file is None:
        return [words("receipt.uploaded")]
    size = PixelSize(width=image.width or 0, height=image.height or 0, bit_depth=image.bit_depth)
    kept = size_text(words, size)
    is_flatter = file.bit_depth > image.bit_depth and image.bit_depth == 8
    bits = {"file_bits": file.bit_depth, "bits": image.bit_depth}
    told = words("receipt.kept_flatter", size=kept, **bits) if is_flatter else words("receipt.kept", size=kept)
    width, height = fitted_size(size.width, size.height, MODEL_COPY_SIDE_PX)
    if (width, height, 8) == (size.width, size.height, size.bit_depth):
        return [told]
    used = PixelSize(width=width, height=height)
    return [told, words("receipt.model_copy", used=size_text(words, used))]


def read_pair(argument: str) -> tuple[str, str]:
    """Return the handles a click names, first and second; the first is empty where only one is named."""
    named = argument.split()[:2]
    if len(named) == 2:
        return named[0], named[1]
    return "", named[0] if named else ""


def pair(conversation: Conversation, first: str, second: str) -> tuple[Picture | None, Picture]:
    """Return the pictures to compare; without a first one, what the second is best compared with.

    Raises RequestRefused when the conversation does not hold one that is named.
    """
    shown = conversation.picture(second)
    return (conversation.picture(first) if first else _counterpart(conversation, shown)), shown


def _counterpart(conversation: Conversation, picture: Picture) -> Picture | None:
    """Return what the picture was made from, else the one before it, else the one after it; None without another."""
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
    return view.render(
        "viewer/compare.html",
        pictures=conversation.all_pictures,
        first=first,
        second=second,
        edge=_EDGE_PX,
        levels=CLEAR_LEVELS,
        alt=picture_alt,
        size=lambda one: f"{one.image.width or 1}×{one.image.height or 1}",
    )
