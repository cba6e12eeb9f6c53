"""A plan in the thread: fields while it waits, a folded line afterwards."""

from __future__ import annotations

import re
from dataclasses import replace

from agent.errors import ErrorCode, ErrorInfo
from tests.support.page_values import FLASH, PLAN, PRO, VIEW, WORDS
from webui.cards import View
from webui.plan_cards import open_plan


def options(shown: str, name: str) -> dict[str, str]:
    """Return the values of a field with the models that each is for."""
    field = shown.partition(f'<select name="{name}">')[2].partition("</select>")[0]
    return {value: models for value, _, models in re.findall(r'<option value="([^"]*)"( data-for="([^"]*)")?', field)}


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


def test_a_model_that_the_key_cannot_use_is_greyed_with_the_reason() -> None:
    problem = ErrorInfo(code=ErrorCode.BILLING_REQUIRED, parameters={"model": "Flash"})
    view = replace(VIEW, offers=(replace(FLASH, problem=problem), PRO))
    shown = open_plan(view, [PLAN], "t1")
    [flash] = re.findall(r'<option value="flash"[^>]*>', shown)
    assert " disabled" in flash
    assert "Please turn on billing" in flash
    [pro] = re.findall(r'<option value="pro"[^>]*>', shown)
    assert " disabled" not in pro
