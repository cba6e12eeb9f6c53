"""Panels of actions: what a button or the sliders say for the person."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import get_args

import pytest

from agent.components import ActionPanel, PanelAction, PanelButton, PanelSetting, PanelSlider
from tests.support.cases import each_case
from webui.action_panels import (
    PanelAmounts,
    PanelPress,
    action_panel,
    amounts_sentence,
    pressed_sentence,
    read_amounts,
    read_press,
)
from webui.cards import View
from webui.words import LANGUAGES, load_words

ACTIONS: tuple[PanelAction, ...] = get_args(PanelAction)
SETTINGS: tuple[PanelSetting, ...] = get_args(PanelSetting)


def panel(handle: str = "#1") -> ActionPanel:
    return ActionPanel(
        handle=handle,
        buttons=tuple(PanelButton(action=action) for action in ACTIONS),
        sliders=tuple(PanelSlider(setting=setting) for setting in SETTINGS),
    )


@each_case("language", LANGUAGES)
@each_case("action", [action for action in ACTIONS if action != "edit"])
def test_a_button_sends_what_it_says_for_the_person(action: PanelAction, language: str) -> None:
    words = load_words(language)
    shown = action_panel(View(words, "c1"), panel("#7b"), is_open=True)
    sent = [unescape(one) for one in re.findall(r'data-act="panel" data-arg="([^"]*)"', shown)]
    presses = {press.action: press for one in sent if (press := read_press(one))}
    assert presses[action] == PanelPress(handle="#7b", action=action)
    assert pressed_sentence(words, presses[action])


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "Brightness +20, contrast -10."), ("zh-CN", "亮度 +20，对比度 -10。")],
)
def test_the_sliders_say_one_sentence(language: str, said: str) -> None:
    amounts = PanelAmounts(handle="#1", brightness=20, contrast=-10)
    assert amounts_sentence(load_words(language), amounts) == said


def test_sliders_at_nothing_say_nothing() -> None:
    assert amounts_sentence(load_words("en"), PanelAmounts(handle="#1")) == ""


def test_the_sliders_are_read() -> None:
    sent: dict[str, str | int] = {"handle": "#1", "warmth": -100}
    sent |= {setting: 0 for setting in SETTINGS if setting != "warmth"}
    assert read_amounts(json.dumps(sent)) == PanelAmounts(handle="#1", warmth=-100)


@pytest.mark.parametrize(
    "sent",
    ["", "7", '{"brightness": 1}', '{"handle": "#1", "brightness": 101}', '{"handle": "#1", "size": 3}'],
)
def test_nonsense_of_sliders_is_ignored(sent: str) -> None:
    assert read_amounts(sent) is None


@pytest.mark.parametrize("sent", ["", "{}", '{"handle": "#1", "action": "delete"}', '{"handle": 1, "action": "vary"}'])
def test_nonsense_of_buttons_is_ignored(sent: str) -> None:
    assert read_press(sent) is None
