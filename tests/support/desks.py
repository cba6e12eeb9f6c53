"""A provider at its strict server, with a shelf for its pictures: what a test asks it and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from agent import CompletionChunk, ImageOrigin, ImagePart, PromptMessage
from tests.adapters.models import Catalogue, GeminiProvider, ImageRequest, ModelEntry, OpenAIProvider, load_catalogue
from tests.openai_server import OpenAIServer
from tests.support.openai import openai_settings, own_catalogue
from tests.support.prompts import png
from tests.support.shelf import Shelf
from tests.wire_server import GeminiServer

S = TypeVar("S", GeminiServer, OpenAIServer)
P = TypeVar("P", GeminiProvider, OpenAIProvider)
OPENAI_KEY = "sk-test-key-that-nobody-owns-0123456789"
GEMINI_KEY = "AIzaSyTestKeyThatNobodyOwns0123456789"


@dataclass
class Desk(Generic[P, S]):
    """A provider and its server. Models are named by their ids, or given."""

    provider: P
    server: S
    catalogue: Catalogue
    shelf: Shelf = field(default_factory=Shelf)

    def model(self, name: str) -> ModelEntry:
        """Return the model of this id."""
        entry = self.catalogue.by_id(name)
        assert entry is not None, name
        return entry

    def stream(self, model: str | ModelEntry, *messages: PromptMessage, **options: Any) -> Any:
        """Ask for words; return the chunks as they come."""
        return self.provider.stream(self.model(model) if isinstance(model, str) else model, messages, **options)

    def painting(self, model: str | ModelEntry, *messages: PromptMessage, **options: Any) -> Any:
        """Ask for a picture; return the chunks as they come."""
        asked = {"model": self.model(model) if isinstance(model, str) else model, "messages": messages, **options}
        return self.provider.generate(ImageRequest.model_validate(asked))

    async def say(self, model: str | ModelEntry, *messages: PromptMessage, **options: Any) -> list[CompletionChunk]:
        """Ask for words; return all chunks."""
        return [chunk async for chunk in self.stream(model, *messages, **options)]

    async def paint(self, model: str | ModelEntry, *messages: PromptMessage, **options: Any) -> list[CompletionChunk]:
        """Ask for a picture; return all chunks."""
        return [chunk async for chunk in self.painting(model, *messages, **options)]

    async def upload(self, data: bytes | None = None, mime_type: str = "image/png", **fields: Any) -> ImagePart:
        """Put a picture of the person's on the shelf."""
        part = await self.shelf.write(png() if data is None else data, mime_type, ImageOrigin.UPLOADED)
        return part.model_copy(update=fields)

    async def cancel(self, call: Coroutine[Any, Any, Any]) -> None:
        """Cancel a call as soon as its answer is held; return when the server has noticed."""
        await asyncio.to_thread(self.server.wait_until, lambda: not self.server.held)
        before, task = len(self.server.disconnects), asyncio.create_task(call)
        await asyncio.to_thread(self.server.wait_for_held)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(self.server.wait_for_disconnect, before + 1)


GeminiDesk = Desk[GeminiProvider, GeminiServer]
OpenAIDesk = Desk[OpenAIProvider, OpenAIServer]


@asynccontextmanager
async def at_gemini(server: GeminiServer, key: str = GEMINI_KEY, **options: Any) -> AsyncIterator[GeminiDesk]:
    """Give Google's provider at a server."""
    shelf = Shelf()
    async with aclosing(GeminiProvider(key, shelf, **dict[str, Any](base_url=server.url) | options)) as provider:
        yield Desk(provider, server, load_catalogue(), shelf)


@asynccontextmanager
async def at_openai(
    server: OpenAIServer,
    folder: Path | None = None,
    key: str | None = OPENAI_KEY,
    *,
    text_timeout_s: float = 60,
    image_timeout_s: float = 60,
    **fields: Any,
) -> AsyncIterator[OpenAIDesk]:
    """Give the provider of OpenAI's API at a server; with a folder it knows the operator's own models as well."""
    settings, shelf = openai_settings(server, key=key, **fields), Shelf()
    own = own_catalogue(folder) if folder else None
    made = OpenAIProvider(settings, shelf, text_timeout_s=text_timeout_s, image_timeout_s=image_timeout_s)
    async with aclosing(made) as provider:
        yield Desk(provider, server, load_catalogue(own=own, openai=settings), shelf)
