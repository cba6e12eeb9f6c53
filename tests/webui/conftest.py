"""The page as a real process, whose Gemini is the strict server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page import PageProcess
from tests.wire_server import GeminiProcess


@pytest.fixture(scope="module")
def gemini() -> Iterator[GeminiProcess]:
    with GeminiProcess() as server:
        yield server


@pytest.fixture(scope="module")
def gemini_studio(gemini: GeminiProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    with PageProcess(home=tmp_path_factory.mktemp("home"), environment=environment) as page:
        yield page
