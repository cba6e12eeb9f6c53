"""The interface to models: small protocols. SDK types and errors never leave the module that implements one."""

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
    """A function the model may call: its name, its purpose, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class ChatOptions(Value):
    """Options of a text call.

    `google_search` and tools are never used in one call (docs/architecture.md, What goes to the models): a provider
    refuses it with DesignRuleBroken before anything is sent. `response_schema` asks for JSON of that schema, and
    `shows_thoughts` for a summary of the model's thinking, where the model supports it. Answer and thoughts together
    are at most `max_output_tokens`.
    """

    system: str = ""
    google_search: bool = False
    response_schema: dict[str, JsonValue] | None = None
    thinking_level: str | None = None
    shows_thoughts: bool = False
    max_output_tokens: int | None = None


PLAIN = ChatOptions()


class ImageRequest(Value):
    """A request for one picture.

    `messages` are the image model's own conversation, oldest first, ending with a prompt: earlier model turns contain
    pictures that this model made, with their signatures; every other picture is in a prompt. A setting that is `None`
    is not sent. `take` numbers the pictures requested together, from 1: a model that always paints the same uses it to
    vary. `mask`, of the size of the last prompt's first picture, is white where that picture may change; models without
    masks ignore it, because the prompt and its pictures show them the area. The picture, text and thoughts together are
    at most `max_output_tokens`.
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
    """Where a provider reads the pictures it sends, and stores those it receives before it yields them."""

    async def read(self, image: ImagePart) -> bytes:
        """Return the bytes of the picture. Raises RequestRefused(PICTURE_NOT_FOUND) when they are gone."""
        ...

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        """Persist the bytes and return the reference, without decoding the picture."""
        ...

    async def signature(self, digest: str) -> bytes | None:
        """Return the large signature of a part (`SignedPart.signature_digest`), or None when it is lost."""
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
        """Stream the answer to the messages. Raises only the errors of `agent.errors`, never the SDK's."""
        ...


class ImageModel(Protocol):
    """A model that makes and edits pictures."""

    def generate(self, request: ImageRequest) -> AsyncIterator[CompletionChunk]:
        """Stream the parts of one answer; the last picture that is not a thought is the result."""
        ...


@dataclass(frozen=True)
class Embedding:
    """The result of an embedding call: one vector per text, in order, and the reported usage."""

    vectors: list[list[float]]
    usage: TokenUsage = field(default_factory=TokenUsage)


class Embedder(Protocol):
    """A model that turns texts into vectors, and has an id."""

    @property
    def model_id(self) -> str:
        """The model's id; vectors of two models are not comparable."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedding:
        """Return the texts' vectors. Raises only the errors of `agent.errors`, never the SDK's."""
        ...


class Provider(ChatModel, ImageModel, Protocol):
    """What the studio calls: a text and an image model behind one key, and perhaps an embedding model."""

    def embedder(self, model: ModelEntry) -> Embedder | None:
        """Return the embedding model behind this key, which is closed with the provider, or None."""
        ...

    async def aclose(self) -> None:
        """Close connections; the provider is not used again."""
        ...


def signatures_to_send(messages: Iterable[PromptMessage], model: ModelEntry) -> set[str]:
    """Return the digests of the large signatures that this model issued and that a call sends back to it."""
    parts = (part for message in messages for part in message.parts if isinstance(part, SignedPart))
    return {part.signature_digest for part in parts if part.signature_digest and part.signed_by == model.id}


def pictures_to_send(messages: Iterable[PromptMessage]) -> dict[str, ImagePart]:
    """Return every picture whose bytes a text call needs, by digest."""
    wanted: dict[str, ImagePart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                wanted.update((image.digest, image) for image in part.images)
        wanted.update((image.digest, image) for image in message.images)
    return wanted
