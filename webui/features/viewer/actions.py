"""What can be done with a picture: the buttons beneath it, and the sliders of its light and colour."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, NamedTuple

from markupsafe import Markup
from pydantic import Field, ValidationError

from agent import ActionPanel, PanelAction, Picture, Value
from webui.view import THREAD_EDGE_PX, View
from webui.whole_json import whole_json
from webui.words import Words

MAX_AMOUNT = 100
PAINTING: frozenset[PanelAction] = frozenset({"regenerate", "vary"})


class PanelPress(Value):
    """A button that says a sentence about a picture."""

    handle: str
    action: PanelAction


class PanelAmounts(Value):
    """Sliders that were applied to a picture, from -100 to 100; 0 changes nothing."""

    handle: str
    brightness: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    contrast: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    saturation: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    warmth: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    sharpness: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)


class PictureAction(NamedTuple):
    """Something that can be done with a picture; `label` and `title` are keys of the words.

    `way` is who does it: the page's click handler (which knows it by its name), a sentence said for the person, the
    painter, or a link to the file, for a copy of some kind with what kind that is. The menu has what is rarer.
    """

    name: str
    icon: str
    label: str
    title: str = ""
    way: Literal["click", "panel", "painter", "download", "copy"] = "click"
    place: Literal["row", "menu"] = "row"
    is_offered: Callable[[Picture], bool] = lambda _: True

    def press(self, handle: str) -> str:
        """Return what the button sends where it says a sentence for the person; `read_press` reads it."""
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
    """Return the row of buttons beneath a picture, the rarer ones in a menu. `pair` are two handles that are compared.

    On the stage other buttons open the painter.
    """
    offered = [one for one in ACTIONS if one.is_offered(picture)]
    row = [one for one in offered if one.place == "row" and not (is_on_stage and one.way == "painter")]
    menu = [one for one in offered if one.place == "menu"]
    return view.render("viewer/actions.html", picture=picture, row=row, menu=menu, pair=pair)


def action_panel(view: View, panel: ActionPanel) -> Markup:
    """Return what changes the light and colour of a picture, for nothing; the picture's menu unfolds it."""
    words = view.words
    # Vary and Paint again stand among the picture's own actions.
    quick = [_QUICK[one.action] for one in panel.buttons if one.action in _QUICK]
    sliders = []
    for one in panel.sliders:
        # From where the picture stands it moves by at most as much as a request can ask for.
        least, most = max(-MAX_AMOUNT, one.amount - MAX_AMOUNT), min(MAX_AMOUNT, one.amount + MAX_AMOUNT)
        stands = f"{one.amount:+d}".replace("-", "−") if one.amount else "0"
        sliders.append((words(f"panel.{one.setting}"), one, least, most, stands))
    shown = {"panel": panel, "quick": quick, "sliders": sliders, "edge": THREAD_EDGE_PX}
    return view.render("viewer/adjust.html", **shown)


def read_press(argument: str) -> PanelPress | None:
    """Return what was pressed, or None when the page sent something else."""
    try:
        return PanelPress.model_validate_json(whole_json(argument))
    except ValidationError:
        return None


def read_amounts(argument: str) -> PanelAmounts | None:
    """Return what the sliders say, or None when the page sent something else."""
    try:
        return PanelAmounts.model_validate_json(whole_json(argument))
    except ValidationError:
        return None


def pressed_sentence(words: Words, press: PanelPress) -> str:
    """Return what pressing the button says for the person."""
    return words(f"panel.{press.action}_said")


def amounts_sentence(words: Words, amounts: PanelAmounts) -> str:
    """Return what the sliders say for the person, each changed one by name; empty when all stand at 0."""
    values: dict[str, int] = amounts.model_dump(exclude={"handle"})
    said = [f"{words(f'panel.{name}').lower()} {value:+d}" for name, value in values.items() if value]
    listed = words("panel.join").join(said)
    return words("panel.sentence", amounts=listed[:1].upper() + listed[1:]) if said else ""
