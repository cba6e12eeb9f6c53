"""Which provider serves whom."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.providers.pool import ProviderPool
from agent.settings import OpenAISettings, Settings
from agent.storage.images import ImageStore

KEY = SecretStr("AIzaOfAVisitor")
SERVER = OpenAISettings(base_url="http://127.0.0.1:9/v1", text_model="talker", image_model="painter")
MakePool = Callable[..., ProviderPool]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[MakePool]:
    made: list[ProviderPool] = []

    def pool(**fields: Any) -> ProviderPool:
        made.append(ProviderPool(Settings(home=tmp_path, **fields), ImageStore(tmp_path)))
        return made[-1]

    yield pool
    for one in made:
        await one.aclose()


@pytest.mark.parametrize(
    ("fields", "key", "name", "kind"),
    [
        ({}, None, "sketch", "SketchProvider"),
        ({}, KEY, "gemini", "GeminiProvider"),
        ({"gemini_api_key": KEY}, None, "gemini", "GeminiProvider"),
        ({"openai": SERVER}, None, "openai", "OpenAIProvider"),
        ({"openai": SERVER}, KEY, "gemini", "GeminiProvider"),
        ({"openai": SERVER, "gemini_api_key": KEY}, None, "gemini", "GeminiProvider"),
        ({"openai": SERVER, "gemini_api_key": KEY, "provider": "openai"}, None, "openai", "OpenAIProvider"),
        ({"openai": SERVER, "provider": "openai"}, KEY, "openai", "OpenAIProvider"),
        ({"openai": SERVER, "provider": "gemini"}, None, "sketch", "SketchProvider"),
        ({"openai": SERVER, "provider": "gemini"}, KEY, "gemini", "GeminiProvider"),
        ({"openai": SERVER, "gemini_api_key": KEY, "provider": "sketch"}, KEY, "sketch", "SketchProvider"),
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
