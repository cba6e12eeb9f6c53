"""Models that a key cannot use: told with the reason and greyed; what was chosen stays chosen."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

from agent.errors import ErrorCode, ErrorInfo
from agent.providers.catalogue import ModelRole, load_catalogue
from agent.providers.key_check import KeyDiagnosis, ModelStanding
from webui.model_limits import NONE, limits_html, limits_of
from webui.offers import image_offers
from webui.words import LANGUAGES, load_words

CATALOGUE = load_catalogue()
WORDS = load_words("en")


def diagnosis(code: ErrorCode, *roles: ModelRole) -> KeyDiagnosis:
    """Return what is known of a key that fails so for the models of these roles."""
    standings = []
    for role in (ModelRole.FLASH, ModelRole.THINKING, ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO):
        model = CATALOGUE.model(role, "gemini")
        problem = ErrorInfo(code=code, parameters={"model": model.label}) if role in roles else None
        standings.append(ModelStanding(role=role, model_id=model.id, label=model.label, problem=problem))
    return KeyDiagnosis(models=tuple(standings))


NO_PRO = diagnosis(ErrorCode.BILLING_REQUIRED, ModelRole.IMAGE_PRO)


def test_a_key_that_can_use_everything_limits_nothing() -> None:
    assert limits_of(CATALOGUE, None) == NONE
    assert limits_of(CATALOGUE, diagnosis(ErrorCode.BILLING_REQUIRED)) == NONE
    assert limits_html(WORDS, NONE) == ""


@pytest.mark.parametrize("code", [ErrorCode.RATE_LIMITED, ErrorCode.OVERLOADED, ErrorCode.PROVIDER_ERROR])
def test_what_passes_by_itself_greys_nothing(code: ErrorCode) -> None:
    assert limits_of(CATALOGUE, diagnosis(code, ModelRole.IMAGE_PRO)) == NONE


def test_a_model_that_is_missing_takes_side_by_side_with_it() -> None:
    limits = limits_of(CATALOGUE, NO_PRO)
    assert {chip: set(missing) for chip, missing in limits.items()} == {"image_model": {"pro", "both"}}


def test_a_key_that_is_no_good_limits_every_model_and_a_network_that_is_down_none() -> None:
    bad = KeyDiagnosis(problem=ErrorInfo(code=ErrorCode.KEY_LEAKED))
    assert {chip: set(missing) for chip, missing in limits_of(CATALOGUE, bad).items()} == {
        "text_model": {"flash", "thinking"},
        "image_model": {"flash", "pro", "both"},
    }
    down = KeyDiagnosis(problem=ErrorInfo(code=ErrorCode.CONNECTION_FAILED))
    assert limits_of(CATALOGUE, down) == NONE


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_note_says_why_in_a_sentence_and_tells_the_script_by_the_names_shown(language: str) -> None:
    words = load_words(language)
    shown = limits_html(words, limits_of(CATALOGUE, NO_PRO))
    [written] = re.findall(r'data-limits="([^"]*)"', shown)
    reasons = json.loads(unescape(written))
    assert set(reasons) == {"image_model"}
    assert set(reasons["image_model"]) == {words("composer.pro"), words("composer.flash_pro")}
    why = words.error(ErrorInfo(code=ErrorCode.BILLING_REQUIRED, parameters={"model": words("composer.pro")}))
    assert reasons["image_model"][words("composer.pro")] == why
    name = words("limits.name", chip=words("composer.image_model"), model=words("composer.pro"))
    assert name in unescape(shown)
    assert 'data-act="settings"' in shown
    assert "ai.studio/projects" in shown


def test_models_with_one_reason_share_a_sentence() -> None:
    roles = (ModelRole.THINKING, ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO)
    shown = limits_html(WORDS, limits_of(CATALOGUE, diagnosis(ErrorCode.BILLING_REQUIRED, *roles)))
    assert shown.count("has no quota for Text Thinking, Image Flash, Image Pro.") == 1


def test_an_offer_of_a_plan_says_why_it_cannot_be_taken() -> None:
    flash, pro = image_offers(CATALOGUE, "gemini", NO_PRO)
    assert flash.problem is None
    assert pro.problem is not None
    assert pro.problem.code is ErrorCode.BILLING_REQUIRED
    assert [one.problem for one in image_offers(CATALOGUE, "gemini")] == [None, None]
