"""The stage: one picture as large as fits, with its neighbours and its receipt, or two compared. Also the actions of
a picture, and the sliders of its light and colour."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, NamedTuple

from markupsafe import Markup
from pydantic import Field

from agent import (
    MODEL_COPY_SIDE_PX,
    ActionPanel,
    Conversation,
    PanelAction,
    Picture,
    PixelSize,
    RequestRefused,
    Value,
    fitted_size,
)
from webui.features.viewer.image_routes import CLEAR_LEVELS
from webui.features.viewer.receipt import receipt_html, shown_review, size_text
from webui.shell.templates import render
from webui.view import THREAD_EDGE_PX, View, picture_alt
from webui.words import Words

_EDGE_PX = 2048
MAX_AMOUNT = 100
PAINTING: frozenset[PanelAction] = frozenset({"regenerate", "vary"})


def empty_canvas_html(words: Words) -> str:
    """Return the stage before a picture is opened."""
    return render("viewer/empty.html", words)


def opened_canvas_html(view: View, conversation: Conversation | None) -> str:
    """Return the stage of a conversation that was just opened, with the picture that the next prompt changes."""
    if conversation is None or not conversation.pictures:
        return empty_canvas_html(view.words)
    target = conversation.edit_target
    return canvas_html(view, conversation, conversation.picture(target) if target else conversation.pictures[-1])


def canvas_html(view: View, conversation: Conversation, picture: Picture) -> str:
    """Return the stage with a picture open."""
    handle = picture.handle
    handles = [one.handle for one in conversation.pictures]
    # A picture of another branch can be shown as well, but has no neighbours.
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
    """Return the facts of an upload: the file that is kept, and what models see of it when that is less."""
    image, file = picture.image, picture.original
    if file is None:
        return [words("receipt.uploaded")]
    size = PixelSize(width=image.width or 0, height=image.height or 0, bit_depth=image.bit_depth)
    kept = size_text(words, size)
    is_flatter = file.bit_depth > image.bit_depth and image.bit_depth == 8
    bits = {"file_bits": file.bit_depth, "bits": image.bit_depth}
    line = words("receipt.kept_flatter", size=kept, **bits) if is_flatter else words("receipt.kept", size=kept)
    width, height = fitted_size(size.width, size.height, MODEL_COPY_SIDE_PX)
    if (width, height, 8) == (size.width, size.height, size.bit_depth):
        return [line]
    used = PixelSize(width=width, height=height)
    return [line, words("receipt.model_copy", used=size_text(words, used))]


def read_pair(argument: str) -> tuple[str, str]:
    """Return the two handles of a click; the first is empty when only one is named."""
    named = argument.split()[:2]
    if len(named) == 2:
        return named[0], named[1]
    return "", named[0] if named else ""


def pair(conversation: Conversation, first: str, second: str) -> tuple[Picture | None, Picture]:
    """Return the pictures to compare; without a first one, the best counterpart of the second.

    Raises RequestRefused when the conversation has no picture of a given handle.
    """
    shown = conversation.picture(second)
    return (conversation.picture(first) if first else _counterpart(conversation, shown)), shown


def _counterpart(conversation: Conversation, picture: Picture) -> Picture | None:
    """Return the base of the picture, else the picture before it, else the one after it; None without another
    picture."""
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
    """Return the stage with two pictures compared, or with the reason why a single one cannot be."""
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


# The actions of a picture, and the sliders of its light and colour


class PanelPress(Value):
    """A press of a button that says a sentence about a picture."""

    handle: str
    action: PanelAction


class PanelAmounts(Value):
    """Slider values that were applied to a picture, from -100 to 100; 0 changes nothing."""

    handle: str
    brightness: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    contrast: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    saturation: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    warmth: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    sharpness: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)


class PictureAction(NamedTuple):
    """An action of a picture; `label` and `title` are keys of translated texts.

    `way` is how it is carried out: by the page's click handler (by its name), by a sentence said on behalf of the user,
    by the painter, or by a download link, for `copy` with the kind of copy. Rarer actions are in the menu.
    """

    name: str
    icon: str
    label: str
    title: str = ""
    way: Literal["click", "panel", "painter", "download", "copy"] = "click"
    place: Literal["row", "menu"] = "row"
    is_offered: Callable[[Picture], bool] = lambda _: True

    def press(self, handle: str) -> str:
        """Return the argument of a button that says a sentence: a `PanelPress`."""
        return json.dumps({"handle": handle, "action": self.name})


def _is_made(picture: Picture) -> bool:
    return picture.receipt is not None


def _is_signed(picture: Picture) -> bool:
    return picture.receipt is not None and picture.receipt.has_credentials


ACTIONS = (
    PictureAction("edit", "pencil", "action.edit"),
    PictureAction("over", "brush", "action.paint_over", way="painter"),
    PictureAction("vary", "shuffle", "panel.vary", way="panel", is_offered=_is_made),
    PictureAction("compare", "square-split-horizontal", "compare.action"),
    PictureAction("download", "download", "action.download", "action.download_title", way="download"),
    PictureAction("reference", "image", "action.reference", place="menu"),
    PictureAction("regenerate", "refresh-cw", "panel.regenerate", way="panel", place="menu", is_offered=_is_made),
    PictureAction("adjust", "sliders-horizontal", "panel.adjust", place="menu"),
    PictureAction("clean", "", "action.clean", "action.clean_title", way="copy", place="menu"),
    PictureAction("original", "", "action.original_bytes", "action.original_bytes_title", "copy", "menu", _is_signed),
)
_QUICK = {
    "more_contrast": PictureAction("more_contrast", "contrast", "panel.more_contrast"),
    "warmer": PictureAction("warmer", "thermometer-sun", "panel.warmer"),
}
BY_NAME = {one.name: one for one in ACTIONS}


def picture_actions(view: View, picture: Picture, pair: str = "", *, is_on_stage: bool = False) -> Markup:
    """Return the row of buttons beneath a picture, with the rarer ones in a menu. `pair` holds the two handles of a
    comparison.

    On the stage, the painter has buttons of its own.
    """
    offered = [one for one in ACTIONS if one.is_offered(picture)]
    row = [one for one in offered if one.place == "row" and not (is_on_stage and one.way == "painter")]
    menu = [one for one in offered if one.place == "menu"]
    return view.render("viewer/actions.html", picture=picture, row=row, menu=menu, pair=pair)


def action_panel(view: View, panel: ActionPanel) -> Markup:
    """Return the panel of free changes of light and colour; the picture's menu unfolds it."""
    words = view.words
    # Vary and Paint again are among the picture's own actions.
    quick = [_QUICK[one.action] for one in panel.buttons if one.action in _QUICK]
    sliders = []
    for one in panel.sliders:
        # From its current value, a slider moves by at most as much as a request can ask for.
        least, most = max(-MAX_AMOUNT, one.amount - MAX_AMOUNT), min(MAX_AMOUNT, one.amount + MAX_AMOUNT)
        stands = f"{one.amount:+d}".replace("-", "−") if one.amount else "0"
        sliders.append((words(f"panel.{one.setting}"), one, least, most, stands))
    return view.render("viewer/adjust.html", panel=panel, quick=quick, sliders=sliders, edge=THREAD_EDGE_PX)


def pressed_sentence(words: Words, press: PanelPress) -> str:
    """Return the sentence that a press of the button says on behalf of the user."""
    return words(f"panel.{press.action}_said")


def amounts_sentence(words: Words, amounts: PanelAmounts) -> str:
    """Return the sentence that the sliders say on behalf of the user, naming each changed one; empty when all are 0."""
    values: dict[str, int] = amounts.model_dump(exclude={"handle"})
    parts = [f"{words(f'panel.{name}').lower()} {value:+d}" for name, value in values.items() if value]
    listed = words("panel.join").join(parts)
    return words("panel.sentence", amounts=listed[:1].upper() + listed[1:]) if parts else ""
