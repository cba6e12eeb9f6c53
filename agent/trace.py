"""The recorded steps of a turn: each model call, each tool call and each node, with its input and output.

A trace contains references to pictures and the lengths of thought signatures, never their bytes, and never a key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias, assert_never

from pydantic import Field, JsonValue

from agent.errors import ErrorInfo
from agent.messages import (
    ContentPart,
    GroundingPart,
    ImagePart,
    PromptMessage,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
    Value,
)

Json: TypeAlias = dict[str, JsonValue]


class StepKind(StrEnum):
    """The kind of a step. A node contains the calls made in it."""

    MODEL = "model"
    TOOL = "tool"
    NODE = "node"


class Retry(Value):
    """A failed attempt that was retried: its error, and the seconds waited before the next attempt."""

    error: ErrorInfo
    pause_s: float


class StepSummary(Value):
    """A step without its input and output.

    `number` counts the steps of the turn from 1 in starting order, and continues when the turn resumes; `within` is the
    number of the node that made the call. `name` is the name of a model call in the journal (`planner:1`), of the tool,
    or of the node; `asks_for` is the kind of answer requested from a model. `at_s` are the seconds of work from the
    start of the turn to the start of the step, `began_at` is the time of day. `source` says where an answer came from:
    a sent call, the journal (the turn had asked before), or the answer cache; without a sent call `attempts` is 0 and
    the price is 0. `led_to` is the next node after a node. `has_failed` is set without an `error` when a tool returned
    an error to the model.
    """

    turn_id: str
    number: int
    within: int | None = None
    kind: StepKind
    node: str
    name: str
    provider: str = ""
    model: str = ""
    model_label: str = ""
    asks_for: Literal["", "words", "picture", "vectors"] = ""
    began_at: datetime
    at_s: float
    seconds: float
    attempts: int = 0
    retries: tuple[Retry, ...] = ()
    source: Literal["sent", "journal", "cache"] = "sent"
    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0
    finish_reason: str = ""
    led_to: str = ""
    error: ErrorInfo | None = None
    has_failed: bool = False
    was_cancelled: bool = False

    @property
    def is_trouble(self) -> bool:
        """Whether anything went wrong in the step, even if a retry succeeded."""
        return self.has_failed or self.was_cancelled or bool(self.retries)


class TraceStep(StepSummary):
    """A step with its full input and output, as JSON.

    `sent` contains, for a text call, `system`, `messages`, `tools` (their names) and the chosen options; for an image
    call `messages`, `aspect_ratio`, `resolution`, `use_grounding`, `take` and `mask`; for an embedding its `texts`; for
    a tool its `arguments` and the provider's `call_id`. `came` contains a model's `parts`, the `content` and `images`
    of a tool's result as sent to the model, or the number of `vectors` and their `dimension`. Messages and parts have
    the format of `message_json`. `cuts` counts the values that were shortened to keep the record small;
    `is_left_out` is true when the turn had used up its space: then `sent` and `came` are empty.
    """

    sent: Json = Field(default_factory=dict)
    came: Json = Field(default_factory=dict)
    cuts: int = 0
    is_left_out: bool = False


def message_json(message: PromptMessage) -> Json:
    """Return a message as JSON: its role, and the parts in order."""
    return {"role": message.role.value, "parts": [part_json(part) for part in message.parts]}


def part_json(part: ContentPart) -> Json:
    """Return a part as JSON: a picture as a reference, a signature as its length or digest."""
    match part:
        case TextPart():
            thought: Json = {"is_thought": True} if part.is_thought else {}
            return {"type": part.type, "text": part.text, **thought, **_signature(part)}
        case ImagePart():
            return {"type": part.type, **image_json(part), **_signature(part)}
        case ToolCallPart():
            call: Json = {"name": part.name, "call_id": part.call_id, "arguments": part.arguments}
            return {"type": part.type, **call, **_signature(part)}
        case ToolResultPart():
            images: list[JsonValue] = [image_json(image) for image in part.images]
            result: Json = {"call_id": part.call_id, "is_error": part.is_error, "content": part.content}
            return {"type": part.type, "name": part.name, **result, "images": images}
        case GroundingPart():
            sources: list[JsonValue] = [source.model_dump() for source in part.sources]
            searched: Json = {"queries": list(part.queries), "sources": sources}
            return {"type": part.type, **searched, "suggestions_characters": len(part.suggestions_html)}
        case _:
            assert_never(part)


def image_json(image: ImagePart) -> Json:
    """Return the reference to a picture as JSON."""
    return {
        "handle": image.handle,
        "digest": image.digest,
        "mime_type": image.mime_type,
        "size_bytes": image.size_bytes,
        "width": image.width,
        "height": image.height,
        "origin": image.origin.value,
    }


def usage_json(usage: TokenUsage) -> Json:
    """Return tokens as JSON, with their sum."""
    return {**usage.model_dump(), "total_tokens": usage.total_tokens}


def _signature(part: TextPart | ImagePart | ToolCallPart) -> Json:
    if part.signature_digest is not None:
        return {"signature_digest": part.signature_digest, "signed_by": part.signed_by}
    if part.thought_signature is None:
        return {}
    return {"thought_signature_bytes": len(part.thought_signature), "signed_by": part.signed_by}


# Objects keep more entries than lists: they have known fields, which matter more than the hundredth entry of a list.
_LEAST_FIELDS = 16


class Cutter:
    """Shortens JSON values: texts to `characters`, each passed through `cleaned` first, lists and objects to `entries`.

    It replaces lone surrogates, and infinite and NaN numbers. `cuts` counts the cuts."""

    def __init__(
        self, characters: int | None, entries: int | None = None, cleaned: Callable[[str], str] = lambda text: text
    ) -> None:
        self._characters = characters
        self._entries = entries
        self._cleaned = cleaned
        self.cuts = 0

    def cut(self, value: JsonValue) -> JsonValue:
        """Return the value, shortened where necessary."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, list):
            short = [self.cut(one) for one in value[: self._entries]]
            return [*short, f"[{left} more]"] if (left := self._left(len(value), len(short))) else short
        if isinstance(value, dict):
            fields = list(value.items())[: self._entries and max(self._entries, _LEAST_FIELDS)]
            named = {self._text(name): self.cut(one) for name, one in fields}
            return {**named, "[more]": left} if (left := self._left(len(value), len(fields))) else named
        return value

    def _left(self, count: int, kept: int) -> int:
        self.cuts += count > kept
        return count - kept

    def _text(self, text: str) -> str:
        # A lone surrogate, as in broken JSON, cannot be written to a file.
        text = self._cleaned(text.encode("utf-8", "replace").decode())
        if self._characters is None or len(text) <= self._characters:
            return text
        self.cuts += 1
        half = self._characters // 2
        return f"{text[:half]} […{len(text) - 2 * half} characters left out…] {text[-half:]}"
