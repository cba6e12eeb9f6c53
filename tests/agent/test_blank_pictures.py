"""A model that delivers an empty picture is paid, the picture is kept, and everybody is told what it is."""

from __future__ import annotations

import pytest

from agent.conversation import TurnState
from agent.events import PictureReady, TurnDone
from agent.messages import ToolResultPart
from agent.pictures import Blank
from agent.settings import Settings
from agent.studio import Studio
from tests.adapters.scripted import calls
from tests.support.scenes import Scene, generate, only, picture, run


@pytest.mark.parametrize(("colour", "blank"), [("black", Blank.BLACK), ("white", Blank.WHITE), ("red", None)])
async def test_an_empty_picture_is_marked_for_good(settings: Settings, colour: str, blank: Blank | None) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture(colour=colour)])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox at night")
    assert isinstance(events[-1], TurnDone)
    assert only(events, PictureReady).picture.blank is blank
    async with scene.studio() as later:
        kept = await later.conversation(conversation.id)
        stored = await later.picture(conversation.id, "#1")
    assert (kept.turns[-1].state, stored.picture.blank) == (TurnState.DONE, blank)
    assert stored.receipt is not None
    assert stored.receipt.price_usd > 0
    [told] = [part for message in kept.turns[-1].messages for part in message.parts if isinstance(part, ToolResultPart)]
    assert ("shows nothing" in str(told.content)) is (blank is not None)


async def test_what_the_studio_draws_itself_is_never_called_empty(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "Draw a night sky")
    assert only(events, PictureReady).picture.blank is None
