"""The studio's providers: the built-in sketch model, the operator's own server, and a Gemini client per key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from cachetools import LRUCache
from pydantic import SecretStr

from agent.messages import CompletionChunk, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, Embedder, ImageRequest, PictureBytes, Provider, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.providers.key_status import KeyChecker, KeyDiagnosis
from agent.settings import ProviderChoice, Settings

if TYPE_CHECKING:
    import httpx2

    from agent.providers.sketch.intent import FindLook

# A caller with this key is served without any key, not even the operator's.
NO_KEY = SecretStr("")

# Providers in order of preference, by the operator's choice: the first one that can serve is used.
_IN_ORDER: Mapping[ProviderChoice | None, Sequence[ProviderChoice]] = {
    None: ("gemini", "openai", "sketch"),
    "gemini": ("gemini", "sketch"),
    "openai": ("openai", "gemini", "sketch"),
    "sketch": ("sketch",),
}


class ProviderPool:
    """Providers by key, with at most `most_clients` clients of Gemini; an evicted client still works for its holders.

    Remote models read `pictures`; the sketch model reads `originals`, if given, because it works on the pixels. All
    Gemini clients share the same connections: the key is sent with each request.
    """

    def __init__(
        self,
        settings: Settings,
        pictures: PictureBytes,
        *,
        originals: PictureBytes | None = None,
        sketch_pace_s: float = 0.0,
        most_clients: int = 32,
        find_look: FindLook | None = None,
    ) -> None:
        self._settings = settings
        self._pictures = pictures
        self._originals = originals or pictures
        self._sketch_pace_s = sketch_pace_s
        self._find_look = find_look
        self._sketch: Provider | None = None
        self._openai: Provider | None = None
        # Keyed by the secret object, not by its text: a dump of this object must not show a key.
        self._clients: LRUCache[SecretStr, KeyChecker] = LRUCache(most_clients)
        self._http: httpx2.AsyncClient | None = None

    def name(self, key: SecretStr | None) -> ProviderChoice:
        """Return which provider serves this key.

        It follows the operator's choice, if that can serve; without a choice `gemini` where there is a key, else
        `openai` where there is such a server, else `sketch`. With `NO_KEY`, nothing that needs one of the operator's
        keys is used.
        """
        server = self._settings.openai
        serves: Mapping[ProviderChoice, bool] = {
            "gemini": self.key_used(key) is not None,
            "openai": server is not None and not (key == NO_KEY and server.has_key),
            "sketch": True,
        }
        return next(name for name in _IN_ORDER[self._settings.provider] if serves[name])

    async def provider(self, key: SecretStr | None) -> Provider:
        """Return the provider for the key; None means the operator's own key."""
        makers: Mapping[ProviderChoice, Callable[[], Awaitable[Provider]]] = {
            "gemini": partial(self.gemini, self.key_used(key) or NO_KEY),
            "openai": self._reach,
            "sketch": self._draw,
        }
        return await makers[self.name(key)]()

    async def gemini(self, secret: SecretStr) -> Provider:
        """Return the Gemini provider for this key, whichever provider serves the turns."""
        # Another caller may have created it meanwhile.
        return self._clients.get(secret) or self._clients.setdefault(secret, await self._connect(secret))

    async def check(self, secret: SecretStr, models: Sequence[ModelEntry], *, tries_models: bool) -> KeyDiagnosis:
        """Return what a key can do; the client is not cached, because many keys are tested and never used."""
        checker = await self._connect(secret)
        return await checker.check(models, tries_models=tries_models)

    async def aclose(self) -> None:
        """Close every connection."""
        self._clients.clear()
        if self._http is not None:
            await self._http.aclose()
            self._http = None
        if self._openai is not None:
            await self._openai.aclose()
            self._openai = None

    def key_used(self, key: SecretStr | None) -> SecretStr | None:
        """Return the key for Gemini: the given one, the operator's for None, or None if there is none."""
        return (self._settings.gemini_api_key if key is None else key) or None

    async def _draw(self) -> Provider:
        from agent.providers.sketch import SketchProvider

        self._sketch = self._sketch or SketchProvider(
            self._originals, pace_s=self._sketch_pace_s, find_look=self._find_look
        )
        return self._sketch

    async def _reach(self) -> Provider:
        from agent.providers.openai_compatible import OpenAIProvider

        if self._openai is None:
            settings, server = self._settings, self._settings.openai
            assert server is not None, "`name` says which provider can serve"
            words = OpenAIProvider(
                server,
                self._pictures,
                # The server may be silent this long: it loads its model first, and sends nothing while it paints.
                text_timeout_s=settings.text_deadline_s,
                image_timeout_s=settings.image_deadline_s,
            )
            paints = server.image_model is not None
            self._openai = words if paints else _WordsAndSketches(words, await self._draw())
        return self._openai

    async def _connect(self, key: SecretStr) -> KeyChecker:
        # Google's SDK takes half a second to import: only users with a key should wait for it.
        await asyncio.to_thread(import_module, "agent.providers.gemini")
        from agent.providers.gemini import GeminiProvider
        from agent.providers.gemini_connection import gemini_http

        settings, self._http = self._settings, self._http or gemini_http()
        return GeminiProvider(
            key.get_secret_value(),
            self._pictures,
            base_url=settings.gemini_base_url,
            api_version=settings.gemini_api_version,
            text_timeout_s=settings.text_timeout_s,
            image_timeout_s=settings.image_timeout_s,
            http=self._http,
        )


@dataclass(frozen=True)
class _WordsAndSketches:
    """A server without an image model, with the sketch model in its place."""

    words: Provider
    sketches: Provider

    def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncIterator[CompletionChunk]:
        return self.words.stream(model, messages, tools, options)

    def generate(self, request: ImageRequest) -> AsyncIterator[CompletionChunk]:
        return self.sketches.generate(request)

    def embedder(self, model: ModelEntry) -> Embedder | None:
        return self.words.embedder(model)

    async def aclose(self) -> None:
        await self.words.aclose()
