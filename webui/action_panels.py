"""What can be done next with a picture: buttons and sliders. Using them says a sentence for the person."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pydantic import Field, ValidationError

from agent import ActionPanel, PanelAction, PanelSlider, Value
from webui.cards import THREAD_EDGE_PX, View, button
from webui.icons import icon
from webui.whole_json import whole_json
from webui.words import Words

MAX_AMOUNT = 100
PAINTING: frozenset[PanelAction] = frozenset({"regenerate", "vary"})
_QUICK_ICONS: dict[PanelAction, str] = {"more_contrast": "contrast", "warmer": "thermometer-sun"}


class PanelPress(Value):
    """A button of a panel that was pressed."""

    handle: str
    action: PanelAction


class PanelAmounts(Value):
    """Sliders of a panel that were applied, from -100 to 100; 0 changes nothing."""

    handle: str
    brightness: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    contrast: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    saturation: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    warmth: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)
    sharpness: int = Field(default=0, ge=-MAX_AMOUNT, le=MAX_AMOUNT)


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


def action_panel(view: View, panel: ActionPanel) -> str:
    """Return what changes the light and colour of a picture, for nothing; the picture's menu unfolds it."""
    words, handle = view.words, escape(panel.handle)
    # Edit, Vary and Paint again stand among the picture's own actions.
    quick = [one.action for one in panel.buttons if one.action in _QUICK_ICONS]
    buttons = "".join(
        button(
            "panel",
            words(f"panel.{action}"),
            _QUICK_ICONS[action],
            "line",
            arg=PanelPress(handle=panel.handle, action=action).model_dump_json(),
        )
        for action in quick
    )
    row = f'<div class="next">{buttons}</div>' if buttons else ""
    return (
        f'<details class="next-steps" data-handle="{handle}"><summary>{icon("chevron-right", 15)}'
        f"<span>{escape(words('panel.title', handle=panel.handle))}</span></summary>"
        f'<div role="group" aria-label="{handle}">{row}{_sliders(view, panel.sliders, panel.handle)}</div></details>'
    )


def _sliders(view: View, sliders: Sequence[PanelSlider], handle: str) -> str:
    if not sliders:
        return ""
    words = view.words
    rows = "".join(_slider(words, one) for one in sliders)
    said = {
        "label": words("adjust.label"),
        "idle": words("adjust.idle"),
        "shown": words("adjust.shown", handle=handle),
        "failed": words("adjust.failed"),
    }
    small = view.url(handle, THREAD_EDGE_PX)
    told = "".join(f' data-{name}="{escape(text)}"' for name, text in said.items())
    return (
        f'<details class="sliders" data-preview="{view.preview_url(handle)}"{told}><summary>'
        f"{icon('sliders-horizontal', 15)}<span>{escape(words('panel.adjust'))}</span>{icon('chevron-down', 14)}"
        f'</summary><div><p class="mini"><img src="{small}" alt="" loading="lazy"></p>{rows}'
        f'<p class="previewed" role="status">{escape(said["idle"])}</p>'
        f"{_slider_buttons(words, handle)}</div></details>"
    )


def _slider(words: Words, one: PanelSlider) -> str:
    """Return the slider where the picture stands; it moves by at most as much as a request can ask for."""
    least, most = max(-MAX_AMOUNT, one.amount - MAX_AMOUNT), min(MAX_AMOUNT, one.amount + MAX_AMOUNT)
    stands = f"{one.amount:+d}".replace("-", "−") if one.amount else "0"
    return (
        f"<label><span>{escape(words(f'panel.{one.setting}'))}</span>"
        f'<input type="range" name="{one.setting}" min="{least}" max="{most}" step="5" value="{one.amount}">'
        f"<output>{stands}</output></label>"
    )


def _slider_buttons(words: Words, handle: str) -> str:
    title = escape(words("adjust.before_title"))
    return (
        f'<footer><button type="button" class="b" data-adjust="before" title="{title}" disabled>{icon("eye")}'
        f"<span>{escape(words('adjust.before'))}</span></button>"
        f'<button type="button" class="b" data-adjust="reset" disabled>{icon("rotate-ccw")}'
        f'<span>{escape(words("adjust.reset"))}</span></button><span class="grow"></span>'
        f"{button('panel_apply', words('panel.apply'), 'check', 'solid', arg=handle, is_off=True)}</footer>"
    )
