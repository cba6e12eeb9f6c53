"""Each provider at its strict server, and an embedder's or a key check's connection to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.openai_server import OpenAIServer
from tests.support.desks import OPENAI_KEY, GeminiDesk, OpenAIDesk, at_gemini, at_openai
from tests.wire_server import GeminiServer


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
async def gemini(server: GeminiServer) -> AsyncIterator[GeminiDesk]:
    async with at_gemini(server) as desk:
        yield desk


@pytest.fixture
async def openai(tmp_path: Path) -> AsyncIterator[OpenAIDesk]:
    with OpenAIServer(key=OPENAI_KEY) as running:
        async with at_openai(running, tmp_path) as desk:
            yield desk
