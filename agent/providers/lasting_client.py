"""A provider that may be let go of while it is used: its connections are closed once no call needs them any more."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from agent.messages import CompletionChunk, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, Embedder, Embedding, ImageRequest, Provider, ToolDeclaration
from agent.providers.catalogue import ModelEntry


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
