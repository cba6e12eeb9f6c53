"""Pledges: what is about to be paid for counts once, from the moment it is promised until its answer has come."""

from __future__ import annotations

import pytest

from agent.workflow.pledges import Pledges


def promised(pledges: Pledges, owner: str = "ann", turn_id: str = "mine") -> dict[str, float]:
    return {name: round(one.price_usd, 6) for name, one in pledges.of_others(owner, turn_id).items()}


def test_a_pledge_is_seen_by_the_owners_other_turns_alone() -> None:
    pledges = Pledges()
    pledges.give("a", "ann", "c1", 0.5)
    assert promised(pledges) == {"a": 0.5}
    assert promised(pledges, turn_id="a") == {}
    assert promised(pledges, owner="bob") == {}


def test_what_is_asked_for_goes_on_counting_until_it_is_answered() -> None:
    pledges = Pledges()
    pledges.give("a", "ann", "c1", 0.5)
    with pledges.asking("a", "picture 1", 0.2):
        assert promised(pledges) == {"a": 0.5}
        with pledges.asking("a", "picture 2", 0.2):
            assert promised(pledges) == {"a": 0.5}
        assert promised(pledges) == {"a": 0.3}
    assert promised(pledges) == {"a": 0.1}


def test_what_was_asked_for_outlives_its_turn_and_what_was_not_does_not() -> None:
    pledges = Pledges()
    pledges.give("a", "ann", "c1", 0.5)
    with pledges.asking("a", "picture 1", 0.2):
        pledges.let_go("a")
        assert promised(pledges) == {"a": 0.2}
    assert promised(pledges) == {}


def test_a_call_that_costs_more_than_was_pledged_takes_what_is_left() -> None:
    pledges = Pledges()
    pledges.give("a", "ann", "c1", 0.1)
    with pledges.asking("a", "picture 1", 0.4):
        assert promised(pledges) == {"a": 0.1}
    assert promised(pledges) == {}


def test_another_round_is_pledged_in_place_of_what_is_left_of_the_last() -> None:
    pledges = Pledges()
    pledges.give("a", "ann", "c1", 0.1)
    pledges.give("a", "ann", "c1", 0.3)
    assert promised(pledges) == {"a": 0.3}
    pledges.give("a", "ann", "c1", 0.0)
    assert promised(pledges) == {}


def test_a_call_that_fails_is_no_longer_counted_and_whoever_was_reading_can_tell() -> None:
    pledges = Pledges()
    pledges.give("a", "ann", "c1", 0.2)
    before = pledges.fulfilled
    with pytest.raises(ValueError, match="no picture"), pledges.asking("a", "picture 1", 0.2):
        raise ValueError("no picture")
    assert promised(pledges) == {}
    assert pledges.fulfilled > before


def test_a_turn_without_a_pledge_asks_all_the_same() -> None:
    pledges = Pledges()
    with pledges.asking("a", "picture 1", 0.2):
        assert promised(pledges) == {}
    pledges.let_go("a")


async def test_the_turns_of_one_owner_are_weighed_one_at_a_time() -> None:
    pledges = Pledges()
    async with pledges.weighing("ann"):
        assert pledges.weighing("ann").locked()
        async with pledges.weighing("bob"):
            pass
