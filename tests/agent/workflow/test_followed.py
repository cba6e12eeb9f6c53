"""A turn is followed from any of its events on: while it runs, over a rest, and for ten minutes after its end."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agent import (
    Decision,
    LiveTurn,
    PlanReady,
    Settings,
    Studio,
    TurnDone,
    TurnPaused,
    TurnRequest,
    TurnSettings,
    TurnStarted,
)
from tests.adapters.calls import KEPT_S, RecentTurns
from tests.support.clock import Standing


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


async def test_a_decision_that_comes_too_late_is_no_part_of_the_turn(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        conversation = (await studio.conversations.create()).id
        drawn = studio.turns.start(conversation, TurnRequest(text="draw a red fox"))
        told = [one async for one in drawn.follow()]
        late = studio.turns.decide(conversation, drawn.turn_id or "", Decision(run=True))
        assert [type(event).__name__ async for _, event in late.follow(late.before)] == ["TurnFailed"]
        found = studio.turns.find(conversation, drawn.turn_id or "")
        assert found is not None
        assert [one async for one in found.follow()] == told


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
    clock.now = KEPT_S
    other = ended("other")
    assert recent.find("c", "one", "anna") is one
    assert recent.find("c", "one", "ben") is recent.find("d", "one", "anna") is None
    clock.now = KEPT_S + 1
    assert recent.find("c", "one", "anna") is None
    assert recent.find("c", "other", "anna") is other
