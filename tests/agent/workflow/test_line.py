"""Messages sent while one is at work: they wait in one line, and each hears how many go first."""

from __future__ import annotations

import asyncio

from agent import (
    ErrorCode,
    ErrorInfo,
    Housekeeping,
    Settings,
    Step,
    TextDelta,
    TextPart,
    ThoughtLog,
    TurnDone,
    TurnFailed,
    TurnRequest,
    TurnStarted,
)
from agent.workflow.dispatch import MAX_WAITING
from tests.adapters.scripted import Hold, Line, says
from tests.support.scenes import Scene, of_type
from tests.support.turns import send


def behind(count: int) -> ThoughtLog:
    return ThoughtLog(step=Step.WAITING, parameters={"count": count})


async def test_each_in_line_hears_its_place_and_hears_again_when_it_moves_up(settings: Settings) -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    slow = [Line((TextPart(text="One "), Hold(gate), TextPart(text="two."))) for gate in gates]
    scene = Scene(settings, text=[*slow, says("Well.")])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
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
        kept = await studio.conversations.get(conversation.id)
    assert [turn.text for turn in kept.turns] == ["a", "b", "c"]


async def test_of_a_hundred_at_once_the_first_run_in_order_and_only_what_is_beyond_the_line_is_refused(
    settings: Settings,
) -> None:
    gate, texts = asyncio.Event(), [str(number) for number in range(100)]
    first = Line((TextPart(text="One "), Hold(gate), TextPart(text="two.")))
    scene = Scene(settings, text=[first, *[says("Well.")] * (MAX_WAITING + 1)])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        requests = [TurnRequest(text=text, request_id=f"press-{text}") for text in texts]
        sent = [asyncio.create_task(send(studio, conversation.id, one)) for one in requests]
        refused = [(await one)[-1] for one in sent[MAX_WAITING + 1 :]]
        gate.set()
        served = [await one for one in sent[: MAX_WAITING + 1]]
        # Those that were refused count for nothing.
        later = await send(studio, conversation.id, TurnRequest(text="later"))
        kept = await studio.conversations.get(conversation.id)
    full = ErrorInfo(code=ErrorCode.QUEUE_FULL, parameters={"count": MAX_WAITING})
    assert refused == [TurnFailed(error=full)] * (len(texts) - MAX_WAITING - 1)
    assert all(isinstance(events[-1], TurnDone) for events in [*served, later])
    assert [turn.text for turn in kept.turns] == [*texts[: MAX_WAITING + 1], "later"]
    assert len(scene.provider.asked) == len(kept.turns)
    assert Housekeeping(settings.home).check().is_fine


async def test_send_pressed_a_hundred_times_for_one_message_is_one_turn(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Well.")])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        request = TurnRequest(text="a fox", request_id="press")
        told = await asyncio.gather(*(send(studio, conversation.id, request) for _ in range(100)))
        kept = await studio.conversations.get(conversation.id)
    assert {event.turn_id for events in told for event in of_type(events, TurnStarted)} == {kept.turns[0].id}
    assert all(isinstance(events[-1], TurnDone) for events in told)
    assert len(kept.turns) == len(scene.provider.asked) == 1
