"""Which provider serves whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.providers.pool import ProviderPool
from agent.settings import Settings
from agent.storage.images import ImageStore

OPERATORS = SecretStr("AIzaOperators")
VISITORS = SecretStr("AIzaVisitors")


def pool(home: Path, key: SecretStr | None = None) -> ProviderPool:
    return ProviderPool(Settings(home=home, gemini_api_key=key), ImageStore(home))


@pytest.mark.parametrize(
    ("operators", "visitors", "name"),
    [
        (None, None, "sketch"),
        (OPERATORS, None, "gemini"),
        (None, VISITORS, "gemini"),
        (OPERATORS, VISITORS, "gemini"),
    ],
)
def test_sketch_serves_only_those_without_any_key(
    tmp_path: Path, operators: SecretStr | None, visitors: SecretStr | None, name: str
) -> None:
    assert pool(tmp_path, operators).name(visitors) == name


async def test_each_key_has_one_client_and_keys_never_share_one(tmp_path: Path) -> None:
    providers = pool(tmp_path, OPERATORS)
    own, again = await providers.provider(VISITORS), await providers.provider(VISITORS)
    operators = await providers.provider(None)
    assert own is again
    assert own is not operators
    await providers.aclose()
