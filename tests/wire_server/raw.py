"""Raw HTTP to the server, for what the SDK would never send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2

FLASH = "gemini-3.8-flash"
BANANA = "gemini-nano-banana-2.1"
HI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@dataclass(frozen=True)
class Raw:
    """Raw HTTP to the server."""

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
