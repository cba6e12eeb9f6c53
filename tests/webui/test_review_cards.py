"""Reviews under pictures: what was asked and what is seen, the attempts before."""

from __future__ import annotations

import pytest

from agent.components import SmartCanvas
from agent.events import PaintingStarted, PictureReady, PictureReviewed, TurnEvent
from agent.reviews import AskedKind, ChecklistItem, Review
from tests.support.page_values import REVIEW, VIEW, WORDS, conversation, picture, turn
from webui.live import LiveTurn, advance_all
from webui.panels.canvas import canvas_html
from webui.render import Block, Card, render_live, render_turn
from webui.review_cards import earlier_attempts, folded_review, review_badge
from webui.words import LANGUAGES, load_words


def html(blocks: list[Block]) -> str:
    return "\n".join(block.html for block in blocks if isinstance(block, Card))


def test_a_reviewed_picture_says_how_much_of_what_was_asked_for_is_there() -> None:
    shown = folded_review(VIEW, picture("#1", REVIEW))
    assert ">2 of 3</b>" in shown
    assert "of what you asked for is in the picture" in shown
    assert shown.startswith("<details")
    assert " open" not in shown.partition(">")[0]


@pytest.mark.parametrize("score", [0.0, 0.86, 1.0])
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_score_is_ever_shown(score: float, language: str) -> None:
    view = VIEW.__class__(load_words(language), "c1")
    assert "%" not in folded_review(view, picture("#1", REVIEW.model_copy(update={"score": score})))


def test_each_row_says_what_was_asked_and_what_is_seen() -> None:
    shown = folded_review(VIEW, picture("#1", REVIEW))
    assert shown.count('aria-label="As asked"') == 2
    assert shown.count('aria-label="Missing or different"') == 1
    assert "<q>in the snow</q> <small>deep snow</small>" in shown
    assert "<i>subject</i> <q>a red fox</q>" in shown
    assert "it stands at the bottom" in shown
    assert "<q>Slow mornings</q>" in shown
    assert "The title stands too low." in shown
    assert "upper third" in shown
    assert "Looked at by Flash." in shown


def test_what_nobody_looked_at_is_not_counted_as_there() -> None:
    unlooked = ChecklistItem(wish="a straw hat", is_met=None, kind=AskedKind.ATTRIBUTE)
    shown = folded_review(VIEW, picture("#1", REVIEW.model_copy(update={"checklist": (*REVIEW.checklist, unlooked)})))
    assert ">2 of 3</b>" in shown
    assert "1 not looked at" in shown
    assert '<li class="unlooked">' in shown
    assert "<q>a straw hat</q> <small>Not looked at</small>" in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_checks_of_the_first_records_are_shown_as_what_they_are(language: str) -> None:
    words = load_words(language)
    items = tuple(ChecklistItem(wish="", is_met=True, check=check) for check in ("aspect_ratio", "size"))
    old = Review(score=1.0, checklist=items, feedback="✓ 16:9 · ✓ 1376×768")
    shown = folded_review(VIEW.__class__(words, "c1"), picture("#1", old))
    names = words("did.join").join([words("check.aspect_ratio"), words("check.size")])
    assert words("review.checked", names=names) in shown
    assert words("review.by_studio") in shown
    assert "%" not in shown
    assert 'class="score unseen"' in shown


def test_a_picture_that_nobody_looked_at_is_not_reviewed() -> None:
    assert folded_review(VIEW, picture("#1")) == ""
    shown = folded_review(VIEW, picture("#1", Review(score=None)))
    assert "Not reviewed" in shown
    assert "<details" not in shown
    assert "%" not in shown


MISSING = (ChecklistItem(wish="a hat", is_met=False),)


@pytest.mark.parametrize(
    ("review", "tone"),
    [
        (Review(), "unseen"),
        (Review(score=0.69, model_label="Flash"), "short"),
        (Review(score=0.9, checklist=MISSING, model_label="Flash"), "short"),
        (Review(score=0.7, model_label="Flash"), "passed"),
    ],
)
def test_the_badge_has_a_tone_and_an_icon_of_its_own(review: Review, tone: str) -> None:
    assert f'class="score {tone}"' in review_badge(WORDS, review)


def test_earlier_attempts_are_folded_under_the_best_each_with_what_was_found() -> None:
    low = picture("#1", REVIEW.model_copy(update={"score": 0.41, "checklist": MISSING}))
    canvas = SmartCanvas(handles=("#1b",), earlier=("#1", "#1c", "#9"))
    pictures = {"#1b": picture("#1b", REVIEW), "#1": low, "#1c": picture("#1c", Review(score=None))}
    shown = html(render_turn(VIEW, turn(canvas), pictures))
    folded = shown.partition('<details class="earlier">')[2]
    assert "2 earlier attempts" in folded
    assert [part in folded for part in ("0 of 1", "Not reviewed", "2 of 3")] == [True, True, False]
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
    assert shown.count("2 of 3</b>") == 1
    assert shown.index("2 of 3") > shown.index('data-arg="#2"')


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
