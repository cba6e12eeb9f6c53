"""Pledges: what is about to be paid for counts once, from the moment it is promised until its answer has come."""

from __future__ import annotations

import pytest

from agent.workflow.pledges import Pledges


def promised(pledges: Pledges, owner: str = "ann", turn_id: str = "mine") -> dict[str, float]:
    return {name: round(one.price_usd, 6) for name, one in pledges.of_others(owner, turn_id).items()}


@pytest.fixture
def pledges() -> Pledges:
    """Half a dollar is pledged for a turn of ann's."""
    made = Pledges()
    made.give("a", "ann", "c1", 0.5)
    return made


def test_a_pledge_is_seen_by_the_owners_other_turns_alone(pledges: Pledges) -> None:
    assert promised(pledges) == {"a": 0.5}
    assert promised(pledges, turn_id="a") == promised(pledges, owner="bob") == {}


def test_what_is_asked_for_goes_on_counting_until_it_is_answered(pledges: Pledges) -> None:
    with pledges.asking("a", "picture 1", 0.2):
        assert promised(pledges) == {"a": 0.5}
        with pledges.asking("a", "picture 2", 0.2):
            assert promised(pledges) == {"a": 0.5}
        assert promised(pledges) == {"a": 0.3}
    assert promised(pledges) == {"a": 0.1}
    # It outlives its turn, and what was not asked for does not.
    with pledges.asking("a", "picture 3", 0.05):
        pledges.let_go("a")
        assert promised(pledges) == {"a": 0.05}
    assert promised(pledges) == {}
    # A turn without a pledge asks all the same.
    with pledges.asking("a", "picture 1", 0.2):
        assert promised(pledges) == {}
    pledges.let_go("a")
