"""Reviews under pictures: the score, the checklist, the attempts before."""

from __future__ import annotations

from typing import get_args

import pytest

from agent.components import SmartCanvas
from agent.events import PaintingStarted, PictureReady, PictureReviewed, TurnEvent
from agent.reviews import Check, ChecklistItem, Review
from tests.support.page_values import REVIEW, VIEW, WORDS, conversation, picture, turn
from webui.live import LiveTurn, advance_all
from webui.panels.canvas import canvas_html
from webui.render import Block, Card, render_live, render_turn
from webui.review_cards import earlier_attempts, folded_review, score_badge
from webui.words import LANGUAGES, load_words


def html(blocks: list[Block]) -> str:
    return "\n".join(block.html for block in blocks if isinstance(block, Card))


def test_a_reviewed_picture_shows_its_score_and_how_much_is_met() -> None:
    shown = folded_review(VIEW, picture("#1", REVIEW))
    assert ">86%</b>" in shown
    assert "2 of 3 wishes met" in shown
    assert shown.startswith("<details")
    assert " open" not in shown.partition(">")[0]


def test_the_checklist_says_what_is_met_and_why_in_words_too() -> None:
    shown = folded_review(VIEW, picture("#1", REVIEW))
    assert shown.count('aria-label="Met"') == 2
    assert shown.count('aria-label="Not met"') == 1
    assert "it stands at the bottom" in shown
    assert WORDS("check.aspect_ratio") in shown
    assert "<q>Slow mornings</q>" in shown
    assert "The title stands too low." in shown
    assert "upper third" in shown
    assert "Looked at by Flash." in shown


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("check", get_args(Check))
def test_every_check_of_the_studio_has_a_name(check: Check, language: str) -> None:
    words = load_words(language)
    review = Review(score=1.0, checklist=(ChecklistItem(wish="", is_met=True, check=check),))
    assert words(f"check.{check}") in folded_review(VIEW.__class__(words, "c1"), picture("#1", review))


def test_the_studios_own_checks_say_so() -> None:
    review = REVIEW.model_copy(update={"model_label": ""})
    assert "own checks, without a model" in folded_review(VIEW, picture("#1", review)).replace("&#x27;", "'")


def test_a_picture_that_nobody_looked_at_is_not_reviewed() -> None:
    assert folded_review(VIEW, picture("#1")) == ""
    shown = folded_review(VIEW, picture("#1", Review(score=None)))
    assert "Not reviewed" in shown
    assert "<details" not in shown
    assert "%" not in shown


@pytest.mark.parametrize(("score", "tone"), [(None, "unseen"), (0.69, "short"), (0.7, "passed"), (1.0, "passed")])
def test_the_badge_has_a_tone_and_an_icon_of_its_own(score: float | None, tone: str) -> None:
    badge = score_badge(WORDS, Review(score=score))
    assert f'class="score {tone}"' in badge
    others = [score_badge(WORDS, Review(score=other)) for other in (None, 0.1, 0.9)]
    assert sum(badge.partition("<svg")[2].partition("</svg>")[0] in other for other in others) == 1


def test_earlier_attempts_are_folded_under_the_best_each_with_its_score() -> None:
    low = picture("#1", REVIEW.model_copy(update={"score": 0.41}))
    canvas = SmartCanvas(handles=("#1b",), earlier=("#1", "#1c", "#9"))
    pictures = {"#1b": picture("#1b", REVIEW), "#1": low, "#1c": picture("#1c", Review(score=None))}
    shown = html(render_turn(VIEW, turn(canvas), pictures))
    folded = shown.partition('<details class="earlier">')[2]
    assert "2 earlier attempts" in folded
    assert [part in folded for part in ("41%", "Not reviewed", "86%")] == [True, True, False]
    assert 'data-act="view" data-arg="#1c"' in folded
    assert earlier_attempts(VIEW, [low]).count("1 earlier attempt<") == 1
    assert earlier_attempts(VIEW, []) == ""


def test_a_review_shows_at_once_while_the_turn_runs() -> None:
    asked = PaintingStarted(count=2, width=16, height=9, model_label="Pro")
    events: list[TurnEvent] = [
        asked,
        PictureReady(index=0, picture=picture("#1")),
        PictureReady(index=1, picture=picture("#2")),
    ]
    live = advance_all(LiveTurn("two foxes"), [*events, PictureReviewed(handle="#2", review=REVIEW)])
    shown = html(render_live(VIEW, live, 1))
    assert shown.count("86%</b>") == 1
    assert shown.index("86%") > shown.index('data-arg="#2"')


def test_a_better_attempt_stands_beside_the_first_until_the_record_decides() -> None:
    asked = PaintingStarted(count=1, width=16, height=9, model_label="Pro")
    first: list[TurnEvent] = [
        asked,
        PictureReady(index=0, picture=picture("#1")),
        PictureReviewed(handle="#1", review=REVIEW),
    ]
    again = advance_all(LiveTurn("a fox"), [*first, asked, PictureReady(index=0, picture=picture("#1b"))])
    assert [one.handle for one in again.pictures] == ["#1", "#1b"]
    unannounced = advance_all(LiveTurn("a fox"), [*first, PictureReady(index=0, picture=picture("#1b"))])
    assert [one.handle for one in unannounced.pictures] == ["#1", "#1b"]


@pytest.mark.parametrize("hostile", ['"><img src=x>', "<script>"])
def test_nothing_hostile_in_a_review_becomes_html(hostile: str) -> None:
    review = Review(
        score=0.5,
        checklist=(ChecklistItem(wish=hostile, is_met=False, why=hostile),),
        lettering=hostile,
        feedback=hostile,
        suggestions=(hostile,),
        model_label=hostile,
    )
    assert hostile not in folded_review(VIEW, picture("#1", review))


def test_the_stage_shows_the_whole_review() -> None:
    seen = picture("#1", REVIEW)
    shown = canvas_html(VIEW, conversation(pictures=(seen,)), seen)
    assert "Slow mornings" in shown
    assert '<section class="review whole">' in shown
    unscored = picture("#1", Review(score=None))
    assert 'class="found"' not in canvas_html(VIEW, conversation(pictures=(unscored,)), unscored)
    unseen = picture("#1")
    assert "review whole" not in canvas_html(VIEW, conversation(pictures=(unseen,)), unseen)
