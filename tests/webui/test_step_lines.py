"""What the agent does, in sentences."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from agent.components import Outcome
from agent.events import Step, ThoughtLog
from tests.support.page_values import WORDS
from webui.step_lines import live_line, step_rows, step_sentence, steps
from webui.usual_times import Usual
from webui.words import LANGUAGES, load_words


def test_every_step_stands_in_the_record_with_an_icon() -> None:
    shown = {
        case: steps(load_words(case[0]), [ThoughtLog(step=case[1], at_s=1.26)], 3, case[2])
        for case in product(LANGUAGES, Step, get_args(Outcome))
    }
    assert {case: html for case, html in shown.items() if "<li><svg" not in html or "…</span>" in html} == {}


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


def test_a_record_whose_clock_began_anew_shows_no_times() -> None:
    lines = record((Step.THINKING, 0.0), (Step.PAINTING, 9.0), (Step.PAINTING, 0.1), (Step.PAINTED, 7.0))
    assert "<time>" not in steps(WORDS, lines, 7).partition("<ol>")[2]


def test_a_failed_turn_does_not_say_that_it_painted() -> None:
    lines = record((Step.THINKING, 0.0), (Step.UNDERSTOOD, 2.0), (Step.PAINTING, 2.0, {"count": 1}))
    shown = steps(WORDS, lines, 9, "failed")
    assert "Planned, understood, painting failed" in shown
    assert "painted" not in shown.lower()
    assert "Painting failed</span>" in shown


def test_a_stopped_turn_says_what_was_stopped() -> None:
    assert "planning was stopped" in steps(WORDS, record((Step.THINKING, 0.0)), 2, "stopped").lower()


def test_work_that_was_left_behind_by_other_work_is_not_called_done() -> None:
    lines = record((Step.THINKING, 0.0), (Step.SEARCHING, 1.0), (Step.SEARCHING, 3.0), (Step.SEARCHED, 5.0))
    assert [row.ending for row in step_rows(lines, 6)] == ["done", "failed", "done"]


def test_of_several_pictures_the_record_tells_how_many_came() -> None:
    lines = record((Step.PAINTING, 0.0, {"count": 3}), (Step.PAINTED, 9.0, {"count": 2}))
    assert "Painted 2 of 3 pictures" in steps(WORDS, lines, 9)


@pytest.mark.parametrize(
    ("facts", "sources", "said"),
    [
        (1, 1, "Found 1 fact in 1 source"),
        (2, 1, "Found 2 facts in 1 source"),
        (0, 3, "Found no facts in 3 sources"),
    ],
)
def test_what_a_search_found_is_counted_in_words(facts: int, sources: int, said: str) -> None:
    line = ThoughtLog(step=Step.SEARCHED, parameters={"facts": facts, "sources": sources})
    assert step_sentence(WORDS, line) == said


def test_one_and_several_pictures_read_differently() -> None:
    one, two = (ThoughtLog(step=Step.REVIEWING, parameters={"count": count}) for count in (1, 2))
    assert step_sentence(WORDS, one) == "Looking at the picture…"
    assert step_sentence(WORDS, two) == "Looking at 2 pictures…"


def test_a_servers_tool_is_named_with_its_server() -> None:
    line = ThoughtLog(step=Step.TOOL, parameters={"name": "read_file", "object": "a.txt", "server": "files"})
    assert step_sentence(WORDS, line) == "Using read_file of files…"


def test_a_review_is_told_without_a_score() -> None:
    counts = {"met": 2, "count": 3, "feedback": "The title is low."}
    assert step_sentence(WORDS, ThoughtLog(step=Step.REVIEWED, parameters=counts)) == (
        "Review: 2 of 3 as asked. The title is low."
    )
    old = ThoughtLog(step=Step.REVIEWED, parameters={"score": "1.00", "feedback": "✓ 16:9 · ✓ 1376×768"})
    assert step_sentence(WORDS, old) == "Review: ✓ 16:9 · ✓ 1376×768"


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


def test_a_step_cannot_become_html() -> None:
    line = ThoughtLog(step=Step.UNDERSTOOD, parameters={"wish": "<script>"})
    assert "<script>" not in live_line(WORDS, line, 0)
    assert "<script>" not in steps(WORDS, [line], 1)


@pytest.mark.parametrize(("count", "said"), [(1, "the message before this one"), (2, "2 messages go first")])
def test_whoever_waits_in_line_is_told_how_many_go_first(count: int, said: str) -> None:
    assert said in step_sentence(WORDS, ThoughtLog(step=Step.WAITING, parameters={"count": count}))


def test_beside_the_seconds_stands_how_long_is_usual_and_whose_pictures_told() -> None:
    line = ThoughtLog(step=Step.PAINTING, parameters={"count": 1, "model": "Flash"})
    own = live_line(WORDS, line, 6, usual=Usual(17.4, is_own=True))
    assert '<small data-usual="17" data-late="longer than usual">usually about 17 s</small>' in own
    published = live_line(WORDS, line, 6, usual=Usual(15, is_own=False, begun_s=8))
    assert '<small data-usual="23" data-late="longer than usual">a picture takes about 15 s</small>' in published
    assert "<small" not in live_line(WORDS, line, 6)
