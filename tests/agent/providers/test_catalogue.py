"""The one list of models: whole, consistent, and priced as Google bills."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest

from agent.errors import SettingsError
from agent.messages import TokenUsage
from agent.providers.catalogue import Catalogue, ModelEntry, ModelRole, load_catalogue, override_variable

CATALOGUE = load_catalogue()
DAY = date(2026, 11, 20)
PAINTERS = [entry for entry in CATALOGUE.entries if entry.role in (ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO)]


def price(role: ModelRole, usage: TokenUsage, on: date = DAY) -> float:
    return CATALOGUE.model(role, "gemini").price_usd(usage, on)


def name_of(entry: ModelEntry) -> str:
    return f"{entry.id} as {entry.role}"


@pytest.mark.parametrize(
    ("role", "model_id"),
    [
        (ModelRole.FLASH, "gemini-3.8-flash"),
        (ModelRole.THINKING, "gemini-4-argon"),
        (ModelRole.IMAGE_FLASH, "gemini-nano-banana-2.1"),
        (ModelRole.IMAGE_PRO, "gemini-3-pro-image"),
        (ModelRole.EMBEDDING, "gemini-embedding-2"),
    ],
)
def test_each_role_has_its_default_at_gemini(role: ModelRole, model_id: str) -> None:
    assert CATALOGUE.model(role, "gemini").id == model_id


@pytest.mark.parametrize("role", set(ModelRole) - {ModelRole.EMBEDDING})
def test_the_built_in_provider_plays_every_role_of_a_turn_for_nothing(role: ModelRole) -> None:
    entry = CATALOGUE.model(role, "sketch")
    assert entry.price_usd(TokenUsage(prompt_tokens=10**9, image_tokens=10**9, search_queries=9), DAY) == 0


@pytest.mark.parametrize("entry", PAINTERS, ids=name_of)
def test_every_ratio_has_its_pixels_in_every_size(entry: ModelEntry) -> None:
    assert entry.aspect_ratios
    assert entry.resolutions
    for resolution in entry.resolutions:
        for ratio in entry.aspect_ratios:
            across, down = map(int, ratio.split(":"))
            pixels = entry.pixels(ratio, resolution)
            assert pixels is not None
            assert pixels[0] / pixels[1] == pytest.approx(across / down, rel=0.04)


def test_pixels_grow_with_the_size() -> None:
    pro = CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini")
    assert [pro.pixels("16:9", size) for size in pro.resolutions] == [(1376, 768), (2752, 1536), (5504, 3072)]


def test_pixels_without_a_size_are_the_smallest() -> None:
    assert CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini").pixels("1:1", None) == (1024, 1024)


@pytest.mark.parametrize(("ratio", "size"), [("1:8", "1K"), ("1:1", "8K"), ("7:3", None)])
def test_pixels_of_what_a_model_does_not_take_are_unknown(ratio: str, size: str | None) -> None:
    assert CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini").pixels(ratio, size) is None


def test_pixels_of_a_model_without_sizes_are_unknown() -> None:
    assert CATALOGUE.model(ModelRole.FLASH, "gemini").pixels("1:1", None) is None


@pytest.mark.parametrize("entry", CATALOGUE.entries, ids=name_of)
def test_an_entry_does_not_contradict_itself(entry: ModelEntry) -> None:
    assert entry.thinking_level is None or entry.thinking_level in entry.thinking_levels
    assert entry.has_grounding or not entry.has_image_search
    assert entry.max_objects + entry.max_characters <= entry.max_references
    assert all(earlier.since < later.since for earlier, later in pairwise(entry.prices))
    assert entry.provider == "sketch" or entry.prices
    assert not entry.has_grounding or all(prices.search_query > 0 for prices in entry.prices)


@pytest.mark.parametrize(
    ("role", "tokens", "usd"),
    [(ModelRole.IMAGE_FLASH, 1120, 0.0336), (ModelRole.IMAGE_PRO, 1120, 0.1344), (ModelRole.IMAGE_PRO, 2000, 0.24)],
)
def test_a_picture_costs_what_its_tokens_cost(role: ModelRole, tokens: int, usd: float) -> None:
    assert price(role, TokenUsage(image_tokens=tokens)) == pytest.approx(usd)


def test_thoughts_cost_as_words_and_a_search_by_the_query() -> None:
    assert price(ModelRole.FLASH, TokenUsage(output_tokens=600_000, thought_tokens=400_000)) == pytest.approx(3.75)
    assert price(ModelRole.FLASH, TokenUsage(search_queries=3)) == pytest.approx(0.042)


def test_cached_tokens_are_part_of_the_prompt_and_cheaper() -> None:
    usage = TokenUsage(prompt_tokens=1_000_000, cached_tokens=400_000, tool_tokens=100_000)
    assert price(ModelRole.FLASH, usage) == pytest.approx(0.7 * 0.75 + 0.4 * 0.075)


@pytest.mark.parametrize(
    ("on", "usd"),
    [(date(2026, 11, 30), 2.0), (date(2026, 12, 1), 4.0), (date(2030, 1, 1), 4.0), (date(2020, 1, 1), 2.0)],
)
def test_prices_change_on_their_day(on: date, usd: float) -> None:
    assert price(ModelRole.THINKING, TokenUsage(prompt_tokens=1_000_000), on) == pytest.approx(usd)


def test_a_known_name_brings_its_own_capabilities() -> None:
    entry = load_catalogue({"image_flash": "gemini-3.1-flash-lite-image"}).model(ModelRole.IMAGE_FLASH, "gemini")
    assert entry.resolutions == ("1K",)
    assert not entry.has_grounding


def test_a_known_name_may_play_another_role() -> None:
    entry = load_catalogue({"thinking": "gemini-3.8-flash"}).model(ModelRole.THINKING, "gemini")
    assert (entry.id, entry.role) == ("gemini-3.8-flash", ModelRole.THINKING)
    assert entry.prices == CATALOGUE.model(ModelRole.FLASH, "gemini").prices


def test_an_unknown_name_takes_the_capabilities_of_the_roles_default() -> None:
    catalogue = load_catalogue({"image_pro": "gemini-5-pro-image"})
    entry = catalogue.model(ModelRole.IMAGE_PRO, "gemini")
    assert entry == CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini").model_copy(update={"id": "gemini-5-pro-image"})
    assert catalogue.by_id("gemini-5-pro-image") == entry


def test_a_role_that_does_not_exist_names_its_variable() -> None:
    with pytest.raises(SettingsError) as caught:
        load_catalogue({"painter": "x"})
    assert caught.value.info.parameters["name"] == "AIVISTA_MODEL_PAINTER"


def test_a_role_nobody_plays_names_its_variable() -> None:
    with pytest.raises(SettingsError) as caught:
        Catalogue(entries=()).model(ModelRole.FLASH, "gemini")
    assert caught.value.info.parameters["name"] == override_variable(ModelRole.FLASH) == "AIVISTA_MODEL_FLASH"


def test_a_name_nobody_has_is_not_found() -> None:
    assert CATALOGUE.by_id("nobody") is None
