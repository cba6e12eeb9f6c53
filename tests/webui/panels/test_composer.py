"""What the chips offer and what they mean."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agent.providers.catalogue import load_catalogue
from agent.settings import OpenAISettings, ReferenceMode, SearchPolicy, TurnSettings
from webui.panels.composer import Chosen, chip_updates, offered
from webui.words import load_words

CATALOGUE = load_catalogue()
WORDS = load_words("en")


def values(update: dict[str, object]) -> list[str]:
    choices = update["choices"]
    assert isinstance(choices, list)
    return [value for _, value in choices]


def test_auto_leaves_every_choice_to_the_agent() -> None:
    assert Chosen().turn_settings() == TurnSettings()


def test_what_is_chosen_becomes_a_lock() -> None:
    chosen = Chosen(
        text_model="thinking",
        image_model="pro",
        allow_search=True,
        search_policy="both",
        aspect_ratio="4:5",
        resolution="2K",
        number_of_images="3",
        review="always",
        confirm=True,
        negative_prompt="people, text",
        reference_mode="LAST_N",
        reference_count="4",
    )
    assert chosen.turn_settings() == TurnSettings(
        text_model="thinking",
        image_model="pro",
        allow_search=True,
        search_policy=SearchPolicy.BOTH,
        aspect_ratio="4:5",
        resolution="2K",
        number_of_images=3,
        review="always",
        confirm=True,
        negative_prompt="people, text",
        reference_mode=ReferenceMode.LAST_N,
        reference_count=4,
    )
    assert Chosen.of(chosen.turn_settings()) == chosen


def test_the_rarer_locks_are_offered_only_where_the_model_obeys_them() -> None:
    fixed = Chosen(negative_prompt="people", reference_mode="LAST_N", reference_count="4")
    updates = chip_updates(WORDS, CATALOGUE, "gemini", fixed)
    rare = ("negative_prompt", "reference_mode", "reference_count")
    assert [updates[name]["visible"] for name in rare] == [True, True, True]
    assert [updates[name]["value"] for name in rare] == ["people", "LAST_N", "4"]
    other = chip_updates(WORDS, CATALOGUE, "gemini", Chosen(reference_mode="LAST_GENERATED", reference_count="4"))
    assert (other["reference_count"]["visible"], other["reference_count"]["value"]) == (False, "auto")
    sketch = chip_updates(WORDS, CATALOGUE, "sketch", fixed)
    assert [sketch[name]["visible"] for name in rare] == [False, False, False]
    assert [sketch[name]["value"] for name in rare] == ["", "auto", "auto"]


@pytest.mark.parametrize("count", ["many", "0", "5"])
def test_a_count_that_no_chip_offers_is_refused(count: str) -> None:
    with pytest.raises((ValueError, ValidationError)):
        Chosen(number_of_images=count).turn_settings()


def test_auto_offers_only_what_both_image_models_obey() -> None:
    flash, _ = offered(CATALOGUE, "gemini", "flash")
    pro, _ = offered(CATALOGUE, "gemini", "pro")
    both, _ = offered(CATALOGUE, "gemini", "auto")
    assert set(both) == set(flash) & set(pro)
    assert set(flash) > set(pro)


def test_a_lock_that_the_newly_chosen_model_does_not_obey_goes_back_to_auto() -> None:
    kept = chip_updates(WORDS, CATALOGUE, "gemini", Chosen(image_model="flash", aspect_ratio="1:8", resolution="4K"))
    assert (kept["aspect_ratio"]["value"], kept["resolution"]["value"]) == ("1:8", "4K")
    dropped = chip_updates(WORDS, CATALOGUE, "gemini", Chosen(image_model="pro", aspect_ratio="1:8", resolution="4K"))
    assert (dropped["aspect_ratio"]["value"], dropped["resolution"]["value"]) == ("auto", "4K")


def test_in_sketch_mode_only_what_the_sketch_obeys_is_shown() -> None:
    updates = chip_updates(WORDS, CATALOGUE, "sketch", Chosen(image_model="pro", resolution="4K"))
    shown = {name for name, update in updates.items() if update["visible"]}
    assert shown == {"image_model", "aspect_ratio", "number_of_images", "review", "confirm"}
    assert values(updates["image_model"]) == ["auto"]
    assert updates["resolution"]["value"] == "auto"


def test_who_searches_is_asked_only_when_a_search_is_permitted() -> None:
    off = chip_updates(WORDS, CATALOGUE, "gemini", Chosen())
    on = chip_updates(WORDS, CATALOGUE, "gemini", Chosen(allow_search=True))
    assert (off["search_policy"]["visible"], on["search_policy"]["visible"]) == (False, True)


def test_search_is_offered_only_where_the_text_model_can_search() -> None:
    catalogue = load_catalogue(openai=OpenAISettings(base_url="http://127.0.0.1:1/v1", text_model="gemma"))
    chosen = Chosen(allow_search=True)
    assert chip_updates(WORDS, catalogue, "gemini", chosen)["allow_search"]["visible"]
    updates = chip_updates(WORDS, catalogue, "openai", chosen)
    assert not updates["allow_search"]["visible"]
    assert not updates["search_policy"]["visible"]


def test_the_review_says_when_it_looks_and_confirming_says_what_it_does() -> None:
    updates = chip_updates(WORDS, CATALOGUE, "gemini", Chosen(review="always", confirm=True))
    assert updates["review"]["choices"] == [("Off", "off"), ("On: Pro, lettering", "on"), ("Always", "always")]
    assert updates["review"]["value"] == "always"
    assert updates["confirm"]["label"] == "Ask before painting"


def test_a_review_that_no_chip_offers_is_refused() -> None:
    with pytest.raises(ValidationError):
        Chosen(review="sometimes").turn_settings()


def test_both_image_models_are_offered_where_there_are_two() -> None:
    offered_to = {
        provider: values(chip_updates(WORDS, CATALOGUE, provider, Chosen())["image_model"])
        for provider in ("gemini", "sketch")
    }
    assert offered_to == {"gemini": ["auto", "flash", "pro", "both"], "sketch": ["auto"]}


def test_with_both_only_what_both_obey_is_offered() -> None:
    assert offered(CATALOGUE, "gemini", "both") == offered(CATALOGUE, "gemini", "auto")
    updates = chip_updates(WORDS, CATALOGUE, "gemini", Chosen(image_model="both", aspect_ratio="1:8"))
    assert (updates["image_model"]["value"], updates["aspect_ratio"]["value"]) == ("both", "auto")
    assert Chosen(image_model="both").turn_settings() == TurnSettings(image_model="both")


def test_a_choice_of_both_goes_back_to_auto_in_sketch_mode() -> None:
    assert chip_updates(WORDS, CATALOGUE, "sketch", Chosen(image_model="both"))["image_model"]["value"] == "auto"


@pytest.mark.parametrize("wrong", [None, 7, ["a"], {"a": 1}])
def test_what_no_chip_could_say_counts_as_not_chosen(wrong: object) -> None:
    chips = {"image_model": "pro", "resolution": wrong, "confirm": wrong, "review": "off"}
    assert Chosen.from_chips(chips) == Chosen(image_model="pro", review="off")
