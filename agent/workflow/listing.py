"""Every picture of the conversation in a few lines, by which the planner finds "the second one" and 刚才那张."""

from __future__ import annotations

from itertools import groupby

from agent.conversation import Conversation
from agent.events import SmartCanvas
from agent.messages import ImageOrigin
from agent.pictures import Picture

MOST_PICTURES = 48
_MOST_CHARACTERS = 70


def pictures_listing(conversation: Conversation, target: str | None = None) -> str:
    """Return the pictures from before this turn, oldest first, a line for each message of the person that brought any;
    nothing when there is none.

    Of more than `MOST_PICTURES` the newest are listed. Who made each, from which, and what it shows, in brackets. The
    last line says which one is changed when none is named (`target`).
    """
    pictures = conversation.pictures[-MOST_PICTURES:]
    if not pictures:
        return ""
    canvases = [one for turn in conversation.turns for one in turn.components if isinstance(one, SmartCanvas)]
    folded = {handle for canvas in canvases for handle in canvas.earlier}
    lines = [
        ", ".join(_described(picture, is_folded=picture.handle in folded) for picture in group)
        for _, group in groupby(pictures, key=lambda picture: picture.turn_id)
    ]
    left_out = len(conversation.pictures) - len(pictures)
    head = [f"({left_out} earlier pictures are not listed)"] if left_out else []
    now = [f"When no picture is named, {target} is the one to change."] if target else []
    return "\n".join(("[PICTURES]", *head, *lines, *now, "[/PICTURES]"))


def _described(picture: Picture, *, is_folded: bool) -> str:
    told = [_origin(picture)]
    if is_folded:
        told.append("an attempt that a review sent back")
    if picture.is_set_aside:
        told.append("set aside")
    # It stands in a block of brackets, and may come from a file's name or a page of the web.
    text = " ".join(picture.alt.translate(str.maketrans("[]()", "    ")).split())
    if text:
        told.append(text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1].rstrip() + "…")
    return f"{picture.handle} ({'; '.join(told)})"


def _origin(picture: Picture) -> str:
    match picture.image.origin:
        case ImageOrigin.UPLOADED:
            return "uploaded by the person"
        case ImageOrigin.GENERATED:
            return "painted here"
        case ImageOrigin.EDITED:
            is_exact = picture.receipt is not None and picture.receipt.is_exact
            verb = "adjusted" if is_exact else "changed"
            return f"{verb} here from {picture.parents[0]}" if picture.parents else f"{verb} here"
