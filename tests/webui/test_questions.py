"""Questions of the agent in the page's own words, live and from the record."""

from __future__ import annotations

import re
from html import unescape
from typing import get_args

import pytest

from agent.components import AskBack
from agent.events import QuestionAsked
from agent.plans import Question
from tests.support.page_values import VIEW, turn
from webui.cards import View
from webui.live import LiveTurn, advance_all
from webui.questions import asked, question_sentence
from webui.render import Card, render_live, render_turn
from webui.words import LANGUAGES, load_words

QUESTIONS: tuple[Question, ...] = get_args(Question)
EN = View(load_words("en"), "c1")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_asked_in_every_language(question: Question, language: str) -> None:
    words = load_words(language)
    assert unescape(asked(View(words, "c1"), question, "", "")).startswith(
        f'<div class="ask"><p>{question_sentence(words, question, "")}'
    )


@pytest.mark.parametrize("question", QUESTIONS)
def test_live_and_stored_a_question_reads_the_same(question: Question) -> None:
    live = advance_all(LiveTurn("it"), [QuestionAsked(question=question, subject="#1")])
    stored = turn(AskBack(question=question, subject="#1"))
    shown = [block for block in render_live(VIEW, live, 0) if isinstance(block, Card) and "ask" in block.html]
    assert shown == [one for one in render_turn(VIEW, stored, {}) if isinstance(one, Card) and one.role != "user"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_for_an_empty_wish_there_are_examples_that_fill_the_composer(language: str) -> None:
    words = load_words(language)
    shown = asked(View(words, "c1"), "empty", "", "")
    examples = [unescape(text) for text in re.findall(r'data-act="say" data-arg="([^"]*)"', shown)]
    assert 2 <= len(examples) <= 3
    assert set(examples) <= set(words.table.values())


@pytest.mark.parametrize(
    ("question", "act", "label"), [("which_part", "edit", "Edit #7b"), ("no_mask", "view", "Open #7b on the canvas")]
)
def test_a_part_is_asked_for_with_the_picture_one_press_away(question: Question, act: str, label: str) -> None:
    shown = unescape(asked(EN, question, "", "#7b"))
    assert f'data-act="{act}" data-arg="#7b"' in shown
    assert label in shown


def test_a_picture_that_is_asked_about_is_the_one_to_press() -> None:
    shown = unescape(asked(EN, "which_part", "#3", "#7b"))
    assert "Which part of #3" in shown
    assert 'data-arg="#3"' in shown


@pytest.mark.parametrize("question", ["which_part", "no_mask"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_where_there_is_no_picture_one_can_be_chosen_and_no_other_is_spoken_of(
    question: Question, language: str
) -> None:
    shown = unescape(asked(View(load_words(language), "c1"), question, "", ""))
    assert 'data-paint="choose"' in shown
    assert "data-act" not in shown


def test_the_subject_is_named_when_there_is_one_and_cannot_become_html() -> None:
    assert "“it”" in question_sentence(load_words("en"), "unsure", "it")
    assert "“" not in question_sentence(load_words("en"), "unsure", "")
    assert "<script>" not in asked(EN, "unsure", "<script>", "")
