"""A step as it goes on record: references told as JSON, keys taken out, and no larger than its room. Pure."""

from __future__ import annotations

import json
import math
from typing import assert_never

from pydantic import JsonValue

from agent.messages import ToolCallPart, ToolResultPart
from agent.providers.base import Embedding, ImageRequest
from agent.redaction import Redactor
from agent.trace import Json, StepSummary, TraceStep, image_json, message_json, part_json
from agent.workflow.hearing import Answer
from agent.workflow.tracing import Came, Sent, TextRequest

STEP_BYTES = 1 << 20
# Characters kept of one text, tried in turn until the step fits.
_CUTS = (100_000, 20_000, 4_000, 500)


def told(summary: StepSummary, sent: Sent, came: Came, redactor: Redactor, room_bytes: int) -> tuple[TraceStep, int]:
    """Return the step as it goes on record, and the bytes of its contents as JSON: at most a megabyte.

    Secrets are hidden. Contents for which there is no room are left out.
    """
    head = redactor.hidden(summary.model_dump(mode="json"))
    contents = redactor.hidden({"sent": sent_json(sent), "came": came_json(came)})
    fitted, size_bytes, cuts = _fitted(contents)
    if size_bytes > room_bytes:
        return TraceStep.model_validate({**head, "is_left_out": True}), 0
    return TraceStep.model_validate({**head, **fitted, "cuts": cuts}), size_bytes


def sent_json(sent: Sent) -> Json:
    """Return what went in, as it was handed to the provider or the tool; a setting that was not chosen is left out."""
    match sent:
        case None:
            return {}
        case TextRequest():
            return _text_request(sent)
        case ImageRequest():
            chosen: Json = {"aspect_ratio": sent.aspect_ratio, "resolution": sent.resolution}
            chosen |= {"use_grounding": sent.use_grounding or None, "take": sent.take if sent.take > 1 else None}
            chosen |= {"mask": image_json(sent.mask) if sent.mask is not None else None}
            return {"messages": [message_json(one) for one in sent.messages], **_without_blanks(chosen)}
        case ToolCallPart():
            return {"arguments": sent.arguments, "call_id": sent.call_id}
        case tuple():
            return {"texts": list(sent)}
        case _:
            assert_never(sent)


def came_json(came: Came) -> Json:
    """Return what came out: a model's parts in order, thoughts as such, or a tool's result as it was given to one."""
    match came:
        case None:
            return {}
        case Answer():
            return {"parts": [part_json(part) for part in came.parts]}
        case ToolResultPart():
            images: list[JsonValue] = [image_json(image) for image in came.images]
            return {"content": came.content, "images": images, "is_error": came.is_error}
        case Embedding():
            return {"vectors": len(came.vectors), "dimension": len(came.vectors[0]) if came.vectors else 0}
        case _:
            assert_never(came)


def _text_request(sent: TextRequest) -> Json:
    options = sent.options
    chosen: Json = {
        "google_search": options.google_search or None,
        "response_schema": options.response_schema,
        "thinking_level": options.thinking_level,
    }
    return {
        **_without_blanks({"system": options.system or None}),
        "messages": [message_json(one) for one in sent.messages],
        "tools": [tool.name for tool in sent.tools],
        **_without_blanks(chosen),
    }


def _without_blanks(chosen: Json) -> Json:
    return {name: value for name, value in chosen.items() if value is not None}


def _fitted(contents: Json) -> tuple[Json, int, int]:
    """Return the contents as JSON that anybody can read, cut as little as it takes, their bytes and the cuts made."""
    size_bytes = _size(contents)
    if size_bytes is not None and size_bytes <= STEP_BYTES:
        return contents, size_bytes, 0
    for characters in (None, *_CUTS):
        scissors = _Scissors(characters)
        short = {name: scissors.cut(value) for name, value in contents.items()}
        size_bytes = _size(short)
        if size_bytes is not None and size_bytes <= STEP_BYTES:
            return short, size_bytes, scissors.cuts
    return {}, 0, 1


def _size(value: Json) -> int | None:
    """Return the bytes of the value as JSON, or None when it holds what JSON cannot say."""
    try:
        return len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        return None


class _Scissors:
    """Makes values fit: texts of at most so many characters, no half of a character, no number that is none."""

    def __init__(self, characters: int | None) -> None:
        self.characters = characters
        self.cuts = 0

    def cut(self, value: JsonValue) -> JsonValue:
        """Return the value, shortened where it must be."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, list):
            return [self.cut(one) for one in value]
        if isinstance(value, dict):
            return {self._text(name): self.cut(one) for name, one in value.items()}
        return value

    def _text(self, text: str) -> str:
        # A lone half of a character, such as broken JSON brings, cannot be written to a file.
        text = text.encode("utf-8", "replace").decode()
        if self.characters is None or len(text) <= self.characters:
            return text
        self.cuts += 1
        half = self.characters // 2
        return f"{text[:half]} […{len(text) - 2 * half} characters left out…] {text[-half:]}"
