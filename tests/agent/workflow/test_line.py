"""Messages sent while one is at work: they wait in one line, and each hears how many go first."""

from __future__ import annotations

import asyncio
from contextlib import suppress

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
)
from agent.workflow.concurrency import ConcurrencyLimiter
from agent.workflow.dispatch import MAX_WAITING
from tests.adapters.scripted import Hold, Line, says
from tests.support.scenes import Scene
from tests.support.turns import send
from tests.support.waiting import until


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


class Guest:
    """One that wants a seat, and what it was told."""

    def __init__(self, room: ConcurrencyLimiter) -> None:
        self.told: list[ThoughtLog] = []
        self.is_seated = asyncio.Event()
        self.may_leave = asyncio.Event()
        self.stay = asyncio.create_task(self._stay(room))

    async def _stay(self, room: ConcurrencyLimiter) -> None:
        async with room.slot(self.told.append):
            self.is_seated.set()
            await self.may_leave.wait()

    @property
    def places(self) -> list[int]:
        assert all(line.step is Step.IN_LINE for line in self.told)
        return [int(line.parameters["place"]) for line in self.told]


async def leave(guest: Guest) -> None:
    guest.may_leave.set()
    await guest.stay


async def test_whoever_gives_up_waiting_lets_the_others_move_up() -> None:
    room = ConcurrencyLimiter(1)
    first, second, third = (Guest(room) for _ in range(3))
    await until(lambda: bool(third.told))
    second.stay.cancel()
    with suppress(asyncio.CancelledError):
        await second.stay
    assert third.places == [2, 1]
    await leave(first)
    await third.is_seated.wait()
    await leave(third)


async def test_a_seat_is_not_lost_with_one_that_is_stopped_as_it_is_called() -> None:
    room = ConcurrencyLimiter(1)
    first, second = Guest(room), Guest(room)
    await until(lambda: bool(second.told))
    first.may_leave.set()
    await until(first.stay.done)
    second.stay.cancel()
    with suppress(asyncio.CancelledError):
        await second.stay
    third = Guest(room)
    await third.is_seated.wait()
    assert third.places == []
    await leave(third)
