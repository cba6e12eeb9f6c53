"""The trace as OpenTelemetry spans, to monitor many turns at once: one span for each step.

    invoke_agent aivista            a turn, or a part of it until it paused
    └─ planner                      a node
       └─ chat gemini-…             a model call or a tool call

Names and attributes follow the semantic conventions for generative AI; other attributes are under `aivista.`. The SDK
is imported when there is something to send, and sends on its own threads.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agent.settings import Settings, TelemetrySettings
from agent.trace import Json, StepKind, TraceStep

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

_AGENT = "aivista"
_OPERATIONS = {"words": "chat", "picture": "generate_content", "vectors": "embeddings"}
_PROVIDERS = {"gemini": "gcp.gemini", "openai": "openai"}
_ROLES = {"prompt": "user", "model": "assistant", "tool": "tool"}
# How long closing the studio may wait for unsent spans, in case the collector does not respond.
_CLOSE_S = 1.0

_log = logging.getLogger(__name__)


def telemetry_of(settings: Settings) -> Telemetry | None:
    """Return the span exporter, or None when the operator configured no collector."""
    return Telemetry(settings.telemetry) if settings.telemetry is not None else None


class Telemetry:
    """Sends spans to the collector in the settings, or to a given exporter. Its methods block."""

    def __init__(self, settings: TelemetrySettings, exporter: SpanExporter | None = None) -> None:
        self._settings = settings
        self._exporter = exporter
        self._provider: TracerProvider | None = None
        self._is_missing = False

    def export(self, conversation_id: str, steps: Sequence[TraceStep]) -> None:
        """Send the steps of a turn, or of a part of it, as one tree of spans."""
        if not steps or self._is_missing:
            return
        try:
            tracer = self._tracer()
        except ImportError as error:
            self._is_missing = True
            _log.warning('no spans are sent, a package is missing (install "aivista[opentelemetry]"): %s', error)
            return
        _Tree(tracer, conversation_id, self._settings.with_contents).grow(sorted(steps, key=lambda one: one.number))

    def close(self) -> None:
        """Send the remaining spans, for at most one second."""
        provider, self._provider = self._provider, None
        if provider is None:
            return
        closing = threading.Thread(target=provider.shutdown, name="telemetry-close", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)

    def _tracer(self) -> Tracer:
        if self._provider is None:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor

            # A private provider, not the global one of the process: other code's spans are not affected.
            provider = TracerProvider(resource=Resource.create({"service.name": self._settings.service_name}))
            provider.add_span_processor(BatchSpanProcessor(self._exporter or self._otlp()))
            self._provider = provider
        return self._provider.get_tracer(_AGENT)

    def _otlp(self) -> SpanExporter:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter(endpoint=self._settings.endpoint)


class _Tree:
    """The spans of some steps, each below the span of its node."""

    def __init__(self, tracer: Tracer, conversation_id: str, with_contents: bool) -> None:
        self._tracer = tracer
        self._conversation_id = conversation_id
        self._with_contents = with_contents

    def grow(self, steps: Sequence[TraceStep]) -> None:
        from opentelemetry.trace import SpanKind

        turn = self._span(
            f"invoke_agent {_AGENT}",
            SpanKind.INTERNAL,
            min(one.began_at for one in steps),
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": _AGENT,
                "gen_ai.conversation.id": self._conversation_id,
                "aivista.turn.id": steps[0].turn_id,
                "aivista.price_usd": sum(one.price_usd for one in steps),
                "gen_ai.usage.input_tokens": sum(_input_tokens(one) for one in steps),
                "gen_ai.usage.output_tokens": sum(_output_tokens(one) for one in steps),
            },
        )
        spans: dict[int, Span] = {}
        for step in steps:
            kind = SpanKind.CLIENT if step.kind is StepKind.MODEL else SpanKind.INTERNAL
            span = spans[step.number] = self._span(
                _name(step), kind, step.began_at, self._attributes(step), spans.get(step.within or 0, turn)
            )
            self._mark_trouble(span, step)
        for step in steps:
            spans[step.number].end(_nanoseconds(_end(step)))
        failed = next((one for one in reversed(steps) if one.kind is StepKind.NODE), None)
        if failed is not None and failed.error is not None:
            self._mark_trouble(turn, failed)
        turn.end(_nanoseconds(max(_end(one) for one in steps)))

    def _span(
        self, name: str, kind: Any, began_at: datetime, attributes: dict[str, Any], parent: Span | None = None
    ) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(parent, Context()) if parent is not None else Context()
        given = {key: value for key, value in attributes.items() if value not in (None, "")}
        return self._tracer.start_span(name, context, kind, given, start_time=_nanoseconds(began_at))

    def _mark_trouble(self, span: Span, step: TraceStep) -> None:
        from opentelemetry.trace import Status, StatusCode

        for retry in step.retries:
            attributes: dict[str, str | float] = {
                "error.type": retry.error.code.value,
                "aivista.pause_s": retry.pause_s,
            }
            span.add_event("retry", attributes, _nanoseconds(step.began_at))
        kind = step.error.code.value if step.error is not None else "tool_error" if step.has_failed else ""
        kind = "cancelled" if step.was_cancelled else kind
        if kind:
            span.set_attribute("error.type", kind)
            span.set_status(Status(StatusCode.ERROR, step.error.message if step.error is not None else kind))

    def _attributes(self, step: TraceStep) -> dict[str, Any]:
        own: dict[str, Any] = {
            "gen_ai.conversation.id": self._conversation_id,
            "aivista.turn.id": step.turn_id,
            "aivista.step": step.number,
            "aivista.node": step.node,
        }
        match step.kind:
            case StepKind.NODE:
                return {**own, "aivista.led_to": step.led_to}
            case StepKind.TOOL:
                return {**own, **self._tool(step)}
            case StepKind.MODEL:
                return {**own, **_model(step), **(_contents(step) if self._with_contents else {})}

    def _tool(self, step: TraceStep) -> dict[str, Any]:
        named: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": step.sent.get("call_id"),
        }
        if self._with_contents:
            named["gen_ai.tool.call.arguments"] = _text(step.sent.get("arguments", {}))
            named["gen_ai.tool.call.result"] = _text(step.came.get("content", {}))
        return named


def _model(step: TraceStep) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": _OPERATIONS.get(step.asks_for),
        "gen_ai.provider.name": _PROVIDERS.get(step.provider, f"{_AGENT}.{step.provider}"),
        "gen_ai.request.model": step.model,
        "gen_ai.output.type": "image" if step.asks_for == "picture" else None,
        "gen_ai.response.finish_reasons": [step.finish_reason] if step.finish_reason else None,
        "aivista.call": step.name,
        "aivista.source": step.source,
        "aivista.attempts": step.attempts,
        "aivista.price_usd": step.price_usd,
    }
    if step.usage.total_tokens:
        attributes |= {
            "gen_ai.usage.input_tokens": _input_tokens(step),
            "gen_ai.usage.output_tokens": _output_tokens(step),
            "gen_ai.usage.reasoning.output_tokens": step.usage.thought_tokens,
            "gen_ai.usage.cache_read.input_tokens": step.usage.cached_tokens,
        }
    return attributes


def _contents(step: TraceStep) -> dict[str, str]:
    """Return the message contents in the format of the conventions; pictures appear as their digests."""
    asked = step.sent.get("messages")
    system = step.sent.get("system")
    attributes = {}
    if isinstance(system, str):
        attributes["gen_ai.system_instructions"] = _text([{"type": "text", "content": system}])
    if isinstance(asked, list):
        attributes["gen_ai.input.messages"] = _text([_message(one) for one in asked])
    answer = {"role": "assistant", "parts": _parts(step.came.get("parts")), "finish_reason": step.finish_reason}
    attributes["gen_ai.output.messages"] = _text([answer])
    return attributes


def _message(message: JsonValue) -> Json:
    if not isinstance(message, dict):
        return {}
    return {"role": _ROLES.get(str(message.get("role")), "user"), "parts": _parts(message.get("parts"))}


def _parts(parts: JsonValue) -> list[JsonValue]:
    return [_part(one) for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []


def _part(part: Json) -> Json:
    match part.get("type"):
        case "text":
            return {"type": "reasoning" if part.get("is_thought") else "text", "content": part.get("text")}
        case "image":
            return {"type": "file", "modality": "image", "mime_type": part["mime_type"], "file_id": part["digest"]}
        case "tool_call":
            named: Json = {"id": part.get("call_id"), "name": part.get("name")}
            return {"type": "tool_call", **named, "arguments": part.get("arguments")}
        case "tool_result":
            return {"type": "tool_call_response", "id": part.get("call_id"), "response": part.get("content")}
        case _:
            return part


def _name(step: TraceStep) -> str:
    match step.kind:
        case StepKind.NODE:
            return step.name
        case StepKind.TOOL:
            return f"execute_tool {step.name}"
        case StepKind.MODEL:
            return f"{_OPERATIONS.get(step.asks_for, 'chat')} {step.model}"


def _input_tokens(step: TraceStep) -> int:
    return step.usage.prompt_tokens + step.usage.tool_tokens


def _output_tokens(step: TraceStep) -> int:
    return step.usage.output_tokens + step.usage.thought_tokens + step.usage.image_tokens


def _end(step: TraceStep) -> datetime:
    return step.began_at + timedelta(seconds=step.seconds)


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
