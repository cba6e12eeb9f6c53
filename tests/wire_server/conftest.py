"""A running server, raw HTTP to it, and the real SDK."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types

from tests.wire_server import GeminiServer

FLASH = "gemini-3.8-flash"
BANANA = "gemini-nano-banana-2.1"
PRO = "gemini-3-pro-image"
HI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@dataclass(frozen=True)
class Raw:
    """Raw HTTP to the server: requests that the SDK would never send."""

    url: str
    http: httpx2.Client

    def post(
        self, body: Any, model: str = FLASH, method: str = "generateContent", *, url: str = "", **options: Any
    ) -> httpx2.Response:
        """Post a body to a method of a model, of another server perhaps."""
        query = "?alt=sse" if method.startswith("stream") else ""
        return self.http.post(f"{url or self.url}/v1beta/models/{model}:{method}{query}", json=body, **options)

    def parts(self, body: Any, model: str = FLASH, **options: Any) -> list[dict[str, Any]]:
        """Post a body that is taken; return the parts of the answer."""
        response = self.post(body, model, **options)
        assert response.status_code == 200, response.text
        parts: list[dict[str, Any]] = response.json()["candidates"][0]["content"]["parts"]
        return parts


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
