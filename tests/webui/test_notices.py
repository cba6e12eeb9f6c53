"""Failures, interruptions and refusals in the thread: calm, honest, with a way on."""

from __future__ import annotations

import re
from html import unescape

import pytest

from agent.components import FailureNote, InterruptedNote
from agent.conversation import TurnState
from agent.errors import Charge, ErrorCode, ErrorInfo
from agent.pictures import Blank
from tests.support.page_values import VIEW, conversation, picture, turn
from webui.cards import View
from webui.notices import failure, failure_sentence, interrupted, refused
from webui.panels.canvas import canvas_html
from webui.render import Card, figure, render_turn
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
def test_every_failure_on_record_can_be_tried_again_and_reported(language: str) -> None:
    words = load_words(language)
    wanted = (
        'data-act="retry" data-arg="t1"',
        'data-act="copy_report" data-arg="aivista/report/c1/t1.json"',
        '<a class="b" href="aivista/report/c1/t1.json" download>',
        *(words(key) for key in ("report.copy", "report.download", "report.copied", "report.not_copied")),
    )
    missing = []
    for code in ErrorCode:
        note = turn(FailureNote(error=ErrorInfo(code=code)), state=TurnState.FAILED)
        shown = [block.html for block in render_turn(View(words, "c1"), note, {}) if isinstance(block, Card)][-1]
        missing += [(code, text) for text in wanted if text not in shown]
    assert missing == []


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


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("code", "side"),
    [
        (ErrorCode.PROMPT_BLOCKED, "input"),
        (ErrorCode.PICTURE_BLOCKED, "output"),
        (ErrorCode.ANSWER_BLOCKED, "output"),
        (ErrorCode.PICTURE_RECITATION, "output"),
    ],
)
def test_a_refusal_says_who_refused_which_side_and_offers_other_words(
    code: ErrorCode, side: str, language: str
) -> None:
    words = load_words(language)
    offers = ("A fox as a paper cut-out", 'a "<fox>"')
    shown = failure(View(words, "c1"), ErrorInfo(code=code, parameters={"reason": "IMAGE_SAFETY"}), "t1", offers)
    assert words(f"failure.title_refused_{side}") in unescape(shown)
    assert words(f"failure.refused_{side}", service="Google") in unescape(shown)
    said = [unescape(one) for one in re.findall(r'data-act="say" data-arg="([^"]*)"', shown)]
    assert said == list(offers)
    assert words("failure.other_words_hint") in shown
    assert "<fox>" not in shown
    # With other words at hand, the same once more is not what stands first, nor said to help.
    assert re.search(r'class="b line" data-act="retry"', shown)
    assert words("failure.again_helps") not in shown
    assert words("failure.again_refused") in unescape(shown)


def test_every_failure_on_record_says_whether_the_same_can_help() -> None:
    sentences = {name: VIEW.words(f"failure.again_{name}") for name in ("helps", "same", "refused")}
    infos = [ErrorInfo(code=code) for code in ErrorCode]
    wrong = {}
    for info in infos:
        shown = unescape(failure(VIEW, info, "t1"))
        said = [name for name, sentence in sentences.items() if sentence in shown]
        expected = "helps" if info.can_retry else "refused" if info.refused else "same"
        if said != ([] if info.code is ErrorCode.CALL_UNKNOWN else [expected]):
            wrong[info.code] = said
    assert wrong == {}
    assert [info.code for info in infos if sentences["helps"] in failure(VIEW, info, "")] == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("charge", list(Charge))
def test_a_failed_call_says_whether_it_was_charged(charge: Charge, language: str) -> None:
    words = load_words(language)
    info = ErrorInfo(code=ErrorCode.OVERLOADED, charge=charge)
    assert words(f"failure.charged_{charge}") in failure(View(words, "c1"), info, "t1")


def test_what_was_no_call_of_a_model_says_nothing_of_charges() -> None:
    shown = failure(VIEW, ErrorInfo(code=ErrorCode.TEXT_TOO_LONG), "t1")
    assert VIEW.words("failure.charged") not in shown


def test_a_failure_of_the_key_leads_to_where_it_is_mended() -> None:
    shown = failure(VIEW, ErrorInfo(code=ErrorCode.BILLING_REQUIRED, parameters={"model": "Pro"}), "t1")
    assert '<a href="https://ai.studio/projects"' in shown
    assert re.search(r'class="b solid" data-act="settings"', shown)
    assert re.search(r'class="b line" data-act="retry"', shown)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("blank", list(Blank))
def test_an_empty_picture_is_covered_told_and_kept(blank: Blank, language: str) -> None:
    view = View(load_words(language), "c1")
    empty = picture("#1").model_copy(update={"blank": blank})
    shown = figure(view, empty)
    assert view.words(f"blank.{blank}") in shown
    assert view.words(f"blank.{blank}") in canvas_html(view, conversation(pictures=(empty,)), empty)
    assert view.words("blank.note") in unescape(shown)
    assert 'data-act="retry" data-arg="t1"' in shown
    assert "download" in shown
    assert "blank-" not in figure(view, picture("#1"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_providers_reason_is_told_in_words_beside_its_code(language: str) -> None:
    words = load_words(language)
    known = failure_sentence(words, ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
    assert words("reason.safety") in known
    assert "IMAGE_SAFETY" in known
    other = failure_sentence(words, ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "NEW_ONE"}))
    assert "NEW_ONE" in other
