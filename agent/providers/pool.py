"""The providers of the studio: the built-in sketch, the operator's own server, one Gemini client for each key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agent.errors import SettingsError
from agent.messages import CompletionChunk, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, Embedder, ImageRequest, PictureBytes, Provider, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.providers.key_status import KeyChecker, KeyDiagnosis
from agent.settings import OpenAISettings, ProviderChoice, Settings

if TYPE_CHECKING:
    from agent.providers.sketch.wishes import FindLook
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent.providers.base import Embedding

# Whoever brings this is served without any key, not with the operator's either.
NO_KEY = SecretStr("")

_MOST_CLIENTS = 32
# Who is asked first, by the operator's choice: the first one that can serve.
_IN_ORDER: Mapping[ProviderChoice | None, Sequence[ProviderChoice]] = {
    None: ("gemini", "openai", "sketch"),
    "gemini": ("gemini", "sketch"),
    "openai": ("openai", "gemini", "sketch"),
    "sketch": ("sketch",),
}
_OPENAI_SDK = "openai"


class ProviderPool:
    """Providers by key, at most `most_clients` of them with connections that nobody uses.

    Models elsewhere read `pictures`, the sketch model `originals` where they are given: it works on the pixels.
    A client is kept alive: one that is collected closes its connections under a running call.
    """

    def __init__(
        self,
        settings: Settings,
        pictures: PictureBytes,
        *,
        originals: PictureBytes | None = None,
        sketch_pace_s: float = 0.0,
        most_clients: int = _MOST_CLIENTS,
        find_look: FindLook | None = None,
    ) -> None:
        self._settings = settings
        self._pictures = pictures
        self._originals = originals or pictures
        self._sketch_pace_s = sketch_pace_s
        self._find_look = find_look
        self._most_clients = most_clients
        self._sketch: Provider | None = None
        self._openai: Provider | None = None
        # By the secret itself, not its text: whatever shows this object must not show a key.
        self._clients: OrderedDict[SecretStr, LastingClient] = OrderedDict()

    def name(self, key: SecretStr | None) -> ProviderChoice:
        """Return which provider serves this key.

        The one the operator named; else `gemini` where there is a key, `openai` where there is such a server, and
        `sketch` where there is neither. With `NO_KEY` nothing that needs a key of the operator's.
        """
        server = self._settings.openai
        serves: Mapping[ProviderChoice, bool] = {
            "gemini": self.key_used(key) is not None,
            "openai": server is not None and not (key == NO_KEY and server.has_key),
            "sketch": True,
        }
        return next(name for name in _IN_ORDER[self._settings.provider] if serves[name])

    async def provider(self, key: SecretStr | None) -> Provider:
        """Return the provider for the key; the operator's own key serves those who bring none.

        Raises SettingsError when the provider needs a package that is not installed.
        """
        makers: Mapping[ProviderChoice, Callable[[SecretStr], Awaitable[Provider]]] = {
            "gemini": self.gemini,
            "openai": self._reach,
            "sketch": self._draw,
        }
        return await makers[self.name(key)](self.key_used(key) or NO_KEY)

    async def gemini(self, secret: SecretStr) -> Provider:
        """Return Gemini behind this key, whichever provider serves the turns; it works for as long as it is held."""
        if secret in self._clients:
            self._clients.move_to_end(secret)
            return self._clients[secret]
        client = LastingClient(lambda: self._connect(secret))
        self._clients[secret] = client
        if len(self._clients) > self._most_clients:
            _, oldest = self._clients.popitem(last=False)
            await oldest.let_go()
        return client

    async def check(self, secret: SecretStr, models: Sequence[ModelEntry], *, tries_models: bool) -> KeyDiagnosis:
        """Return what a key can do, on a connection of its own: many keys are tried that are never used."""
        checker = self._connect(secret)
        try:
            return await checker.check(models, tries_models=tries_models)
        finally:
            await checker.aclose()

    async def aclose(self) -> None:
        """Close every client."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()
        if self._openai is not None:
            await self._openai.aclose()
            self._openai = None

    def key_used(self, key: SecretStr | None) -> SecretStr | None:
        """Return the key that Gemini is asked with: the one that is brought, the operator's for None, or none."""
        return (self._settings.gemini_api_key if key is None else key) or None

    async def _draw(self, _: SecretStr) -> Provider:
        from agent.providers.sketch import SketchProvider

        self._sketch = self._sketch or SketchProvider(
            self._originals, pace_s=self._sketch_pace_s, find_look=self._find_look
        )
        return self._sketch

    async def _reach(self, key: SecretStr) -> Provider:
        if self._openai is None:
            settings = self._settings.openai
            assert settings is not None, "`name` says which provider can serve"
            server = self._connect_server(settings)
            paints = settings.image_model is not None
            self._openai = server if paints else _WordsAndSketches(server, await self._draw(key))
        return self._openai

    def _connect_server(self, server: OpenAISettings) -> Provider:
        try:
            from agent.providers.openai_compatible import OpenAIProvider
        except ModuleNotFoundError as error:
            if error.name != _OPENAI_SDK:
                raise
            problem = "it needs one more package. Install it with: pip install 'aivista[openai]'"
            raise SettingsError("AIVISTA_OPENAI_BASE_URL", server.base_url, problem) from None
        settings = self._settings
        return OpenAIProvider(
            server, self._pictures, text_timeout_s=settings.text_timeout_s, image_timeout_s=settings.image_timeout_s
        )

    def _connect(self, key: SecretStr) -> KeyChecker:
        # Google's SDK takes half a second to import: only whoever has a key waits for it.
        from agent.providers.gemini import GeminiProvider

        settings = self._settings
        return GeminiProvider(
            key.get_secret_value(),
            self._pictures,
            base_url=settings.gemini_base_url,
            api_version=settings.gemini_api_version,
            text_timeout_s=settings.text_timeout_s,
            image_timeout_s=settings.image_timeout_s,
        )


@dataclass(frozen=True)
class _WordsAndSketches:
    """A server that only talks, with the sketch model to paint."""

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


# ---- a client that may be let go of while it is used


class LastingClient:
    """A provider for whoever holds it, however long: one that was let go of connects anew when it is asked again.

    A turn makes many calls with one provider, and pauses between them; nobody could tell whether it needs it once more.
    """

    def __init__(self, connect: Callable[[], Provider]) -> None:
        self._connect = connect
        self._provider: Provider | None = connect()
        self._calls = 0
        self._is_let_go = False

    async def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncGenerator[CompletionChunk, None]:
        """Stream the text model's answer; see `ChatModel.stream`."""
        async with self.used() as provider, _closed(provider.stream(model, messages, tools, options)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def generate(self, request: ImageRequest) -> AsyncGenerator[CompletionChunk, None]:
        """Stream the image model's answer; see `ImageModel.generate`."""
        async with self.used() as provider, _closed(provider.generate(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    def embedder(self, model: ModelEntry) -> Embedder | None:
        """Return the embedding model, None where there is none."""
        found = self._connected().embedder(model)
        return _Embedder(self, model, found.model_id, found.dimension) if found is not None else None

    async def let_go(self) -> None:
        """Close the connections as soon as no call uses them."""
        self._is_let_go = True
        await self._close_unused()

    async def aclose(self) -> None:
        """Close the connections, under whatever call."""
        provider, self._provider = self._provider, None
        if provider is not None:
            await provider.aclose()

    @asynccontextmanager
    async def used(self) -> AsyncIterator[Provider]:
        """Keep the connections open for the block."""
        self._calls += 1
        try:
            yield self._connected()
        finally:
            self._calls -= 1
            await self._close_unused()

    def _connected(self) -> Provider:
        self._provider = self._provider or self._connect()
        return self._provider

    async def _close_unused(self) -> None:
        if self._is_let_go and not self._calls:
            await self.aclose()


@dataclass(frozen=True)
class _Embedder:
    """The embedding model of a client."""

    client: LastingClient
    model: ModelEntry
    model_id: str
    dimension: int

    async def embed(self, texts: Sequence[str]) -> Embedding:
        async with self.client.used() as provider:
            embedder = provider.embedder(self.model)
            assert embedder is not None
            return await embedder.embed(texts)


@asynccontextmanager
async def _closed(chunks: AsyncIterator[CompletionChunk]) -> AsyncIterator[AsyncIterator[CompletionChunk]]:
    """End the block with the generator: left to the garbage collector it would keep its HTTP stream."""
    if isinstance(chunks, AsyncGenerator):
        async with aclosing(chunks):
            yield chunks
    else:
        yield chunks
