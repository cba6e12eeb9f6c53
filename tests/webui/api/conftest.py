"""One studio of the sketch model for tests that leave nothing behind which others would see."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from tests.support.api import served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def quiet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a studio for a whole file; tests that use it run in the file's loop."""
    async with served(tmp_path_factory.mktemp("quiet")) as one, one.client() as client:
        yield client
