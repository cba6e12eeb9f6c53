"""A conversation is opened while its turn comes to its end: whatever the moment, the end is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gradio as gr
from pydantic import SecretStr

from agent.conversation import TurnState
from agent.errors import ErrorCode, KeyProblem
from agent.messages import TextPart, TokenUsage
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
        assert "One, two." in str(last)
        assert 'class="live"' not in str(last)
        assert not turns.is_at_work(await studio.conversation(begun.id, ANN.owner))


async def test_a_quota_that_failed_once_is_forgotten_by_the_next_success_and_the_choice_stays(tmp_path: Path) -> None:
    """Nobody is moved from Flash to Thinking, which costs more, because a minute was busy."""
    go_on = asyncio.Event()
    used_up = Line((Hold(go_on),), raises=KeyProblem(ErrorCode.QUOTA_EXHAUSTED, model="Flash"))
    said = Line((Hold(go_on), TextPart(text="Here I am.")), usage=TokenUsage(prompt_tokens=9, output_tokens=3))
    settings = Settings(home=tmp_path, gemini_api_key=SecretStr("AIza-of-nobody"), retry_budget_s=0)
    scene = Scene(settings, text=[used_up, said])
    async with scene.studio() as studio:
        turns = Turns(screen_of(studio))
        screen = turns.screen
        begun = await studio.new_conversation(ANN.owner)

        async def sent(text: str) -> Updates:
            """Return what the page was updated with at the end of a turn that it followed."""
            go_on.clear()
            events = studio.run_turn(begun.id, TurnRequest(text=text), owner=ANN.owner)
            await anext(events)
            shown: Updates = {}
            async for one in turns.follow(ANN, Tab(), await studio.conversation(begun.id, ANN.owner)):
                shown |= one
                go_on.set()
            async for _ in events:
                pass
            return shown

        failed = await sent("hello")
        assert "Today&#x27;s quota of your key for Text Flash is used up" in failed[screen.panels.composer.models]
        reloaded = screen.chips_of(ANN, await studio.conversation(begun.id, ANN.owner))
        assert reloaded[screen.panels.composer.settings["text_model"]]["value"] == "flash"
        assert "Text Flash" in reloaded[screen.panels.composer.models]
        well = await sent("and now?")
        assert "Text Flash" not in well[screen.panels.composer.models]
