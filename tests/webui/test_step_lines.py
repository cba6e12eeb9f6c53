"""What the agent does, in sentences."""

from __future__ import annotations

import pytest

from agent.events import Step, ThoughtLog
from tests.support.page_values import WORDS
from webui.step_lines import live_line, step_rows
from webui.usual_times import Usual


def record(*lines: tuple[Step, float, dict[str, int]] | tuple[Step, float]) -> list[ThoughtLog]:
    return [ThoughtLog(step=one[0], at_s=one[1], parameters={**one[2]} if len(one) > 2 else {}) for one in lines]


def test_the_times_are_those_of_each_piece_of_work_and_add_up_to_the_turn() -> None:
    lines = record(
        (Step.THINKING, 0.02),
        (Step.UNDERSTOOD, 2.0),
        (Step.PAINTING, 2.1),
        (Step.PAINTED, 14.1),
        (Step.REVIEWING, 14.2),
        (Step.REVIEWED, 17.0),
    )
    rows = step_rows(lines, 17.5)
    assert [(row.line.step, row.seconds) for row in rows] == [
        (Step.THINKING, 2.1),
        (Step.UNDERSTOOD, None),
        (Step.PAINTED, pytest.approx(12.1)),
        (Step.REVIEWED, pytest.approx(3.3)),
    ]
    assert sum(row.seconds or 0 for row in rows) == pytest.approx(17.5)


def test_tools_that_ran_side_by_side_share_one_time() -> None:
    lines = record((Step.THINKING, 0.0), (Step.TOOL, 2.0), (Step.TOOL, 2.0), (Step.THINKING, 5.0))
    assert [row.seconds for row in step_rows(lines, 6.0)] == [2.0, None, 3.0, 1.0]


def test_work_that_was_left_behind_by_other_work_is_not_called_done() -> None:
    lines = record((Step.THINKING, 0.0), (Step.SEARCHING, 1.0), (Step.SEARCHING, 3.0), (Step.SEARCHED, 5.0))
    assert [row.ending for row in step_rows(lines, 6)] == ["done", "failed", "done"]


def test_the_seconds_until_another_try_can_be_counted_down_by_the_page() -> None:
    line = ThoughtLog(step=Step.RETRYING, parameters={"seconds": 12}, at_s=4.5)
    shown = live_line(WORDS, line, 6)
    assert 'data-down="12" data-at="4.500">12</b>' in shown
    assert "Trying again in <b" in shown
    assert 'data-s="6"' in shown


@pytest.mark.parametrize("seconds", ["soon", -3, 0.2])
def test_a_countdown_never_counts_nonsense(seconds: str | float) -> None:
    line = ThoughtLog(step=Step.RETRYING, parameters={"seconds": seconds})
    assert 'data-down="0"' in live_line(WORDS, line, 0)


def test_only_a_wait_counts_down() -> None:
    assert "data-down" not in live_line(WORDS, ThoughtLog(step=Step.THINKING), 0)
    assert "data-down" not in live_line(WORDS, None, 0)


def test_beside_the_seconds_stands_how_long_is_usual_and_whose_pictures_told() -> None:
    line = ThoughtLog(step=Step.PAINTING, parameters={"count": 1, "model": "Flash"})
    own = live_line(WORDS, line, 6, usual=Usual(17.4, is_own=True))
    assert '<small data-usual="17" data-late="longer than usual">usually about 17 s</small>' in own
    published = live_line(WORDS, line, 6, usual=Usual(15, is_own=False, begun_s=8))
    assert '<small data-usual="23" data-late="longer than usual">a picture takes about 15 s</small>' in published
    assert "<small" not in live_line(WORDS, line, 6)
