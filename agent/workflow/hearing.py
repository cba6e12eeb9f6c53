"""Listening to a model: the chunks of one call gathered into one answer, whatever way it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.messages import (
    CompletionChunk,
    ContentPart,
    GroundingPart,
    ImagePart,
    PromptMessage,
    Role,
    TextPart,
    TokenUsage,
    ToolCallPart,
    is_visible,
)

# Words as they come, and whether they are a thought.
OnText: TypeAlias = Callable[[str, bool], Awaitable[None]]


@dataclass
class Answer:
    """What one call brought: parts in order, what it used, and how it failed if it did."""

    parts: list[ContentPart] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    finish_reason: str = ""
    error: ErrorInfo | None = None

    @property
    def message(self) -> PromptMessage:
        """The answer as a message of the history."""
        return PromptMessage(role=Role.MODEL, parts=tuple(self.parts))

    @property
    def text(self) -> str:
        """The words, nothing where none of them would be seen."""
        text = self.message.text.strip()
        return text if is_visible(text) else ""

    @property
    def is_silent(self) -> bool:
        """Whether nothing has come but what the model says of its thinking."""
        return all(isinstance(part, TextPart) and part.is_thought for part in self.parts)

    @property
    def calls(self) -> list[ToolCallPart]:
        """The tools asked for, in order."""
        return [part for part in self.parts if isinstance(part, ToolCallPart)]

    @property
    def pictures(self) -> list[ImagePart]:
        """All pictures, each once, in order; one that came twice stands where it came last."""
        found = {part.digest: part for part in reversed(self.parts) if isinstance(part, ImagePart)}
        return list(reversed(found.values()))

    @property
    def picture(self) -> ImagePart | None:
        """The result of an image model: its last picture."""
        return next(reversed(self.pictures), None)

    @property
    def grounding(self) -> GroundingPart | None:
        """What a search rested on."""
        return next((part for part in reversed(self.parts) if isinstance(part, GroundingPart)), None)


async def hear(
    chunks: AsyncIterator[CompletionChunk],
    on_text: OnText | None = None,
    *,
    on_chunk: Callable[[], None] = lambda: None,
    limit_s: float | None = None,
    model_label: str = "",
) -> Answer:
    """Gather the chunks of one call. A failure does not raise: it becomes the answer's `error`, parts so far kept.

    Words are handed to `on_text` as they come, and whether they are a thought; `on_chunk` hears of every chunk.
    Unsigned neighbouring texts are joined; a signed part stays as it came, because a signature belongs to its part and
    its place. An answer that has not ended after `limit_s` is given up, however often something still comes.
    """
    answer = Answer()
    words: list[TextPart] = []
    try:
        async with asyncio.timeout(limit_s) as deadline:
            async for chunk in chunks:
                on_chunk()
                part = chunk.part
                if isinstance(part, TextPart):
                    if on_text is not None and part.text:
                        await on_text(part.text, part.is_thought)
                    if words and not _can_join(words[-1], part):
                        answer.parts.append(_joined(words))
                    words.append(part)
                elif part is not None:
                    answer.parts += [_joined(words)] if words else []
                    answer.parts.append(part)
                _note_end(answer, chunk)
    except AivistaError as error:
        answer.error = error.info
    except TimeoutError:
        if not deadline.expired():
            raise
        parameters: dict[str, str | int | float] = {"model": model_label, "seconds": f"{limit_s:g}"}
        answer.error = ErrorInfo(code=ErrorCode.ANSWER_TOO_SLOW, parameters=parameters)
    finally:
        answer.parts += [_joined(words)] if words else []
        # A generator left open would keep its HTTP stream until it is collected.
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
    if answer.error is None and not (answer.text or answer.calls or answer.pictures):
        answer.error = ErrorInfo(code=ErrorCode.EMPTY_ANSWER)
    return answer


def _note_end(answer: Answer, chunk: CompletionChunk) -> None:
    if chunk.usage is not None:
        answer.usage = chunk.usage
    if chunk.finish_reason:
        answer.finish_reason = chunk.finish_reason
    if chunk.error is not None:
        answer.error = chunk.error


def _joined(words: list[TextPart]) -> TextPart:
    """Return the gathered texts as one part, and empty the list."""
    first = words[0]
    part = first if len(words) == 1 else TextPart(text="".join(one.text for one in words), is_thought=first.is_thought)
    words.clear()
    return part


def _can_join(last: TextPart, part: TextPart) -> bool:
    return last.is_thought == part.is_thought and last.thought_signature is None and part.thought_signature is None
