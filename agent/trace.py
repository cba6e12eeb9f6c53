"""What is on record of a turn's steps: each call of a model, each tool, each node, with what went in and what came out.

Pictures are references in it and thought signatures are lengths: no byte of either, and never a key.
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
    """What a step is. A node holds the calls that were made in it."""

    MODEL = "model"
    TOOL = "tool"
    NODE = "node"


class Retry(Value):
    """A try that failed and was made again: why, and how many seconds were waited before the next one."""

    error: ErrorInfo
    pause_s: float


class StepSummary(Value):
    """A step in a line.

    `number` counts the steps of the turn in the order in which they began, from 1, also when it goes on after a rest;
    `within` is the number of the node that made the call. `name` is a model call's in the journal (`planner:1`), the
    tool's, or the node's own; `asks_for` is what a model was asked for. `at_s` are the seconds of work from the turn's
    beginning to the step's, and `began_at` the moment. `source` says where an answer came from when nothing was sent
    for it: the journal, where the turn had asked before, or the cache of answers; then `attempts` is 0 and it cost
    nothing. `led_to` is the node that a node led to. `has_failed` is set without an `error` when a tool told the model
    that it could not do it.
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
        """Whether anything went wrong in it, mended or not."""
        return self.has_failed or self.was_cancelled or bool(self.retries)


class TraceStep(StepSummary):
    """A step with all that went in and came out, as JSON.

    `sent` holds of a text call `system`, `messages`, `tools` (their names) and the options that were chosen; of a
    picture's `messages`, `aspect_ratio`, `resolution`, `use_grounding`, `take` and `mask`; of an embedding its `texts`;
    of a tool its `arguments` and the provider's `call_id`. `came` holds a model's `parts`, the `content` and `images`
    of a tool's result as the model was given it, or how many `vectors` of what `dimension` there were. Messages and
    parts are written as `message_json` does. `cuts` counts the texts that were shortened to keep the record small, and
    `is_left_out` says that the turn had filled its room: then both are empty.
    """

    sent: Json = Field(default_factory=dict)
    came: Json = Field(default_factory=dict)
    cuts: int = 0
    is_left_out: bool = False


def message_json(message: PromptMessage) -> Json:
    """Return a message as it is told: who speaks, and the parts in order."""
    return {"role": message.role.value, "parts": [part_json(part) for part in message.parts]}


def part_json(part: ContentPart) -> Json:
    """Return a part as it is told: a picture as a reference, a signature as its length."""
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
    """Return a picture as it is told: the reference to it."""
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
    """Return tokens as they are told, with their sum."""
    return {**usage.model_dump(), "total_tokens": usage.total_tokens}


def _signature(part: TextPart | ImagePart | ToolCallPart) -> Json:
    if part.signature_digest is not None:
        return {"signature_digest": part.signature_digest, "signed_by": part.signed_by}
    if part.thought_signature is None:
        return {}
    return {"thought_signature_bytes": len(part.thought_signature), "signed_by": part.signed_by}


# An object has fields of ours, which matter more than the hundredth entry of a list.
_LEAST_FIELDS = 16


class Cutter:
    """Makes values fit: texts of so many characters at most, each `cleaned` first, lists and objects of so many parts,
    no half of a character, no number that is none. `cuts` counts the cuts."""

    def __init__(
        self, characters: int | None, entries: int | None = None, cleaned: Callable[[str], str] = lambda text: text
    ) -> None:
        self._characters = characters
        self._entries = entries
        self._cleaned = cleaned
        self.cuts = 0

    def cut(self, value: JsonValue) -> JsonValue:
        """Return the value, shortened where it must be."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, list):
            short = [self.cut(one) for one in value[: self._entries]]
            return [*short, f"[{left} more]"] if (left := self._left(len(value), len(short))) else short
        if isinstance(value, dict):
            fields = self._entries and max(self._entries, _LEAST_FIELDS)
            named = {self._text(name): self.cut(one) for name, one in list(value.items())[:fields]}
            left = self._left(len(value), len(value) if fields is None else min(len(value), fields))
            return {**named, "[more]": left} if left else named
        return value

    def _left(self, count: int, kept: int) -> int:
        self.cuts += count > kept
        return count - kept

    def _text(self, text: str) -> str:
        # A lone half of a character, such as broken JSON brings, cannot be written to a file.
        text = self._cleaned(text.encode("utf-8", "replace").decode())
        if self._characters is None or len(text) <= self._characters:
            return text
        self.cuts += 1
        half = self._characters // 2
        return f"{text[:half]} […{len(text) - 2 * half} characters left out…] {text[-half:]}"
