"""A provider that plays a script, for tests and demonstrations: no network, no key, no waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from agent.errors import AivistaError, ErrorInfo
from agent.messages import (
    CompletionChunk,
    ContentPart,
    GroundingPart,
    ImageOrigin,
    PromptMessage,
    TextPart,
    TokenUsage,
    ToolCallPart,
)
from agent.providers.base import PLAIN, ChatOptions, Embedder, ImageRequest, PictureBytes, ToolDeclaration
from agent.providers.catalogue import ModelEntry


@dataclass(frozen=True)
class Painting:
    """A picture of the script: its bytes, and its signature."""

    data: bytes
    mime_type: str = "image/png"
    signature: bytes | None = None
    text_before: str = ""


@dataclass(frozen=True)
class Hold:
    """A pause in an answer until the event is set."""

    until: asyncio.Event


_A_LITTLE = TokenUsage(prompt_tokens=100, output_tokens=20)


@dataclass(frozen=True)
class Line:
    """One answer of the script: its parts in order, then how it ends."""

    parts: tuple[ContentPart | Painting | Hold, ...] = ()
    usage: TokenUsage = _A_LITTLE
    finish_reason: str = "STOP"
    error: ErrorInfo | None = None
    raises: AivistaError | None = None


@dataclass(frozen=True)
class Asked:
    """A recorded call: a text call has tools and options, an image call has a request."""

    model: ModelEntry
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolDeclaration, ...] = ()
    options: ChatOptions = PLAIN
    request: ImageRequest | None = None


Script = Iterable[Line] | Callable[[Asked], Line]


def says(text: str) -> Line:
    """Return a text answer, streamed word by word."""
    words = text.split(" ")
    return Line(tuple(TextPart(text=word + " " * (i + 1 < len(words))) for i, word in enumerate(words)))


def calls(*tool_calls: ToolCallPart, text: str = "") -> Line:
    """Return an answer that calls tools, after some text."""
    return Line(((TextPart(text=text),) if text else ()) + tool_calls)


def finds(text: str, grounding: GroundingPart) -> Line:
    """Return the answer of a search, with its sources."""
    return Line((TextPart(text=text), grounding))


@dataclass
class ScriptedProvider:
    """Plays `text` for the text model and `pictures` for the image model, and records all calls.

    `embeds` is its embedding model, if any.
    """

    store: PictureBytes
    text: Script = ()
    pictures: Script = ()
    asked: list[Asked] = field(default_factory=list)
    embeds: Embedder | None = None

    def __post_init__(self) -> None:
        self._text = _player(self.text)
        self._pictures = _player(self.pictures)

    async def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncIterator[CompletionChunk]:
        """Play the next line of the text script."""
        asked = Asked(model, tuple(messages), tuple(tools), options)
        self.asked.append(asked)
        async for chunk in self._play(self._text(asked), model):
            yield chunk

    async def generate(self, request: ImageRequest) -> AsyncIterator[CompletionChunk]:
        """Play the next line of the picture script."""
        asked = Asked(request.model, request.messages, request=request)
        self.asked.append(asked)
        async for chunk in self._play(self._pictures(asked), request.model):
            yield chunk

    def embedder(self, model: ModelEntry) -> Embedder | None:
        """Return the given embedding model."""
        return self.embeds

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    async def _play(self, line: Line, model: ModelEntry) -> AsyncIterator[CompletionChunk]:
        for part in line.parts:
            if isinstance(part, Hold):
                await part.until.wait()
            elif isinstance(part, Painting):
                async for chunk in self._paint(part, model):
                    yield chunk
            else:
                yield CompletionChunk(part=part)
        if line.raises is not None:
            raise line.raises
        yield CompletionChunk(usage=line.usage, finish_reason=line.finish_reason, error=line.error)

    async def _paint(self, painting: Painting, model: ModelEntry) -> AsyncIterator[CompletionChunk]:
        if painting.text_before:
            yield CompletionChunk(part=TextPart(text=painting.text_before))
        part = await self.store.write(painting.data, painting.mime_type, ImageOrigin.GENERATED)
        signed = {"thought_signature": painting.signature, "signed_by": model.id if painting.signature else None}
        yield CompletionChunk(part=part.model_copy(update=signed))


def _player(script: Script) -> Callable[[Asked], Line]:
    if callable(script):
        return script
    lines = iter(script)

    def play(asked: Asked) -> Line:
        try:
            return next(lines)
        except StopIteration:
            raise RuntimeError(f"the script has no line left for {asked.model.id}") from None

    return play
