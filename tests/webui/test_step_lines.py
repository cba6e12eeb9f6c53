"""What the agent does, in sentences."""

from __future__ import annotations

import pytest

from agent.events import Step, ThoughtLog
from tests.support.page_values import WORDS
from webui.step_lines import live_line, step_sentence, steps
from webui.usual_times import Usual
from webui.words import LANGUAGES, load_words


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("step", list(Step))
def test_every_step_stands_in_the_record_with_an_icon(step: Step, language: str) -> None:
    words = load_words(language)
    shown = steps(words, [ThoughtLog(step=step, at_s=1.26)], 3)
    assert "<li><svg" in shown
    assert f"<time>{words('receipt.seconds', seconds='1.3')}</time>" in shown


def test_one_and_several_pictures_read_differently() -> None:
    one, two = (ThoughtLog(step=Step.REVIEWING, parameters={"count": count}) for count in (1, 2))
    assert step_sentence(WORDS, one) == "Looking at the picture…"
    assert step_sentence(WORDS, two) == "Looking at 2 pictures…"


def test_a_servers_tool_is_named_with_its_server() -> None:
    line = ThoughtLog(step=Step.TOOL, parameters={"name": "read_file", "object": "a.txt", "server": "files"})
    assert step_sentence(WORDS, line) == "Using read_file of files…"


def test_the_score_reads_as_under_the_picture() -> None:
    line = ThoughtLog(step=Step.REVIEWED, parameters={"score": "0.86", "feedback": "The title is low."})
    assert step_sentence(WORDS, line) == "Review 86%: The title is low."
    assert "?" in step_sentence(WORDS, ThoughtLog(step=Step.REVIEWED, parameters={"score": "high"}))


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
