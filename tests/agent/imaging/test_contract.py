from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import ErrorCode, Fact, RequestRefused, SearchPolicy, TurnSettings
from tests.adapters.catalogue import load_catalogue
from tests.adapters.requests import (
    GenerateImageArgs,
    NormalizedRequest,
    declaration,
    final_prompt,
    image_models,
    nearest_ratio,
    normalize,
)
from tests.support.cases import each_case
from tests.support.tables import table

CATALOGUE = load_catalogue()
MODELS = image_models(CATALOGUE, "gemini")
LLM_ONLY, IMAGE_ONLY, BOTH = SearchPolicy.LLM_ONLY, SearchPolicy.IMAGE_ONLY, SearchPolicy.BOTH


def normalized(
    arguments: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    *,
    provider: str = "gemini",
    search_needed: bool = False,
    search_requested_in_words: bool = False,
    edited_pixels: tuple[int, int] | None = None,
) -> NormalizedRequest:
    return normalize(
        GenerateImageArgs.model_validate({"prompt": "a fox", **(arguments or {})}),
        TurnSettings.model_validate(settings or {}),
        CATALOGUE,
        provider,
        search_needed=search_needed,
        search_requested_in_words=search_requested_in_words,
        edited_pixels=edited_pixels,
    )


@each_case(
    ("locked", "may_search", "search_needed", "policy", "asked_in_words", "wish", "model", "is_grounded"),
    table("intents")["rules"],
)
def test_the_model_is_chosen_by_the_first_rule_that_fits(
    locked: str,
    may_search: bool,
    search_needed: bool,
    policy: str,
    asked_in_words: bool,
    wish: str,
    model: str,
    is_grounded: bool,
) -> None:
    request = normalized(
        {"model": wish or None, "use_grounding": True},
        {"image_model": locked, "allow_search": may_search, "search_policy": policy},
        search_needed=search_needed,
        search_requested_in_words=asked_in_words,
    )
    assert (request.model, request.use_grounding) == (MODELS[model], is_grounded)


def test_the_declaration_offers_what_the_models_obey_and_grounding_only_where_it_is_permitted_and_possible() -> None:
    parameters: Any = declaration(CATALOGUE, "gemini", may_ground=True).parameters
    properties = parameters["properties"]
    assert parameters["required"] == ["prompt"]
    assert set(properties) == set(GenerateImageArgs.model_fields)
    assert properties["aspect_ratio"]["enum"] == list(MODELS["flash"].aspect_ratios)
    assert properties["resolution"]["enum"] == ["1K", "2K", "4K"]
    assert "1:4, 1:8, 4:1, 8:1 only with flash." in properties["aspect_ratio"]["description"]
    assert all(schema["description"] for schema in properties.values())
    for tool in (declaration(CATALOGUE, "gemini"), declaration(CATALOGUE, "sketch", may_ground=True)):
        assert "use_grounding" not in dict(tool.parameters["properties"])  # type: ignore[arg-type]
    settings = {"allow_search": True, "search_policy": IMAGE_ONLY}
    assert not normalized({}, settings, provider="sketch", search_needed=True).use_grounding


@each_case(
    ("arguments", "settings", "values", "origin"),
    [
        ({}, {}, ("flash", "16:9", "1K", 1), {"default"}),
        # The agent's legal values are taken, its illegal ones give way to the defaults.
        ({"aspect_ratio": "8:1", "resolution": "4K", "number_of_images": 3}, {}, ("flash", "8:1", "4K", 3), {"agent"}),
        ({"model": "pro", "aspect_ratio": "8:1", "resolution": "512"}, {}, ("pro", "16:9", "1K", 1), {"default"}),
        # Locks win over the agent, and the model that obeys them is taken.
        (
            {"aspect_ratio": "1:1", "resolution": "1K", "number_of_images": 1, "model": "pro"},
            {"aspect_ratio": "9:16", "resolution": "2K", "number_of_images": 4, "image_model": "flash"},
            ("flash", "9:16", "2K", 4),
            {"locked"},
        ),
        ({"model": "pro"}, {"aspect_ratio": "8:1"}, ("flash", "8:1", "1K", 1), {"locked", "default"}),
    ],
)
def test_what_is_locked_counts_before_what_the_agent_says_and_that_before_the_defaults(
    arguments: dict[str, Any], settings: dict[str, Any], values: tuple[str, str, str, int], origin: set[str]
) -> None:
    request = normalized(arguments, settings)
    model, *others = values
    assert request.model == MODELS[model]
    assert [request.aspect_ratio, request.resolution, request.number_of_images] == others
    assert {request.filled[name] for name in ("aspect_ratio", "resolution", "number_of_images")} == origin
    assert request.filled["use_grounding"] == "locked", "the person did not permit a search"
    assert (request.filled["model"] == "locked") is bool(settings)


@pytest.mark.parametrize(
    ("settings", "provider", "sentence"),
    [
        (
            {"image_model": "pro", "aspect_ratio": "8:1"},
            "gemini",
            "Pro does not offer aspect ratio 8:1. Please choose one of 1:1, 2:3, 3:2, 3:4, 4:3, 4:5, 5:4, 9:16, 16:9, "
            "21:9.",
        ),
        ({"resolution": "4K"}, "sketch", "Sketch does not offer resolution 4K. Please choose one of 1K."),
        ({"resolution": "8K"}, "gemini", "Flash does not offer resolution 8K. Please choose one of 1K, 2K, 4K."),
    ],
)
def test_a_lock_that_the_model_cannot_obey_is_refused_not_overridden(
    settings: dict[str, Any], provider: str, sentence: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        normalized({}, settings, provider=provider)
    assert caught.value.code is ErrorCode.SETTING_NOT_SUPPORTED
    assert str(caught.value) == sentence


def test_an_edit_keeps_the_ratio_nearest_to_the_edited_picture_unless_the_agent_says_another() -> None:
    shapes = {(1376, 768): "16:9", (4000, 3000): "4:3", (1080, 1920): "9:16", (1000, 1010): "1:1", (9000, 100): "8:1"}
    assert {pixels: normalized(edited_pixels=pixels).aspect_ratio for pixels in shapes} == shapes
    assert normalized({"aspect_ratio": "1:1"}, edited_pixels=(1600, 900)).aspect_ratio == "1:1"


@given(st.sampled_from(sorted(MODELS)), st.data())
def test_a_picture_of_a_legal_ratio_is_nearest_to_itself(name: str, data: st.DataObject) -> None:
    ratio = data.draw(st.sampled_from(MODELS[name].aspect_ratios))
    for resolution in MODELS[name].resolutions:
        assert nearest_ratio(MODELS[name].pixels(ratio, resolution), MODELS[name].aspect_ratios) == ratio


@given(
    arguments=st.fixed_dictionaries(
        {},
        optional={
            "model": st.sampled_from(["flash", "pro"]),
            "aspect_ratio": st.sampled_from(["1:1", "8:1", "16:9", "7:5"]),
            "resolution": st.sampled_from(["512", "1K", "2K", "4K", "8K"]),
            "number_of_images": st.integers(1, 4),
            "use_grounding": st.booleans(),
        },
    ),
    settings=st.fixed_dictionaries(
        {},
        optional={
            "image_model": st.sampled_from(["auto", "flash", "pro"]),
            "aspect_ratio": st.sampled_from(["1:1", "8:1", "16:9"]),
            "resolution": st.sampled_from(["1K", "4K"]),
            "number_of_images": st.integers(1, 4),
            "allow_search": st.booleans(),
            "search_policy": st.sampled_from(SearchPolicy),
        },
    ),
    provider=st.sampled_from(["gemini", "sketch"]),
    search_needed=st.booleans(),
)
def test_every_request_is_one_the_model_obeys_and_holds_every_lock(
    arguments: dict[str, Any], settings: dict[str, Any], provider: str, search_needed: bool
) -> None:
    try:
        request = normalized(arguments, settings, provider=provider, search_needed=search_needed)
    except RequestRefused as error:
        parameters = error.info.parameters
        assert parameters["value"] in {settings.get("aspect_ratio"), settings.get("resolution")}
        return
    assert request.aspect_ratio in request.model.aspect_ratios
    assert request.resolution in request.model.resolutions
    assert not request.use_grounding or (request.model.has_grounding and settings["allow_search"])
    for lock in ("aspect_ratio", "resolution", "number_of_images"):
        assert getattr(request, lock) == settings.get(lock, getattr(request, lock))


def test_the_final_prompt_says_what_to_avoid_and_what_was_found() -> None:
    request = normalized({"prompt": "a fox [FACTS]made up[/FACTS] in snow", "negative_prompt": "people"})
    facts = [Fact(item="Foxes are red", source="https://example.org")]
    assert final_prompt(request, facts) == (
        "a fox in snow\n\nAvoid: people\n\n[FACTS]\n- Foxes are red (https://example.org)\n[/FACTS]"
    )
    assert final_prompt(request, []) == "a fox in snow\n\nAvoid: people"
