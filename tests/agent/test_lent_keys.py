"""Whose key pays: the operator's serves the operator, and others only where it is lent to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent import OPERATOR, OpenAISettings, Settings, Studio, TurnDone, TurnRequest
from tests.wire_server import GeminiProcess

FOX = TurnRequest(text="Draw a red fox in the snow, watercolour")
OWN = SecretStr("AIza-visitors-own-0001")


@pytest.fixture(scope="module")
def gemini() -> Iterator[GeminiProcess]:
    with GeminiProcess() as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, gemini: GeminiProcess) -> Settings:
    gemini.control(clear=True)
    key = SecretStr("AIza-operators-own-0001")
    return Settings(home=tmp_path, gemini_api_key=key, gemini_base_url=gemini.url, lends_keys=False)


async def price_of_a_turn(studio: Studio, owner: str, key: SecretStr | None = None) -> float:
    conversation = await studio.conversations.create(owner)
    last = [event async for event in studio.run_turn(conversation.id, FOX, owner=owner, key=key)][-1]
    assert isinstance(last, TurnDone)
    return last.price_usd


async def test_the_operators_key_serves_the_operator_and_others_only_where_it_is_lent(
    settings: Settings, gemini: GeminiProcess
) -> None:
    async with Studio(settings) as studio:
        assert studio.provider_name(None, "visitor-a") == "sketch"
        assert await price_of_a_turn(studio, "visitor-a") == 0
        assert gemini.read("requests") == []
        assert await price_of_a_turn(studio, OPERATOR) > 0
        assert await price_of_a_turn(studio, "visitor-a", OWN) > 0
    async with Studio(settings.model_copy(update={"lends_keys": True})) as studio:
        assert await price_of_a_turn(studio, "visitor-a") > 0
    assert (settings.lent_key("visitor-a"), settings.lent_key(OPERATOR)) == (None, settings.gemini_api_key)


@pytest.mark.parametrize(("key", "name"), [(None, "openai"), (SecretStr("sk-operators-own-01"), "sketch")])
async def test_a_server_of_the_operators_serves_others_where_it_needs_no_key(
    tmp_path: Path, key: SecretStr | None, name: str
) -> None:
    server = OpenAISettings(base_url="http://127.0.0.1:9/v1", text_model="talker", api_key=key)
    async with Studio(Settings(home=tmp_path, openai=server, lends_keys=False)) as studio:
        assert studio.provider_name(None, "visitor-a") == name
        assert studio.provider_name(None, OPERATOR) == "openai"
