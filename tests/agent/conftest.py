"""A studio in an empty home. Its pictures are small, and it asks nothing twice, so that a test sees each failure;
`test_retrying` is patient."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent import Settings, Studio
from tests.support.clock import Clock
from tests.support.gemini import on_gemini
from tests.support.small_frames import small_frames
from tests.wire_server import GeminiServer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", retry_budget_s=0, catalogue_file=small_frames(tmp_path))


@pytest.fixture
async def studio(settings: Settings) -> AsyncIterator[Studio]:
    async with Studio(settings) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def gemini(settings: Settings, server: GeminiServer) -> Settings:
    """The settings of a studio whose Gemini is the server."""
    return on_gemini(settings, server.url)
