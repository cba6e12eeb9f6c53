"""A running server, raw HTTP to it, and the real SDK."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from google import genai
from google.genai import types

from tests.wire_server import GeminiServer
from tests.wire_server.raw import Raw


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def raw(server: GeminiServer) -> Iterator[Raw]:
    with httpx2.Client(headers={"x-goog-api-key": "a-key"}, trust_env=False) as http:
        yield Raw(server.url, http)


@pytest.fixture
def sdk(server: GeminiServer) -> Iterator[genai.Client]:
    options = types.HttpOptions(base_url=server.url, api_version="v1beta", timeout=20_000)
    with genai.Client(api_key="a-key", http_options=options) as client:
        yield client
