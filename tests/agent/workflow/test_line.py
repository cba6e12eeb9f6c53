"""Messages sent while one is at work: they wait in one line, and each hears how many go first."""

from __future__ import annotations

import asyncio

from agent.events import Step, TextDelta, ThoughtLog, TurnDone
from agent.messages import TextPart
from agent.providers.scripted import Hold, Line, says
from agent.settings import Settings
from agent.studio import TurnRequest
from tests.support.scenes import Scene


def behind(count: int) -> ThoughtLog:
    return ThoughtLog(step=Step.WAITING, parameters={"count": count})


async def test_each_in_line_hears_its_place_and_hears_again_when_it_moves_up(settings: Settings) -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    slow = [Line((TextPart(text="One "), Hold(gate), TextPart(text="two."))) for gate in gates]
    scene = Scene(settings, text=[*slow, says("Well.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first, second, third = (studio.run_turn(conversation.id, TurnRequest(text=text)) for text in "abc")
        async for event in first:
            if isinstance(event, TextDelta):
                break
        assert await anext(second) == behind(1)
        assert await anext(third) == behind(2)
        gates[0].set()
        assert isinstance([event async for event in first][-1], TurnDone)
        assert await anext(third) == behind(1)
        gates[1].set()
        assert isinstance([event async for event in second][-1], TurnDone)
        after = [event async for event in third]
        assert isinstance(after[-1], TurnDone)
        assert not [event for event in after if isinstance(event, ThoughtLog) and event.step is Step.WAITING]
        kept = await studio.conversation(conversation.id)
    assert [turn.text for turn in kept.turns] == ["a", "b", "c"]
