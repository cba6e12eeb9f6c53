"""The providers of the studio: the built-in sketch, and one Gemini client for each key in use."""

from __future__ import annotations

from collections import OrderedDict

from pydantic import SecretStr

from agent.providers.base import PictureBytes, Provider
from agent.settings import Settings

_MAX_CLIENTS = 32


class ProviderPool:
    """Providers by key. A client is kept alive: one that is collected closes its connections under a running call."""

    def __init__(self, settings: Settings, pictures: PictureBytes, *, sketch_pace_s: float = 0.0) -> None:
        self._settings = settings
        self._pictures = pictures
        self._sketch_pace_s = sketch_pace_s
        self._sketch: Provider | None = None
        self._clients: OrderedDict[str, Provider] = OrderedDict()

    def name(self, key: SecretStr | None) -> str:
        """Return which provider serves this key: `gemini`, or `sketch` where there is none."""
        return "gemini" if self._key(key) else "sketch"

    async def provider(self, key: SecretStr | None) -> Provider:
        """Return the provider for the key; the operator's own key serves those who bring none."""
        secret = self._key(key)
        if secret is None:
            self._sketch = self._sketch or self._draw()
            return self._sketch
        if secret in self._clients:
            self._clients.move_to_end(secret)
            return self._clients[secret]
        client = self._connect(secret)
        self._clients[secret] = client
        if len(self._clients) > _MAX_CLIENTS:
            _, oldest = self._clients.popitem(last=False)
            await oldest.aclose()
        return client

    async def aclose(self) -> None:
        """Close every client."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    def _key(self, key: SecretStr | None) -> str | None:
        chosen = key or self._settings.gemini_api_key
        return chosen.get_secret_value() if chosen else None

    def _draw(self) -> Provider:
        from agent.providers.sketch import SketchProvider

        return SketchProvider(self._pictures, pace_s=self._sketch_pace_s)

    def _connect(self, key: str) -> Provider:
        # Google's SDK takes half a second to import: only whoever has a key waits for it.
        from agent.providers.gemini import GeminiProvider

        settings = self._settings
        return GeminiProvider(
            key,
            self._pictures,
            base_url=settings.gemini_base_url,
            api_version=settings.gemini_api_version,
            text_timeout_s=settings.text_timeout_s,
            image_timeout_s=settings.image_timeout_s,
        )
