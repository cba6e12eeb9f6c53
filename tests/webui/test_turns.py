"""A conversation is opened while its turn comes to its end: whatever the moment, the end is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gradio as gr

from agent.conversation import TurnState
from agent.messages import TextPart
from agent.providers.scripted import Hold, Line
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.support.scenes import Scene
from webui.panels.canvas import build_canvas
from webui.panels.chat import build_chat
from webui.panels.composer import build_composer
from webui.panels.conversations import build_rail
from webui.panels.settings import build_settings
from webui.screen import Panels, Screen, Updates
from webui.sessions import Sessions, Visitor
from webui.tabs import Tab
from webui.turns import Turns
from webui.words import load_words

ANN = Visitor("ann", "ann", load_words("en"))


def screen_of(studio: Studio) -> Screen:
    with gr.Blocks():
        panels = Panels(build_rail(), build_chat(), build_composer(studio.catalogue), build_canvas(), build_settings())
    return Screen(lambda: studio, Sessions(b"secret", is_shared=True), panels)


def thread(screen: Screen, updates: Updates) -> list[dict[str, Any]] | None:
    """Return the messages of an update, None where it leaves them as they are."""
    value = updates.get(screen.panels.chat.thread)
    return value if isinstance(value, list) else None


async def test_a_turn_that_ends_while_its_conversation_is_read_is_shown_to_its_end(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    scene = Scene(Settings(home=tmp_path), text=[Line((TextPart(text="One, "), Hold(go_on), TextPart(text="two.")))])
    async with scene.studio() as studio:
        turns = Turns(screen_of(studio))
        begun = await studio.new_conversation(ANN.owner)
        events = studio.run_turn(begun.id, TurnRequest(text="count"), owner=ANN.owner)
        async for _ in events:
            break
        read = await studio.conversation(begun.id, ANN.owner)
        assert read.turns[-1].state is TurnState.RUNNING
        go_on.set()
        async for _ in events:
            pass
        assert not studio.is_running(begun.id, ANN.owner)
        assert turns.is_at_work(read)
        shown = [thread(turns.screen, one) async for one in turns.follow(ANN, Tab(), read)]
        last = [one for one in shown if one is not None][-1]
        assert "One, two." in [message["content"] for message in last]
        assert 'class="live"' not in str(last)
        assert not turns.is_at_work(await studio.conversation(begun.id, ANN.owner))
