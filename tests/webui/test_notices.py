"""Failures, interruptions and refusals in the thread: calm, honest, with a way on."""

from __future__ import annotations

import re

import pytest

from agent.components import FailureNote, InterruptedNote
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo
from tests.support.page_values import VIEW, turn
from webui.cards import View
from webui.notices import failure, interrupted, refused
from webui.render import Card, render_turn
from webui.words import LANGUAGES, load_words


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "No call was open, so nothing was charged in vain."),
        (1, "1 call may have been charged: its answer never came."),
        (3, "3 calls may have been charged: their answers never came."),
    ],
)
def test_an_interruption_says_how_many_calls_may_have_been_charged(count: int, said: str) -> None:
    note = turn(InterruptedNote(may_have_been_charged=count), state=TurnState.INTERRUPTED)
    shown = [block.html for block in render_turn(VIEW, note, {}) if isinstance(block, Card)][-1]
    assert said in shown
    assert 'data-act="retry" data-arg="t1"' in shown
    assert "Continue" in shown


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_failure_on_record_can_be_tried_again_and_reported(code: ErrorCode, language: str) -> None:
    words = load_words(language)
    note = turn(FailureNote(error=ErrorInfo(code=code)), state=TurnState.FAILED)
    shown = [block.html for block in render_turn(View(words, "c1"), note, {}) if isinstance(block, Card)][-1]
    assert 'data-act="retry" data-arg="t1"' in shown
    assert 'data-act="copy_report" data-arg="aivista/report/c1/t1.json"' in shown
    assert re.search(r'<a class="b" href="aivista/report/c1/t1.json" download>', shown)
    for key in ("report.copy", "report.download", "report.copied", "report.not_copied"):
        assert words(key) in shown


def test_an_answer_that_never_came_is_told_calmly_and_left_to_the_person() -> None:
    shown = failure(VIEW, ErrorInfo(code=ErrorCode.CALL_UNKNOWN, parameters={"model": "Pro"}), "t1")
    assert 'class="card calm"' in shown
    assert "An answer never came" in shown
    assert "You decide." in shown
    assert "may have been charged" in shown


def test_what_is_not_on_record_has_no_report() -> None:
    assert "report" not in failure(VIEW, ErrorInfo(code=ErrorCode.NOTHING_SENT), "")


def test_hostile_ids_and_sentences_stay_words() -> None:
    assert '"><script>' not in interrupted(VIEW, 0, '"><script>')
    assert "<script>" not in refused(VIEW.words, "<script>")
    assert '"><script>' not in failure(VIEW, ErrorInfo(code=ErrorCode.INTERNAL), '"><script>')
