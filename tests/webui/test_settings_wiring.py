"""The dialog's key: whose key is tested, and what an answer that comes late leaves alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import gradio as gr
import pytest
from pydantic import SecretStr

from agent.settings import Settings
from agent.studio import Studio
from webui.panels.canvas import build_canvas
from webui.panels.chat import build_chat
from webui.panels.composer import Chosen, build_composer
from webui.panels.conversations import build_rail
from webui.panels.settings import build_settings
from webui.screen import Panels, Screen
from webui.sessions import COOKIE, Sessions
from webui.settings_wiring import KeyHandlers


class Desk:
    """The settings of a studio, before visitors of a shared link."""

    def __init__(self, studio: Studio) -> None:
        with gr.Blocks():
            rail, chat, composer = build_rail(), build_chat(), build_composer(studio.catalogue)
            self.panels = Panels(rail, chat, composer, build_canvas(), build_settings())
        self.screen = Screen(lambda: studio, Sessions(b"secret", is_shared=True), self.panels)


@dataclass(frozen=True)
class Asked:
    """What of a request tells who sent it."""

    cookies: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)


def request_of(desk: Desk) -> gr.Request:
    return cast(gr.Request, Asked({COOKIE: desk.screen.sessions.new_cookie()}))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    settings = Settings(home=tmp_path, gemini_api_key=SecretStr("AIza-operators-own-0001"), lends_keys=True)
    async with Studio(settings) as studio:
        yield Desk(studio)


async def test_the_key_that_is_lent_is_tested_for_no_stranger(desk: Desk) -> None:
    chips = Chosen().model_dump()
    told = [one async for one in KeyHandlers(desk.screen).test(request_of(desk), "", **chips)]
    [said] = [one[desk.panels.settings.verdict] for one in told]
    assert "Type a key first." in said


async def test_chips_that_stay_as_they_were_sent_are_left_alone(desk: Desk) -> None:
    sent: dict[str, Any] = Chosen(aspect_ratio="16:9").model_dump() | {"resolution": "9K"}
    updates, chips = desk.screen.narrowed(desk.screen.sessions.visitor(request_of(desk)), sent), desk.panels.composer
    assert "value" not in updates[chips.aspect_ratio]
    assert updates[chips.aspect_ratio]["choices"]
    assert updates[chips.resolution]["value"] == "auto"
