"""The one list of models: whole, consistent, and priced as Google bills."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from datetime import date
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, SecretStr

from agent import OpenAISettings, Settings, SettingsError, TokenUsage, TurnSettings
from tests.adapters.models import (
    IMAGE_ROLES,
    NO_KEY,
    TEXT_ROLES,
    Catalogue,
    JsonMode,
    ModelEntry,
    ModelRole,
    Provider,
    ProviderPool,
    catalogue_of,
    declaration,
    load_catalogue,
    normalize,
    override_variable,
    parse_arguments,
)
from tests.adapters.records import ImageStore
from tests.support.cases import each_case
from tests.support.prompts import prompt, words_of
from tests.wire_server import GeminiServer, Hold, Text

CATALOGUE = load_catalogue()
DAY = date(2026, 11, 20)
MILLION = TokenUsage(prompt_tokens=1_000_000)


def test_each_role_has_its_default_at_gemini_and_sketch_plays_every_role_of_a_turn_for_nothing() -> None:
    assert {role.value: CATALOGUE.model(role, "gemini").id for role in ModelRole} == {
        **{"flash": "gemini-3.8-flash", "thinking": "gemini-4-argon", "image_flash": "gemini-nano-banana-2.1"},
        **{"image_pro": "gemini-3-pro-image", "embedding": "gemini-embedding-2"},
    }
    assert CATALOGUE.by_id("nobody") is None
    much = TokenUsage(prompt_tokens=10**9, image_tokens=10**9, search_queries=9)
    turn = set(ModelRole) - {ModelRole.EMBEDDING}
    assert {CATALOGUE.model(role, "sketch").price_usd(much, DAY) for role in turn} == {0}


@each_case("entry", CATALOGUE.entries)
def test_an_entry_does_not_contradict_itself_and_has_its_pixels_for_every_ratio_and_size(entry: ModelEntry) -> None:
    assert entry.thinking_level is None or entry.thinking_level in entry.thinking_levels
    assert entry.has_grounding or not entry.has_image_search
    assert entry.max_objects + entry.max_characters <= entry.max_references
    assert all(earlier.since < later.since for earlier, later in pairwise(entry.prices))
    assert entry.provider == "sketch" or entry.prices or entry.id == "any"
    assert not entry.has_grounding or all(prices.search_query > 0 for prices in entry.prices)
    assert entry.is_free or set(entry.resolutions) <= set(entry.picture_tokens), "a size is counted for something"
    assert (entry.role not in IMAGE_ROLES) or (entry.aspect_ratios and entry.resolutions)
    for resolution, ratio in product(entry.resolutions, entry.aspect_ratios):
        across, down = map(int, ratio.split(":"))
        wide, high = entry.pixels(ratio, resolution) or (0, 1)
        assert wide / high == pytest.approx(across / down, rel=0.04)


def test_pixels_grow_with_the_size_are_the_smallest_without_one_and_none_beyond_what_a_model_takes() -> None:
    pro, flash = (CATALOGUE.model(role, "gemini") for role in (ModelRole.IMAGE_PRO, ModelRole.IMAGE_FLASH))
    assert [pro.pixels("16:9", size) for size in ("1K", "2K", "4K")] == [(1376, 768), (2752, 1536), (5504, 3072)]
    assert flash.pixels("1:1", None) == (1024, 1024)
    assert pro.pixels("1:8", "1K") is pro.pixels("1:1", "8K") is pro.pixels("7:3", None) is None
    assert CATALOGUE.model(ModelRole.FLASH, "gemini").pixels("1:1", None) is None


@each_case(
    ("role", "usage", "on", "usd"),
    [
        (ModelRole.IMAGE_FLASH, TokenUsage(image_tokens=1120), DAY, 0.0336),
        (ModelRole.IMAGE_PRO, TokenUsage(image_tokens=1120), DAY, 0.1344),
        (ModelRole.IMAGE_PRO, TokenUsage(image_tokens=2000), DAY, 0.24),
        # Thoughts cost as words, a search by the query; cached tokens are part of the prompt, and cheaper.
        (ModelRole.FLASH, TokenUsage(output_tokens=600_000, thought_tokens=400_000), DAY, 3.75),
        (ModelRole.FLASH, TokenUsage(search_queries=3), DAY, 0.042),
        (
            ModelRole.FLASH,
            TokenUsage(prompt_tokens=1_000_000, cached_tokens=400_000, tool_tokens=100_000),
            DAY,
            0.7 * 0.75 + 0.4 * 0.075,
        ),
        # Prices change on their day.
        (ModelRole.THINKING, MILLION, date(2026, 11, 30), 2.0),
        (ModelRole.THINKING, MILLION, date(2026, 12, 1), 4.0),
        (ModelRole.THINKING, MILLION, date(2030, 1, 1), 4.0),
        (ModelRole.THINKING, MILLION, date(2020, 1, 1), 2.0),
    ],
)
def test_an_answer_costs_what_its_tokens_cost_on_that_day(
    role: ModelRole, usage: TokenUsage, on: date, usd: float
) -> None:
    assert CATALOGUE.model(role, "gemini").price_usd(usage, on) == pytest.approx(usd)


def test_a_role_that_does_not_exist_or_that_nobody_plays_names_its_variable() -> None:
    with pytest.raises(SettingsError) as caught:
        load_catalogue({"painter": "x"})
    assert caught.value.info.parameters["name"] == "AIVISTA_MODEL_PAINTER"
    with pytest.raises(SettingsError) as caught:
        Catalogue(entries=()).model(ModelRole.FLASH, "gemini")
    assert caught.value.info.parameters["name"] == override_variable(ModelRole.FLASH) == "AIVISTA_MODEL_FLASH"


def test_a_known_name_brings_its_own_capabilities_and_an_unknown_one_has_those_of_the_roles_default() -> None:
    catalogue = load_catalogue({"image_flash": "gemini-3.1-flash-lite-image", "thinking": "gemini-3.8-flash"})
    lite = catalogue.model(ModelRole.IMAGE_FLASH, "gemini")
    assert (lite.resolutions, lite.has_grounding) == (("1K",), False)
    entry = catalogue.model(ModelRole.THINKING, "gemini")
    assert (entry.id, entry.role) == ("gemini-3.8-flash", ModelRole.THINKING)
    assert entry.prices == CATALOGUE.model(ModelRole.FLASH, "gemini").prices
    catalogue = load_catalogue({"image_pro": "gemini-5-pro-image"})
    entry = catalogue.model(ModelRole.IMAGE_PRO, "gemini")
    assert entry == CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini").model_copy(update={"id": "gemini-5-pro-image"})
    assert catalogue.by_id("gemini-5-pro-image") == entry


# Servers that speak OpenAI's API, and the operator's own models.
LOCAL = OpenAISettings(
    base_url="http://127.0.0.1:11434/v1", text_model="Qwen/Qwen-Talks", image_model="Qwen/Qwen-Paints"
)


def test_an_unknown_model_of_a_server_plays_every_role_of_its_kind_and_is_named_after_itself() -> None:
    catalogue = load_catalogue(openai=LOCAL)
    for role in TEXT_ROLES:
        entry = catalogue.model(role, "openai")
        assert (entry.id, entry.label, entry.role) == ("Qwen/Qwen-Talks", "Qwen-Talks", role)
        assert (entry.has_tools, entry.has_vision, entry.has_grounding) == (True, False, False)
    for role in IMAGE_ROLES:
        entry = catalogue.model(role, "openai")
        assert (entry.id, entry.aspect_ratios, entry.has_edits) == ("Qwen/Qwen-Paints", ("1:1", "2:3", "3:2"), True)
        assert entry.pixels("3:2", "1K") == (1536, 1024)
    # The providers do not disturb each other.
    assert all(catalogue.model(role, "gemini") == CATALOGUE.model(role, "gemini") for role in ModelRole)


def test_a_known_model_of_a_server_brings_what_its_role_needs() -> None:
    deepseek = LOCAL.model_copy(update={"text_model": "deepseek-flash", "image_model": "gpt-image-2"})
    catalogue = load_catalogue(openai=deepseek)
    levels = [catalogue.model(role, "openai").thinking_level for role in TEXT_ROLES]
    assert levels == ["low", "high"]
    assert catalogue.model(ModelRole.FLASH, "openai").json_mode is JsonMode.OBJECT
    pro = catalogue.model(ModelRole.IMAGE_PRO, "openai")
    assert (pro.id, pro.role, pro.has_response_format) == ("gpt-image-2", ModelRole.IMAGE_PRO, False)
    assert catalogue.model(ModelRole.FLASH, "openai").price_usd(TokenUsage(output_tokens=1_000_000), DAY) == 1.2


def test_a_server_without_a_painter_leaves_it_to_sketch_and_its_thinking_model_is_named_by_a_variable() -> None:
    paintless = LOCAL.model_copy(update={"image_model": None})
    catalogue = load_catalogue({"thinking": "deepseek-v4-pro"}, openai=paintless)
    assert all(catalogue.model(role, "openai") == CATALOGUE.model(role, "sketch") for role in IMAGE_ROLES)
    assert [catalogue.model(role, "openai").id for role in TEXT_ROLES] == ["Qwen/Qwen-Talks", "deepseek-v4-pro"]


OWN = """
[[model]]
id = "Qwen/Qwen-Talks"
role = "flash"
provider = "openai"
label = "Qwen"
has_vision = true
json_mode = "none"
prices = [{ since = 2026-01-01, prompt = 1.0 }]

[[model]]
id = "Qwen/Qwen-Paints"
role = "image_flash"
provider = "openai"
label = "Qwen paints"
aspect_ratios = ["16:9"]
size_table = "mine"
max_references = 1

[sizes.mine."1K"]
"16:9" = [1280, 720]
"""


def own(folder: Path, text: str | None) -> Path:
    path = folder / "models.toml"
    if text is not None:
        path.write_text(text, "utf-8")
    return path


def test_the_operators_own_file_says_what_a_model_can(tmp_path: Path) -> None:
    catalogue = catalogue_of(Settings(home=tmp_path, openai=LOCAL, catalogue_file=own(tmp_path, OWN)))
    talker = catalogue.model(ModelRole.THINKING, "openai")
    assert (talker.label, talker.has_vision, talker.json_mode) == ("Qwen", True, JsonMode.NONE)
    assert talker.price_usd(TokenUsage(prompt_tokens=1_000_000), DAY) == 1.0
    assert catalogue.model(ModelRole.IMAGE_PRO, "openai").sizes == {"1K": {"16:9": (1280, 720)}}


GREAT = """
[[model]]
id = "great-painter"
role = "image_pro"
provider = "gemini"
label = "Great"
aspect_ratios = ["1:1"]
size_table = "great"
max_references = 4
picture_tokens = { 2K = 1000, 8K = 5000 }
prices = [{ since = 2026-01-01, image = 100.0 }]

[sizes.great]
2K = { "1:1" = [2048, 2048] }
8K = { "1:1" = [7680, 7680] }
"""


def test_a_size_that_the_catalogue_alone_names_is_offered_taken_and_counted(tmp_path: Path) -> None:
    catalogue = load_catalogue(own=own(tmp_path, GREAT))
    offered = declaration(catalogue, "gemini").model_dump()["parameters"]["properties"]["resolution"]["enum"]
    assert ("8K" in offered, "8K" in catalogue.resolutions) == (True, True)
    locked = TurnSettings(image_model="pro", resolution="8K")
    wishes: list[JsonValue] = ["8k", 8192, "8192", None]
    for wish in wishes:
        request = normalize(
            parse_arguments({"prompt": "a fox", "model": "pro", "resolution": wish}),
            locked if wish is None else TurnSettings(),
            catalogue,
            "gemini",
            search_needed=False,
            search_requested_in_words=False,
            edited_pixels=None,
        )
        assert (request.resolution, request.model.pixels("1:1", request.resolution)) == ("8K", (7680, 7680))
    painter = catalogue.model(ModelRole.IMAGE_PRO, "gemini")
    assert (painter.default_resolution, painter.tokens_of_picture(None), painter.tokens_of_picture("8K")) == (
        "2K",
        1000,
        5000,
    )


TALKER = "[[model]]\nid = 'x'\nrole = 'flash'\nprovider = 'openai'\nlabel = 'X'\n"


@each_case(
    ("text", "problem"),
    [
        (None, "cannot be read"),
        ("model = [", "not TOML"),
        ("model = 1", "must hold"),
        ("[[model]]\nid = 'x'", "role"),
        (f"{TALKER}sees = true", "sees"),
        (f"{TALKER}size_table = 'gone'", "gone"),
        (f"{TALKER}sizes = {{ 8K = {{ '1:1' = [8192, 8192] }} }}", "8192×8192; at most 64 megapixels"),
    ],
)
def test_a_file_that_cannot_be_used_names_its_variable(tmp_path: Path, text: str | None, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as caught:
        load_catalogue(own=own(tmp_path, text))
    assert caught.value.info.parameters["name"] == "AIVISTA_CATALOGUE"


@each_case("edition", ["README.md", "README.zh-CN.md"])
def test_the_readmes_example_of_such_a_file_is_one(tmp_path: Path, edition: str) -> None:
    text = (Path(__file__).parents[3] / edition).read_text("utf-8")
    [example] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    local = LOCAL.model_copy(update={"text_model": "gemma3:27b", "image_model": "qwen-image"})
    catalogue = load_catalogue(own=own(tmp_path, example), openai=local)
    talker, painter = catalogue.model(ModelRole.FLASH, "openai"), catalogue.model(ModelRole.IMAGE_FLASH, "openai")
    assert (talker.has_vision, talker.has_tools, talker.json_mode) == (True, False, JsonMode.OBJECT)
    assert painter.pixels("16:9", "1K") == (1664, 928)


KEY = SecretStr("AIzaOfAVisitor")
SERVER = OpenAISettings(base_url="http://127.0.0.1:9/v1", text_model="talker", image_model="painter")
LOCKED = SERVER.model_copy(update={"api_key": SecretStr("sk-operators-own-01")})
KINDS = {"sketch": "SketchProvider", "gemini": "GeminiProvider", "openai": "OpenAIProvider"}
MakePool = Callable[..., ProviderPool]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[MakePool]:
    made: list[ProviderPool] = []

    def pool(**fields: Any) -> ProviderPool:
        most_clients = fields.pop("most_clients", 32)
        settings = Settings(home=tmp_path, **fields)
        made.append(ProviderPool(settings, ImageStore(tmp_path), most_clients=most_clients))
        return made[-1]

    yield pool
    for one in made:
        await one.aclose()


@each_case(
    ("fields", "key", "name"),
    [
        ({}, None, "sketch"),
        ({}, KEY, "gemini"),
        ({"gemini_api_key": KEY}, None, "gemini"),
        ({"openai": SERVER}, None, "openai"),
        ({"openai": SERVER}, KEY, "gemini"),
        ({"openai": SERVER, "gemini_api_key": KEY}, None, "gemini"),
        ({"openai": SERVER, "gemini_api_key": KEY, "provider": "openai"}, None, "openai"),
        ({"openai": SERVER, "provider": "openai"}, KEY, "openai"),
        ({"openai": SERVER, "provider": "gemini"}, None, "sketch"),
        ({"openai": SERVER, "provider": "gemini"}, KEY, "gemini"),
        ({"openai": SERVER, "gemini_api_key": KEY, "provider": "sketch"}, KEY, "sketch"),
        ({"gemini_api_key": KEY}, NO_KEY, "sketch"),
        ({"openai": SERVER, "gemini_api_key": KEY}, NO_KEY, "openai"),
        ({"openai": LOCKED, "gemini_api_key": KEY}, NO_KEY, "sketch"),
        ({"openai": LOCKED, "provider": "openai"}, NO_KEY, "sketch"),
    ],
)
async def test_the_operators_word_counts_then_a_key_then_a_server(
    make: MakePool, fields: dict[str, Any], key: SecretStr | None, name: str
) -> None:
    pool = make(**fields)
    assert pool.name(key) == name
    assert type(await pool.provider(key)).__name__ == KINDS[name]
    assert await pool.provider(key) is await pool.provider(key)


async def answer(provider: Provider) -> str:
    model = load_catalogue().model(ModelRole.FLASH, "gemini")
    return words_of([chunk async for chunk in provider.stream(model, [prompt("Say something.")])])


async def test_a_client_that_makes_room_serves_whoever_holds_it(make: MakePool) -> None:
    with GeminiServer() as server:
        pool = make(gemini_base_url=server.url, most_clients=1)
        held = await pool.provider(KEY)
        server.on_text(Hold(Text("It goes on.", chunks=2), after_chunks=1))
        under_way = asyncio.create_task(answer(held))
        await asyncio.to_thread(server.wait_for_held)
        other = await pool.provider(SecretStr("AIzaOfAnotherVisitor"))
        server.release()
        assert await under_way == "It goes on."
        assert server.disconnects == []
        server.on_text(Text("Still here."), Text("Here as well."))
        assert await answer(held) == "Still here."
        assert await answer(other) == "Here as well."
        assert await pool.provider(KEY) is not held
