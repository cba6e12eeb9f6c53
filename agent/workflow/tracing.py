"""The collector of a turn's trace, for every call and node.

During the turn it only stores references; another thread later converts them to JSON, redacts secrets and limits the
size.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self, TypeAlias, assert_never

from pydantic import JsonValue, SecretStr

from agent.errors import AivistaError, ErrorInfo
from agent.events import StepTraced
from agent.messages import PromptMessage, TokenUsage, ToolCallPart, ToolResultPart
from agent.providers.base import ChatOptions, Embedding, ImageRequest, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.redaction import Redactor
from agent.storage.traces import Traces
from agent.trace import Cutter, Json, Retry, StepKind, StepSummary, TraceStep, image_json, message_json, part_json
from agent.workflow.model_answers import Answer
from agent.workflow.state import Next

# The limits for the contents of all steps of a turn together, and of one step. Each planner call has the whole history.
TURN_BYTES = 16 << 20
STEP_BYTES = 1 << 20
# Limits for characters per text, tried in this order until the step fits.
_CUTS = (100_000, 20_000, 4_000, 500)


@dataclass(frozen=True)
class TextRequest:
    """A request to a text model, as passed to the provider."""

    messages: Sequence[PromptMessage]
    tools: Sequence[ToolDeclaration]
    options: ChatOptions


# The running node. A task that starts in it and outlives it, such as a late picture's, still belongs to it.
_NODE: ContextVar[OpenStep | None] = ContextVar("node", default=None)

Sent: TypeAlias = TextRequest | ImageRequest | ToolCallPart | tuple[str, ...] | None
Came: TypeAlias = Answer | ToolResultPart | Embedding | None


@dataclass
class Tracer:
    """Collects the steps of one turn.

    `started_s` is the start of the turn on the monotonic clock. `first` is the number of its next step: a resumed turn
    continues counting. `on_close` receives the turn's steps when it ends or pauses, on the keeper's thread. `had_error`
    is set once a node or model call has finally failed, even if the turn continues without it.
    """

    conversation_id: str
    turn_id: str
    keeper: Traces
    publish: Callable[[StepTraced], None]
    secrets: Sequence[SecretStr]
    started_s: float
    first: int
    on_close: Callable[[Sequence[TraceStep]], None] | None
    had_error: bool = False
    _serialized: list[TraceStep] = field(default_factory=list)
    _bytes: int = 0
    # Shared by all steps: the history is part of each call, and its redaction is cached within the turn.
    _redactor: Redactor | None = None

    def node(self, name: str) -> OpenStep:
        """Return the step of a starting node; calls in its block, and in tasks started there, are within it."""
        return self._open(StepKind.NODE, name, None, name)

    def call(self, name: str, model: ModelEntry, sent: Sent) -> OpenStep:
        """Return the step of a starting model call; `name` is its name in the journal."""
        return self._open(StepKind.MODEL, name, sent, name.partition(":")[0], model)

    def tool(self, call: ToolCallPart) -> OpenStep:
        """Return the step of a starting tool call."""
        return self._open(StepKind.TOOL, call.name, call, "tools")

    def close(self) -> None:
        """Pass the steps to `on_close` after all pending steps are recorded; call it when the turn ends or pauses."""
        self.keeper.after(self._over)

    def _open(self, kind: StepKind, name: str, sent: Sent, node: str, model: ModelEntry | None = None) -> OpenStep:
        number, self.first = self.first, self.first + 1
        within = _NODE.get()
        if within is not None:
            node = within.name
        return OpenStep(self, kind, name, node, number, within.number if within else None, sent, model)

    def take(self, step: OpenStep, summary: StepSummary) -> None:
        """Record a step that has ended."""
        # Errors of tools go to the model, which corrects its call; all other errors concern the operator.
        self.had_error = self.had_error or (summary.error is not None and summary.kind is not StepKind.TOOL)
        self.publish(StepTraced(step=summary))
        self.keeper.keep(self.conversation_id, lambda: self._serialize(summary, step.sent, step.came))

    def _serialize(self, summary: StepSummary, sent: Sent, came: Came) -> TraceStep:
        if self._redactor is None:
            self._redactor = Redactor(self.secrets)
        step, size_bytes = serialize_step(summary, sent, came, self._redactor, TURN_BYTES - self._bytes)
        self._bytes += size_bytes
        if self.on_close is not None:
            self._serialized.append(step)
        return step

    def _over(self) -> None:
        steps, self._serialized = self._serialized, []
        if self.on_close is not None and steps:
            self.on_close(steps)


@dataclass(eq=False)
class OpenStep:
    """A running step. As a context manager it ends when the block is left in any way."""

    tracer: Tracer
    kind: StepKind
    name: str
    node: str
    number: int
    within: int | None
    sent: Sent
    model: ModelEntry | None
    came: Came = None
    began_s: float = field(default_factory=time.monotonic)
    attempts: int = 0
    _retries: tuple[Retry, ...] = ()
    _source: Literal["sent", "journal", "cache"] = "sent"
    _price_usd: float = 0.0
    _led_to: str = ""
    _error: ErrorInfo | None = None
    _has_failed: bool = False
    _was_cancelled: bool = False
    _around: Token[OpenStep | None] | None = None

    def leave(self) -> None:
        """Count an attempt that is being sent."""
        self.attempts += 1

    def wait(self, error: ErrorInfo, pause_s: float) -> None:
        """Note that an attempt failed and another follows after `pause_s` seconds."""
        self._retries += (Retry(error=error, pause_s=round(pause_s, 3)),)

    def answer(self, answer: Answer, price_usd: float, source: Literal["sent", "journal", "cache"] = "sent") -> None:
        """Note a model's answer, with its error if it failed."""
        self.came, self._price_usd, self._source, self._error = answer, price_usd, source, answer.error

    def embed(self, embedding: Embedding, price_usd: float) -> None:
        """Note the answer of an embedding model."""
        self.came, self._price_usd, self.attempts = embedding, price_usd, 1

    def result(self, result: ToolResultPart) -> None:
        """Note the result of a tool call."""
        self.came, self._has_failed, self.attempts = result, result.is_error, 1

    def lead(self, led: Next) -> None:
        """Note the next node, and the error if the node led to a failure."""
        self._led_to, self._error = led.goto or "", led.update.get("error")

    def __enter__(self) -> Self:
        if self.kind is StepKind.NODE:
            self._around = _NODE.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._around is not None:
            _NODE.reset(self._around)
        if isinstance(error, asyncio.CancelledError):
            self._was_cancelled = True
        elif isinstance(error, AivistaError):
            self._error = error.info
        self._has_failed = (
            self._has_failed or self._error is not None or (error is not None and not self._was_cancelled)
        )
        self.tracer.take(self, self._summary())

    def _summary(self) -> StepSummary:
        now_s, came, model = time.monotonic(), self.came, self.model
        usage = came.usage if isinstance(came, Answer | Embedding) and self._source == "sent" else TokenUsage()
        return StepSummary(
            turn_id=self.tracer.turn_id,
            number=self.number,
            within=self.within,
            kind=self.kind,
            node=self.node,
            name=self.name,
            provider=model.provider if model else "",
            model=model.id if model else "",
            model_label=model.label if model else "",
            asks_for=_asked_for(self.sent),
            began_at=datetime.fromtimestamp(time.time() - (now_s - self.began_s), UTC),
            at_s=round(max(0.0, self.began_s - self.tracer.started_s), 4),
            seconds=round(now_s - self.began_s, 4),
            attempts=self.attempts,
            retries=self._retries,
            source=self._source,
            usage=usage,
            price_usd=self._price_usd,
            finish_reason=came.finish_reason if isinstance(came, Answer) else "",
            led_to=self._led_to,
            error=self._error,
            has_failed=self._has_failed,
            was_cancelled=self._was_cancelled,
        )


def _asked_for(sent: Sent) -> Literal["", "words", "picture", "vectors"]:
    match sent:
        case TextRequest():
            return "words"
        case ImageRequest():
            return "picture"
        case tuple():
            return "vectors"
        case _:
            return ""


def serialize_step(
    summary: StepSummary, sent: Sent, came: Came, redactor: Redactor, room_bytes: int
) -> tuple[TraceStep, int]:
    """Return the step for the record, and the size of its contents as JSON in bytes: at most a megabyte.

    Secrets are redacted. Contents larger than `room_bytes` are left out.
    """
    head = redactor.hidden(summary.model_dump(mode="json"))
    contents = redactor.hidden({"sent": sent_json(sent), "came": came_json(came)})
    fitted, size_bytes, cuts = _fitted(contents)
    if size_bytes > room_bytes:
        return TraceStep.model_validate({**head, "is_left_out": True}), 0
    return TraceStep.model_validate({**head, **fitted, "cuts": cuts}), size_bytes


def sent_json(sent: Sent) -> Json:
    """Return the input as JSON, as passed to the provider or the tool, without settings that were not chosen."""
    match sent:
        case None:
            return {}
        case TextRequest(options=options):
            chosen: Json = {
                "system": options.system or None,
                "messages": [message_json(one) for one in sent.messages],
                "tools": [tool.name for tool in sent.tools],
                "google_search": options.google_search or None,
                "response_schema": options.response_schema,
                "thinking_level": options.thinking_level,
            }
            return _without_blanks(chosen)
        case ImageRequest():
            chosen = {
                "messages": [message_json(one) for one in sent.messages],
                "aspect_ratio": sent.aspect_ratio,
                "resolution": sent.resolution,
                "use_grounding": sent.use_grounding or None,
                "take": sent.take if sent.take > 1 else None,
                "mask": image_json(sent.mask) if sent.mask is not None else None,
            }
            return _without_blanks(chosen)
        case ToolCallPart():
            return {"arguments": sent.arguments, "call_id": sent.call_id}
        case tuple():
            return {"texts": list(sent)}
        case _:
            assert_never(sent)


def came_json(came: Came) -> Json:
    """Return the output as JSON: a model's parts in order, thoughts marked, or a tool's result as sent to a model."""
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


def _without_blanks(chosen: Json) -> Json:
    return {name: value for name, value in chosen.items() if value is not None}


def _fitted(contents: Json) -> tuple[Json, int, int]:
    """Return the contents as valid JSON with the weakest cuts that fit, their size in bytes, and the number of cuts."""
    size_bytes = _size(contents)
    if size_bytes is not None and size_bytes <= STEP_BYTES:
        return contents, size_bytes, 0
    for characters in (None, *_CUTS):
        cutter = Cutter(characters)
        short = {name: cutter.cut(value) for name, value in contents.items()}
        size_bytes = _size(short)
        if size_bytes is not None and size_bytes <= STEP_BYTES:
            return short, size_bytes, cutter.cuts
    return {}, 0, 1


def _size(value: Json) -> int | None:
    """Return the size of the value as JSON in bytes, or None when JSON cannot represent it."""
    try:
        return len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        return None
