"""Which provider serves whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent import OpenAISettings, Settings
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.providers import NO_KEY, ProviderPool
from tests.adapters.records import ImageStore
from tests.adapters.scripted import Provider
from tests.support.cases import each_case
from tests.support.prompts import prompt, words_of
from tests.wire_server import GeminiServer, Hold, Text

KEY = SecretStr("AIzaOfAVisitor")
SERVER = OpenAISettings(base_url="http://127.0.0.1:9/v1", text_model="talker", image_model="painter")
LOCKED = SERVER.model_copy(update={"api_key": SecretStr("sk-operators-own-01")})
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
    ("fields", "key", "name", "kind"),
    [
        ({}, None, "sketch", "SketchProvider"),
        ({}, KEY, "gemini", "LastingClient"),
        ({"gemini_api_key": KEY}, None, "gemini", "LastingClient"),
        ({"openai": SERVER}, None, "openai", "OpenAIProvider"),
        ({"openai": SERVER}, KEY, "gemini", "LastingClient"),
        ({"openai": SERVER, "gemini_api_key": KEY}, None, "gemini", "LastingClient"),
        ({"openai": SERVER, "gemini_api_key": KEY, "provider": "openai"}, None, "openai", "OpenAIProvider"),
        ({"openai": SERVER, "provider": "openai"}, KEY, "openai", "OpenAIProvider"),
        ({"openai": SERVER, "provider": "gemini"}, None, "sketch", "SketchProvider"),
        ({"openai": SERVER, "provider": "gemini"}, KEY, "gemini", "LastingClient"),
        ({"openai": SERVER, "gemini_api_key": KEY, "provider": "sketch"}, KEY, "sketch", "SketchProvider"),
        ({"gemini_api_key": KEY}, NO_KEY, "sketch", "SketchProvider"),
        ({"openai": SERVER, "gemini_api_key": KEY}, NO_KEY, "openai", "OpenAIProvider"),
        ({"openai": LOCKED, "gemini_api_key": KEY}, NO_KEY, "sketch", "SketchProvider"),
        ({"openai": LOCKED, "provider": "openai"}, NO_KEY, "sketch", "SketchProvider"),
    ],
)
async def test_the_operators_word_counts_then_a_key_then_a_server(
    make: MakePool, fields: dict[str, Any], key: SecretStr | None, name: str, kind: str
) -> None:
    pool = make(**fields)
    assert pool.name(key) == name
    assert type(await pool.provider(key)).__name__ == kind


async def test_a_provider_is_made_once(make: MakePool) -> None:
    pool = make(openai=SERVER)
    assert await pool.provider(None) is await pool.provider(None)
    assert await pool.provider(KEY) is await pool.provider(KEY)
    assert await pool.gemini(KEY) is await pool.provider(KEY)


async def answer(provider: Provider) -> str:
    model = load_catalogue().model(ModelRole.FLASH, "gemini")
    return words_of([chunk async for chunk in provider.stream(model, [prompt("Say something.")])])


async def test_a_client_that_makes_room_is_closed_under_no_call_and_serves_whoever_holds_it(
    make: MakePool,
) -> None:
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
        # Its connections were closed when the call had ended; a turn that holds it notices nothing.
        assert await answer(held) == "Still here."
        assert await answer(other) == "Here as well."
        assert await pool.provider(KEY) is not held
