"""A plan in the thread: fields while it waits, a folded line afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape

import pytest

from agent.components import PlanCard
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.events import PlanReady, TurnPaused, TurnStarted
from agent.plans import ModelPrice
from agent.providers.catalogue import load_catalogue
from tests.support.page_values import FLASH, OFFERS, PLAN, PRO, VIEW, WORDS, turn
from webui.cards import View
from webui.live import LiveTurn, advance_all, resumed
from webui.offers import image_offers
from webui.plan_cards import closed_plan, open_plan
from webui.render import Block, Card, render_live, render_turn
from webui.words import LANGUAGES, load_words


def html(blocks: list[Block]) -> str:
    return "\n".join(block.html for block in blocks if isinstance(block, Card))


def options(shown: str, name: str) -> dict[str, str]:
    """Return the values of a field with the models that each is for."""
    field = shown.partition(f'<select name="{name}">')[2].partition("</select>")[0]
    return {value: models for value, _, models in re.findall(r'<option value="([^"]*)"( data-for="([^"]*)")?', field)}


def test_every_value_of_a_plan_that_waits_stands_in_a_field() -> None:
    shown = open_plan(VIEW, [PLAN], "t1")
    assert ">A red fox in snow</textarea>" in shown
    chosen = dict(re.findall(r'<select name="(\w+)">.*?<option value="([^"]*)"[^>]* selected', shown))
    assert chosen == {"model": "pro", "aspect_ratio": "16:9", "resolution": "2K", "number_of_images": "2"}
    assert 'data-act="run_plan" data-arg="t1"' in shown
    assert 'data-act="drop_plan" data-arg="t1"' in shown
    assert "≈ $0.27 · 31 s" in shown
    assert "media/c1/1?size=" in shown
    assert "media/c1/2?size=" in shown


def test_a_field_offers_what_the_models_offer_and_says_which_obeys_it() -> None:
    shown = open_plan(VIEW, [PLAN], "t1")
    assert options(shown, "model") == {"flash": "", "pro": ""}
    assert options(shown, "aspect_ratio") == {
        "1:1": "flash pro",
        "3:2": "flash pro",
        "16:9": "flash pro",
        "1:8": "flash",
    }
    assert options(shown, "resolution") == {"512": "flash", "1K": "flash pro", "2K": "flash pro", "4K": "pro"}
    assert list(options(shown, "number_of_images")) == ["1", "2", "3", "4"]


def test_where_one_model_paints_there_is_no_choice_of_model_and_a_sketch_has_no_size() -> None:
    plan = PLAN.model_copy(update={"model": "flash", "model_label": "Sketch", "resolution": None, "price_usd": 0.0})
    shown = open_plan(View(WORDS, "c1", (PRO,)), [plan], "t1")
    assert options(shown, "model") == {}
    assert options(shown, "resolution") == {}
    assert ">Sketch</b>" in shown
    assert "free · 31 s" in shown


def test_a_value_that_no_model_offers_any_more_is_still_shown() -> None:
    shown = open_plan(VIEW, [PLAN.model_copy(update={"aspect_ratio": "5:4"})], "t1")
    assert "5:4" in options(shown, "aspect_ratio")


def test_several_requests_stand_in_one_card_each_with_its_price() -> None:
    shown = open_plan(VIEW, [PLAN, PLAN.model_copy(update={"call": 3, "price_usd": 0.04, "seconds": 9})], "t1")
    assert shown.count("<textarea") == 2
    assert re.findall(r'<fieldset data-call="(\d)"', shown) == ["0", "3"]
    assert "Request 2 <small>≈ $0.04 · 9 s</small>" in shown
    assert "≈ $0.31</span>" in shown
    assert shown.count('data-act="run_plan"') == 1


def answered(blocks: Sequence[Block]) -> str:
    """Return the cards beneath the person's own words."""
    return html([block for block in blocks if block.role != "user"])


@pytest.mark.parametrize("hostile", ["</textarea><script>", '"><img src=x>'])
def test_nothing_hostile_in_a_plan_becomes_html(hostile: str) -> None:
    plan = PLAN.model_copy(update={"prompt": hostile, "model_label": hostile, "aspect_ratio": hostile})
    for shown in (open_plan(VIEW, [plan], "t1"), closed_plan(VIEW, [plan], was_run=True)):
        assert hostile not in shown
        assert hostile in unescape(shown)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("state", ["run", "dropped"])
def test_a_plan_that_was_decided_about_is_folded_and_has_no_fields(language: str, state: str) -> None:
    card = PlanCard.model_validate({"plans": (PLAN,), "state": state})
    words = load_words(language)
    shown = answered(render_turn(View(words, "c1", OFFERS), turn(card), {}))
    assert words(f"plan.was_{state}") in shown
    assert "Pro · 16:9 · 2K · ×2" in shown
    assert "A red fox in snow" in shown
    assert not re.search("<(textarea|select|button)", shown)


@pytest.mark.parametrize(
    ("state", "sign"),
    [
        (TurnState.WAITING, 'data-act="run_plan"'),
        (TurnState.RUNNING, WORDS("plan.was_run")),
        (TurnState.STOPPED, WORDS("plan.was_dropped")),
    ],
)
def test_only_a_turn_that_waits_lets_its_plan_be_decided(state: TurnState, sign: str) -> None:
    shown = html(render_turn(VIEW, turn(PlanCard(plans=(PLAN,)), state=state), {}))
    assert sign in shown
    assert ("data-act" in shown) == (state is TurnState.WAITING)


def test_a_live_plan_can_be_decided_when_the_turn_rests_with_it() -> None:
    live = advance_all(LiveTurn("a fox"), [TurnStarted(turn_id="t1"), PlanReady(plans=(PLAN,))])
    assert html(render_live(VIEW, live, 1)).count(" disabled>") == 2
    paused = advance_all(live, [TurnPaused(turn_id="t1")])
    shown = html(render_live(VIEW, paused, 1))
    assert " disabled>" not in shown
    assert 'class="live"' not in shown


def test_a_turn_that_goes_on_shows_the_plan_as_it_was_decided() -> None:
    waiting = turn(PlanCard(plans=(PLAN,)), state=TurnState.WAITING)
    changed = PLAN.model_copy(update={"aspect_ratio": "1:1"})
    shown = answered(render_live(VIEW, resumed(waiting, PlanCard(plans=(changed,), state="run")), 0))
    assert "Pro · 1:1 · 2K · ×2" in shown
    assert "<textarea" not in shown


def test_the_catalogue_says_what_is_offered() -> None:
    catalogue = load_catalogue()
    gemini = image_offers(catalogue, "gemini")
    assert [one.name for one in gemini] == ["flash", "pro"]
    assert "4K" in gemini[1].resolutions
    assert [one.label for one in image_offers(catalogue, "sketch")] == ["Sketch"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_plan_for_both_models_says_what_each_would_cost(language: str) -> None:
    prices = (ModelPrice(model_label="Flash", price_usd=0.08), ModelPrice(model_label="Pro", price_usd=0.27))
    update = {"model": "both", "model_label": "Flash + Pro", "prices": prices, "price_usd": 0.35}
    both = PLAN.model_copy(update=update)
    shown = open_plan(View(load_words(language), "c1", OFFERS), [both], "t1")
    assert "≈ $0.35 · Flash $0.08 + Pro $0.27" in shown
    assert set(options(shown, "model")) == {"flash", "pro", "both"}
    assert '<option value="both" selected>Flash + Pro</option>' in shown
    assert "Flash + Pro" in closed_plan(View(load_words(language), "c1", OFFERS), [both], was_run=True)


def test_a_model_that_the_key_cannot_use_is_greyed_with_the_reason() -> None:
    problem = ErrorInfo(code=ErrorCode.BILLING_REQUIRED, parameters={"model": "Flash"})
    view = replace(VIEW, offers=(replace(FLASH, problem=problem), PRO))
    shown = open_plan(view, [PLAN], "t1")
    [flash] = re.findall(r'<option value="flash"[^>]*>', shown)
    assert " disabled" in flash
    assert "Please turn on billing" in flash
    [pro] = re.findall(r'<option value="pro"[^>]*>', shown)
    assert " disabled" not in pro
