"""Pictures of the past that the agent wants to see again, over real HTTP."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from agent import TurnDone
from tests.behaviour.conftest import OpenTalk
from tests.support.scenes import png
from tests.wire_server import Answer, Call, Text, WireRequest


def ask_for_it(request: WireRequest) -> Answer:
    """Ask for the picture whose placeholder stands in the history, then say that this was it."""
    if request.function_responses:
        return Text("So that was it.")
    [shown] = re.findall(r"\[Picture:history_([0-9a-f]{32})\]", request.text)
    return Call("get_history_image", {"image_id": shown})


async def test_a_picture_that_goes_after_it_was_listed_has_expired_and_the_turn_goes_on(open_talk: OpenTalk) -> None:
    def lose_it(request: WireRequest) -> Answer:
        if not request.function_responses:
            [path] = (talk.studio.settings.home / "pictures").rglob("*.png")
            path.unlink()
        return ask_for_it(request)

    async with open_talk() as talk:
        await talk.say("what is this?", png(), plan=Text("A red field."))
        turn = await talk.say("which colour had it?", plan=lose_it)
    assert (turn.words, type(turn.events[-1])) == ("So that was it.", TurnDone)
    [answer] = turn.requests[-1].function_responses
    assert "#1 has expired and its file is gone. Ask the user to add it again." in answer["response"]["error"]
    assert turn.requests[-1].pictures == []


async def test_without_a_place_for_the_cache_pictures_of_the_past_come_and_that_is_logged_once(
    open_talk: OpenTalk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "cache").write_text("in the way")
    async with open_talk() as talk:
        await talk.say("what is this?", png(), plan=Text("A red field."))
        stored = await talk.picture("#1")
        for _ in range(2):
            turn = await talk.say("show it to me again", plan=ask_for_it)
            assert (turn.words, turn.requests[-1].pictures) == ("So that was it.", [stored.data])
    warnings = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert ["history_images is not used for now" in one.getMessage() for one in warnings] == [True]
