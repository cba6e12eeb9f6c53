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


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_asked_in_every_language(question: Question, language: str) -> None:
    words = load_words(language)
    assert unescape(asked(words, question, "")).startswith(
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
    shown = asked(View(words, "c1").words, "empty", "")
    examples = [unescape(text) for text in re.findall(r'data-act="say" data-arg="([^"]*)"', shown)]
    assert 2 <= len(examples) <= 3
    assert set(examples) <= set(words.table.values())


def test_a_part_is_asked_for_with_a_hint_how_to_mark_a_picture() -> None:
    shown = unescape(asked(load_words("en"), "which_part", "#7b"))
    assert "Which part of #7b" in shown
    assert "Press Edit under a picture" in shown


def test_the_subject_is_named_when_there_is_one_and_cannot_become_html() -> None:
    assert "“it”" in question_sentence(load_words("en"), "unsure", "it")
    assert "“" not in question_sentence(load_words("en"), "unsure", "")
    assert "<script>" not in asked(load_words("en"), "unsure", "<script>")
