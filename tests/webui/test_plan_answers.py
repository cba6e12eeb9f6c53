"""What the page sends of a plan is read strictly and held against what the models offer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.errors import ErrorCode, RequestRefused
from agent.plans import Decision, ModelPrice, PlanEdit
from tests.support.cases import each_case
from tests.support.page_values import FLASH, OFFERS, PLAN, WORDS
from webui.plan_answers import RunPlan, after, decision_to_run, read_run
from webui.words import load_words


def run(**edit: Any) -> RunPlan:
    return RunPlan(turn="t1", edits=(PlanEdit(call=0, **edit),))


def refusal(**edit: Any) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        decision_to_run(WORDS, run(**edit), [PLAN], OFFERS)
    return caught.value


def test_what_the_fields_say_is_read() -> None:
    sent = {"turn": "t1", "edits": [{"call": 0, "prompt": "A wolf", "model": "flash", "number_of_images": 3}]}
    assert read_run(json.dumps(sent)) == RunPlan(
        turn="t1", edits=(PlanEdit(call=0, prompt="A wolf", model="flash", number_of_images=3),)
    )


@each_case(
    "sent",
    [
        "",
        "not json",
        "[]",
        '{"edits": []}',
        '{"turn": 3}',
        '{"turn": "t1", "more": 1}',
        '{"turn": "t1", "edits": [{"call": "first"}]}',
        '{"turn": "t1", "edits": [{"model": "huge"}]}',
        '{"turn": "t1", "edits": [{"number_of_images": 9}]}',
        '{"turn": "t1", "edits": [{"prompt": ""}]}',
        '{"turn": "t1", "edits": [{"price_usd": 0}]}',
    ],
)
def test_nonsense_is_not_read(sent: str) -> None:
    assert read_run(sent) is None


def test_values_that_stay_as_planned_are_no_edits() -> None:
    same = run(prompt=PLAN.prompt, model="pro", aspect_ratio="16:9", resolution="2K", number_of_images=2)
    assert decision_to_run(WORDS, same, [PLAN], OFFERS) == Decision(run=True)


def test_what_was_changed_is_decided() -> None:
    changed = run(prompt="A wolf", model="flash", aspect_ratio="1:8", resolution="2K", number_of_images=2)
    decision = decision_to_run(WORDS, changed, [PLAN], OFFERS)
    assert decision.edits == (PlanEdit(call=0, prompt="A wolf", model="flash", aspect_ratio="1:8"),)


def test_a_plan_that_is_not_there_is_gone() -> None:
    with pytest.raises(RequestRefused) as caught:
        decision_to_run(WORDS, RunPlan(turn="t1", edits=(PlanEdit(call=7),)), [PLAN], OFFERS)
    assert caught.value.code is ErrorCode.PLAN_GONE


@pytest.mark.parametrize(
    ("edit", "model", "setting", "value"),
    [
        ({"aspect_ratio": "7:5"}, "Pro", "Aspect ratio", "7:5"),
        ({"aspect_ratio": "1:8"}, "Pro", "Aspect ratio", "1:8"),
        ({"resolution": "512"}, "Pro", "Resolution", "512"),
        ({"model": "flash", "resolution": "4K"}, "Flash", "Resolution", "4K"),
    ],
)
def test_a_value_that_the_model_does_not_offer_is_refused_by_name(
    edit: dict[str, str], model: str, setting: str, value: str
) -> None:
    error = refusal(**edit)
    assert error.code is ErrorCode.SETTING_NOT_SUPPORTED
    assert WORDS.error(error.info).startswith(f"{model} does not offer {setting} {value}.")


def test_a_new_model_must_obey_what_stays_of_the_plan() -> None:
    wide = PLAN.model_copy(update={"model": "flash", "aspect_ratio": "1:8", "resolution": "1K"})
    with pytest.raises(RequestRefused) as caught:
        decision_to_run(WORDS, run(model="pro"), [wide], OFFERS)
    assert "1:8" in str(caught.value)


def test_where_there_is_no_choice_of_model_none_is_taken() -> None:
    with pytest.raises(RequestRefused) as caught:
        decision_to_run(WORDS, run(model="flash"), [PLAN], (FLASH.__class__("pro", "Local", ("16:9",), ("2K",)),))
    assert "Local" in WORDS.error(caught.value.info)


@pytest.mark.parametrize(
    ("prompt", "code"), [(" \n ", ErrorCode.NOTHING_SENT), ("x" * 200_000, ErrorCode.TEXT_TOO_LONG)]
)
def test_a_prompt_says_something_and_not_too_much(prompt: str, code: ErrorCode) -> None:
    assert refusal(prompt=prompt).code is code


def test_the_refusal_names_the_setting_in_the_visitors_words() -> None:
    words = load_words("zh-CN")
    with pytest.raises(RequestRefused) as caught:
        decision_to_run(words, run(aspect_ratio="7:5"), [PLAN], OFFERS)
    assert "宽高比" in words.error(caught.value.info)


def test_the_plan_as_decided_has_the_new_values_and_the_models_name() -> None:
    decision = Decision(run=True, edits=(PlanEdit(call=0, model="flash", number_of_images=1),))
    (plan,) = after([PLAN], decision, OFFERS)
    assert (plan.model, plan.model_label, plan.number_of_images, plan.prompt) == ("flash", "Flash", 1, PLAN.prompt)


BOTH = PLAN.model_copy(
    update={
        "model": "both",
        "model_label": "Flash + Pro",
        "prices": (
            ModelPrice(model_label="Flash", price_usd=0.08),
            ModelPrice(model_label="Pro", price_usd=0.27),
        ),
    }
)


def test_a_plan_for_both_models_may_stay_so_or_become_one_of_them() -> None:
    stays = decision_to_run(WORDS, run(model="both", aspect_ratio="1:1"), [BOTH], OFFERS)
    assert stays.edits == (PlanEdit(call=0, aspect_ratio="1:1"),)
    one = decision_to_run(WORDS, run(model="flash", aspect_ratio="1:8"), [BOTH], OFFERS)
    [plan] = after([BOTH], one, OFFERS)
    assert (plan.model, plan.model_label, plan.prices) == ("flash", "Flash", ())


@pytest.mark.parametrize(("edit", "model"), [({"aspect_ratio": "1:8"}, "Pro"), ({"resolution": "4K"}, "Flash")])
def test_what_only_one_of_both_models_obeys_is_refused_naming_the_other(edit: dict[str, Any], model: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        decision_to_run(WORDS, run(**edit), [BOTH], OFFERS)
    assert caught.value.info.parameters["model"] == model


def test_a_plan_for_one_model_cannot_become_one_for_both() -> None:
    assert refusal(model="both").info.code is ErrorCode.SETTING_NOT_SUPPORTED
