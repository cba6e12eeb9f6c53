"""Turns beside one another: they wait in line and are followed from anywhere."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agent import (
    Decision,
    LiveTurn,
    PlanReady,
    Settings,
    Step,
    Studio,
    TextDelta,
    TextPart,
    ThoughtLog,
    TurnDone,
    TurnPaused,
    TurnRequest,
    TurnSettings,
    TurnStarted,
)
from agent.workflow.concurrency import ConcurrencyLimiter
from tests.adapters.models import Hold, Line, says
from tests.adapters.records import KEPT_S, RecentTurns
from tests.support.clock import Standing
from tests.support.scenes import Scene
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


async def test_the_numbers_of_a_turn_go_on_over_its_rest_and_any_of_them_is_a_place_to_follow_from(
    tmp_path: Path,
) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        conversation = (await studio.conversations.create()).id
        request = TurnRequest(text="draw a red fox", settings=TurnSettings(confirm=True))
        planned = studio.turns.start(conversation, request)
        first = [one async for one in planned.follow()]
        assert [number for number, _ in first] == list(range(1, len(first) + 1))
        assert isinstance(first[-1][1], TurnPaused)
        assert any(isinstance(event, PlanReady) for _, event in first)
        turn_id = planned.turn_id or ""
        assert not studio.turns.is_running(conversation)
        assert studio.turns.find(conversation, turn_id) is planned
        assert studio.turns.find(conversation, turn_id, "somebody") is None

        decided = studio.turns.decide(conversation, turn_id, Decision(run=True))
        second = [one async for one in decided.follow(decided.before)]
        assert second[0][0] == len(first) + 1
        assert isinstance(second[-1][1], TurnDone)
        found = studio.turns.find(conversation, turn_id)
        assert found is not None
        whole = [one async for one in found.follow()]
        assert whole == first + second
        for after in (1, len(first) - 1, len(first), len(whole) - 1, len(whole)):
            assert [one async for one in found.follow(after)] == whole[after:]
        started = [number for number, event in whole if isinstance(event, TurnStarted)]
        assert [found.goes_on_at(number) for number in started] == [False, True]


async def test_whoever_joins_a_turn_that_goes_on_hears_only_what_is_new(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path), sketch_pace_s=0.01) as studio:
        conversation = (await studio.conversations.create()).id
        request = TurnRequest(text="draw a red fox", settings=TurnSettings(confirm=True))
        planned = [event async for event in studio.run_turn(conversation, request)]
        assert isinstance(planned[0], TurnStarted)
        decided = studio.decide(conversation, planned[0].turn_id, Decision(run=True))
        first = await anext(decided)
        joined = [event async for event in studio.attach(conversation)]
        assert joined == [first, *[event async for event in decided]]
        assert not any(isinstance(event, PlanReady) for event in joined)


def test_what_was_told_is_let_go_ten_minutes_after_its_end() -> None:
    clock = Standing(0.0)
    recent = RecentTurns(clock)

    def ended(turn_id: str | None) -> LiveTurn:
        # Where a turn is kept, only what it is called counts.
        told: Any = SimpleNamespace(turn_id=turn_id, conversation_id="c", owner="anna")
        recent.keep(cast(LiveTurn, told))
        return cast(LiveTurn, told)

    one = ended("one")
    ended(None)
    clock.now = KEPT_S - 1
    other = ended("other")
    assert recent.find("c", "one", "anna") is one
    assert recent.find("c", "one", "ben") is recent.find("d", "one", "anna") is None
    clock.now = KEPT_S + 1
    assert recent.find("c", "one", "anna") is None
    assert recent.find("c", "other", "anna") is other
