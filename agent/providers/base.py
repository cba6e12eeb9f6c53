"""The boundary to models: one verb a protocol. SDK types and errors stop in the file behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import Field, JsonValue

from agent.messages import (
    CompletionChunk,
    ImageOrigin,
    ImagePart,
    PromptMessage,
    SignedPart,
    TokenUsage,
    ToolResultPart,
    Value,
)
from agent.providers.catalogue import ModelEntry


class ToolDeclaration(Value):
    """A function the model may call: its name, what it is for, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class ChatOptions(Value):
    """How a text model is to answer.

    `google_search` and tools are never used in one call (docs/architecture.md, What goes to the models): a provider
    refuses it with DesignRuleBroken before anything is sent. `response_schema` asks for JSON of that schema, and
    `shows_thoughts` for what the model says of its thinking, where it does. Words and thoughts together are no more
    than `max_output_tokens`.
    """

    system: str = ""
    google_search: bool = False
    response_schema: dict[str, JsonValue] | None = None
    thinking_level: str | None = None
    shows_thoughts: bool = False
    max_output_tokens: int | None = None


PLAIN = ChatOptions()


class ImageRequest(Value):
    """One picture to be made.

    `messages` are the image model's own conversation, oldest first, ending with a prompt: earlier model turns hold
    pictures this model made, with their signatures; every other picture stands in a prompt. A setting that is `None`
    is not sent. `take` counts the pictures asked for at once, from 1: a model that always paints the same varies by it.
    `mask`, of the size of the last prompt's first picture, is white where that one may change; models that take no
    masks are shown the part in the pictures and told of it in the prompt, and leave it unread. The picture, its words
    and thoughts together are no more than `max_output_tokens`.
    """

    model: ModelEntry
    messages: tuple[PromptMessage, ...] = Field(min_length=1)
    aspect_ratio: str | None = None
    resolution: str | None = None
    use_grounding: bool = False
    take: int = 1
    mask: ImagePart | None = None
    max_output_tokens: int | None = None


class PictureBytes(Protocol):
    """Where a provider reads the pictures it sends and puts those it gets, before it speaks of them."""

    async def read(self, image: ImagePart) -> bytes:
        """Return the bytes behind the reference. Raises RequestRefused(PICTURE_NOT_FOUND) when they are gone."""
        ...

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        """Store the bytes durably and return the reference, without a look into the picture."""
        ...

    async def signature(self, digest: str) -> bytes | None:
        """Return the large signature that a part names (`SignedPart.signature_digest`), None when it is lost."""
        ...


class ChatModel(Protocol):
    """A text model that sees pictures and calls tools."""

    def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncIterator[CompletionChunk]:
        """Stream the answer to the messages. Raises the errors of `agent.errors`, never the SDK's."""
        ...


class ImageModel(Protocol):
    """A model that makes and edits pictures."""

    def generate(self, request: ImageRequest) -> AsyncIterator[CompletionChunk]:
        """Stream the parts of one answer; the last picture that is not a thought is the result."""
        ...


@dataclass(frozen=True)
class Embedding:
    """What texts became: one vector for each, in order, and what the model says it used for them."""

    vectors: list[list[float]]
    usage: TokenUsage = field(default_factory=TokenUsage)


class Embedder(Protocol):
    """A model that turns texts into vectors, and says which it is."""

    @property
    def model_id(self) -> str:
        """The model's id; vectors of two models are not comparable."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedding:
        """Return the texts' vectors. Raises the errors of `agent.errors`, never the SDK's."""
        ...


class Provider(ChatModel, ImageModel, Protocol):
    """What the studio talks to: a text and an image model behind one key, and perhaps one that embeds."""

    def embedder(self, model: ModelEntry) -> Embedder | None:
        """Return the embedding model behind this key, closed with it, or None where there is none."""
        ...

    async def aclose(self) -> None:
        """Close connections; the provider is not used again."""
        ...


def signatures_to_send(messages: Iterable[PromptMessage], model: ModelEntry) -> set[str]:
    """Return the digests of the large signatures that a call of this model sends back: those it issued."""
    parts = (part for message in messages for part in message.parts if isinstance(part, SignedPart))
    return {part.signature_digest for part in parts if part.signature_digest and part.signed_by == model.id}


def pictures_to_send(messages: Iterable[PromptMessage]) -> dict[str, ImagePart]:
    """Return every picture whose bytes a text call needs, once each, by digest."""
    wanted: dict[str, ImagePart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                wanted.update((image.digest, image) for image in part.images)
        wanted.update((image.digest, image) for image in message.images)
    return wanted
