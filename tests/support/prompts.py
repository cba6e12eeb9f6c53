"""Messages as a provider is given them, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PIL import Image
from pydantic import JsonValue

from agent import (
    CompletionChunk,
    ContentPart,
    ErrorInfo,
    ImagePart,
    PromptMessage,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.adapters.models import ToolDeclaration
from tests.support.pixels import encoded

LOOK = ToolDeclaration(
    name="look",
    description="Looks at a place.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}},
)


def prompt(text: str, *images: ImagePart) -> PromptMessage:
    """Return what a person says and shows."""
    return PromptMessage(role=Role.PROMPT, parts=(*images, TextPart(text=text)))


def answer(*parts: ContentPart) -> PromptMessage:
    """Return what a model answered."""
    return PromptMessage(role=Role.MODEL, parts=parts)


def results(*parts: ToolResultPart) -> PromptMessage:
    """Return what tools answered."""
    return PromptMessage(role=Role.TOOL, parts=parts)


def message_of(chunks: Iterable[CompletionChunk]) -> PromptMessage:
    """Return the answer that came in these chunks."""
    return answer(*(chunk.part for chunk in chunks if chunk.part is not None))


def calls_of(chunks: Iterable[CompletionChunk]) -> list[ToolCallPart]:
    """Return the calls among these chunks."""
    return [chunk.part for chunk in chunks if isinstance(chunk.part, ToolCallPart)]


def words_of(chunks: Iterable[CompletionChunk]) -> str:
    """Return the words of these chunks, joined."""
    return "".join(chunk.part.text for chunk in chunks if isinstance(chunk.part, TextPart))


def arguments_of(chunks: Iterable[CompletionChunk]) -> list[dict[str, JsonValue]]:
    """Return the arguments of each call among these chunks."""
    return [call.arguments for call in calls_of(chunks)]


def said(*parts: ContentPart | str, role: Role = Role.PROMPT) -> PromptMessage:
    """Return a message of somebody's, its texts given as they are."""
    texts = (TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return PromptMessage(role=role, parts=tuple(texts))


def error_of(chunks: Sequence[CompletionChunk]) -> ErrorInfo:
    """Return the error of the last chunk; no other has one."""
    assert all(chunk.error is None for chunk in chunks[:-1])
    error = chunks[-1].error
    assert error is not None
    return error


def png(colour: str = "red") -> bytes:
    """Return a small picture."""
    return encoded(Image.new("RGB", (8, 8), colour))
