"""The trace as OpenTelemetry spans: a tree of a turn, in the words of the conventions, without its own words."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from agent import ErrorCode, ErrorInfo, Retry, Settings, StepKind, TelemetrySettings, TokenUsage, TraceStep
from agent.telemetry import Telemetry, telemetry_of
from tests.adapters.models import calls
from tests.support.cases import each_case
from tests.support.children import run_child
from tests.support.histories import NOW
from tests.support.scenes import Scene, generate, picture, run
from tests.support.traces import traced

NOWHERE = "http://127.0.0.1:1/v1/traces"
BUSY = ErrorInfo(code=ErrorCode.RATE_LIMITED, parameters={"seconds": 1})
PLANNER = traced(1, kind=StepKind.NODE, name="planner", seconds=4.0, led_to="tools", sent={}, came={})
ASKED = traced(
    2,
    within=1,
    provider="gemini",
    model="gemini-flash",
    model_label="Flash",
    asks_for="words",
    attempts=2,
    retries=(Retry(error=BUSY, pause_s=1.0),),
    usage=TokenUsage(prompt_tokens=10, cached_tokens=4, output_tokens=3, thought_tokens=2),
    price_usd=0.5,
    finish_reason="STOP",
)
CALLED = traced(
    3,
    kind=StepKind.TOOL,
    within=1,
    name="read_url",
    has_failed=True,
    sent={"arguments": {"url": "https://example.org"}, "call_id": "c7"},
    came={"content": {"error": "It cannot be read."}},
)


def spans(*steps: TraceStep, with_contents: bool = False) -> dict[str, ReadableSpan]:
    """Return the spans of a turn by their names."""
    exporter = InMemorySpanExporter()
    telemetry = Telemetry(TelemetrySettings(endpoint=NOWHERE, with_contents=with_contents), exporter)
    telemetry.export("c1", steps)
    telemetry.close()
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_turn_is_a_span_with_its_nodes_below_it_and_their_calls_below_them() -> None:
    found = spans(PLANNER, ASKED, CALLED)
    assert set(found) == {"invoke_agent aivista", "planner", "chat gemini-flash", "execute_tool read_url"}
    turn, node = found["invoke_agent aivista"], found["planner"]
    assert turn.parent is None
    assert turn.context is not None
    assert node.context is not None
    assert node.parent is not None
    assert node.parent.span_id == turn.context.span_id
    for name in ("chat gemini-flash", "execute_tool read_url"):
        parent = found[name].parent
        assert parent is not None
        assert parent.span_id == node.context.span_id
    assert len({span.context and span.context.trace_id for span in found.values()}) == 1
    assert found["chat gemini-flash"].kind is SpanKind.CLIENT


def test_the_times_are_those_of_the_steps() -> None:
    found = spans(PLANNER, ASKED)
    began, ended = (int((NOW + timedelta(seconds=seconds)).timestamp() * 1_000_000) * 1000 for seconds in (1, 5))
    for name in ("invoke_agent aivista", "planner"):
        assert (found[name].start_time, found[name].end_time) == (began, ended)


def test_attributes_are_those_of_the_conventions() -> None:
    found = spans(PLANNER, ASKED, CALLED)
    turn, asked = attributes(found["invoke_agent aivista"]), attributes(found["chat gemini-flash"])
    called = attributes(found["execute_tool read_url"])
    assert turn["gen_ai.operation.name"] == "invoke_agent"
    assert (turn["gen_ai.conversation.id"], turn["aivista.turn.id"], turn["aivista.price_usd"]) == ("c1", "t1", 0.5)
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-flash",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.response.finish_reasons": ("STOP",),
        "aivista.attempts": 2,
    }
    assert {name: asked[name] for name in expected} == expected
    assert called["gen_ai.tool.name"] == "read_url"
    assert called["gen_ai.tool.call.id"] == "c7"
    [retry] = found["chat gemini-flash"].events
    assert (retry.name, dict(retry.attributes or {})["error.type"]) == ("retry", "rate_limited")


@pytest.mark.parametrize(
    ("asks_for", "name", "kind"),
    [("picture", "generate_content m", "image"), ("vectors", "embeddings m", None), ("words", "chat m", None)],
)
def test_each_kind_of_call_has_its_operation(asks_for: str, name: str, kind: str | None) -> None:
    found = spans(traced(model="m", provider="sketch", asks_for=asks_for))
    assert attributes(found[name]).get("gen_ai.output.type") == kind
    assert attributes(found[name])["gen_ai.provider.name"] == "aivista.sketch"


def test_trouble_is_an_error_of_its_span_and_a_failed_turns_too() -> None:
    failed = traced(1, kind=StepKind.NODE, name="planner", error=BUSY, has_failed=True)
    stopped = traced(2, within=1, model="m", asks_for="words", was_cancelled=True)
    found = spans(failed, stopped, CALLED)
    for name, code in (
        ("planner", "rate_limited"),
        ("invoke_agent aivista", "rate_limited"),
        ("chat m", "cancelled"),
        ("execute_tool read_url", "tool_error"),
    ):
        assert found[name].status.status_code is StatusCode.ERROR
        assert attributes(found[name])["error.type"] == code
    assert spans(PLANNER, ASKED)["invoke_agent aivista"].status.status_code is StatusCode.UNSET


def test_no_word_of_the_conversation_is_in_a_span_unless_it_is_wanted() -> None:
    plain = "\n".join(span.to_json() for span in spans(PLANNER, ASKED, CALLED).values())
    for words in ("a fox", "Here.", "Be kind.", "example.org", "cannot be read"):
        assert words not in plain
    found = spans(PLANNER, ASKED, CALLED, with_contents=True)
    asked = attributes(found["chat gemini-flash"])
    assert json.loads(asked["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be kind."}]
    assert json.loads(asked["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "a fox"}]}
    ]
    [answer] = json.loads(asked["gen_ai.output.messages"])
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "STOP")
    called = attributes(found["execute_tool read_url"])
    assert json.loads(called["gen_ai.tool.call.arguments"]) == {"url": "https://example.org"}
    assert json.loads(called["gen_ai.tool.call.result"]) == {"error": "It cannot be read."}


def test_every_kind_of_part_has_its_form() -> None:
    parts: list[Any] = [
        {"type": "text", "text": "hm", "is_thought": True},
        {"type": "image", "digest": "d", "mime_type": "image/png"},
        {"type": "tool_call", "name": "look", "call_id": None, "arguments": {"at": "#1"}},
        {"type": "tool_result", "name": "look", "call_id": "7", "content": {"seen": 1}},
    ]
    found = spans(traced(model="m", asks_for="words", came={"parts": parts}), with_contents=True)
    [answer] = json.loads(attributes(found["chat m"])["gen_ai.output.messages"])
    assert answer["parts"] == [
        {"type": "reasoning", "content": "hm"},
        {"type": "file", "modality": "image", "mime_type": "image/png", "file_id": "d"},
        {"type": "tool_call", "id": None, "name": "look", "arguments": {"at": "#1"}},
        {"type": "tool_call_response", "id": "7", "response": {"seen": 1}},
    ]


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector on this machine that takes spans by OTLP over HTTP: its address, and what it has been sent."""
    taken: list[ExportTraceServiceRequest] = []

    class Taker(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", taken
        server.shutdown()


async def test_a_real_turn_reaches_a_collector_whole(settings: Settings) -> None:
    with collector() as (address, taken):
        telemetry = Settings.from_env({"OTEL_EXPORTER_OTLP_ENDPOINT": address}).telemetry
        watched = settings.model_copy(update={"telemetry": telemetry})
        scene = Scene(watched, text=[calls(generate())], pictures=[picture(64, 36)])
        async with scene.studio() as studio:
            conversation = await studio.conversations.create()
            await run(studio, conversation.id, "a red fox")
            steps = await studio.trace(conversation.id)
    found = [
        span for one in taken for batch in one.resource_spans for scope in batch.scope_spans for span in scope.spans
    ]
    assert len(found) == len(steps) + 1
    assert {span.name for span in found} >= {"invoke_agent aivista", "planner", "executor"}
    assert len({span.trace_id for span in found}) == 1
    assert b"red fox" not in b"".join(one.SerializeToString() for one in taken)


def test_no_exporter_is_loaded_without_a_collector(settings: Settings) -> None:
    assert telemetry_of(settings) is None
    code = """
import asyncio, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest

async def main():
    async with Studio(Settings(home=Path(sys.argv[1]), provider="sketch")) as studio:
        conversation = await studio.conversations.create()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="hello")):
            pass
    print([name for name in sys.modules if name.startswith("opentelemetry.exporter")])

asyncio.run(main())
"""
    child = run_child(code, str(settings.home))
    assert child.stdout.strip() == "[]", child.stderr


def test_what_the_environment_says_of_langsmith_sends_nothing_there(settings: Settings) -> None:
    code = """
import asyncio, http.server, os, sys, threading
from pathlib import Path

asked = []

class LangSmith(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        self.send_error(404)

    do_POST = do_GET

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), LangSmith)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
os.environ.update(LANGSMITH_TRACING="true", LANGSMITH_API_KEY="a key", LANGSMITH_ENDPOINT=address)
os.environ["LANGCHAIN_TRACING"] = "true"

from agent import Settings, Studio, TurnRequest

async def main():
    async with Studio(Settings(home=Path(sys.argv[1]), provider="sketch")) as studio:
        conversation = await studio.conversations.create()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="a red fox")):
            pass
        print(event.type)

asyncio.run(main())
from langchain_core.tracers.langchain import wait_for_all_tracers

wait_for_all_tracers()
print(asked)
"""
    child = run_child(code, str(settings.home), is_cold=True)
    assert child.stdout == "turn_done\n[]\n", child.stderr


def test_a_missing_package_is_told_once_and_costs_no_turn(settings: Settings) -> None:
    code = """
import logging, sys
sys.modules["opentelemetry.sdk.trace"] = None
from agent.settings import TelemetrySettings
from agent.telemetry import Telemetry
from tests.support.traces import traced
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
telemetry = Telemetry(TelemetrySettings(endpoint="http://127.0.0.1:1/v1/traces"))
telemetry.export("c1", [traced()])
telemetry.export("c1", [traced()])
telemetry.close()
"""
    said = run_child(code, is_cold=True).stdout.splitlines()
    assert len(said) == 1
    assert 'install "aivista[opentelemetry]"' in said[0]


@each_case(
    ("variables", "endpoint"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/x", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://d"}, "http://c/x"),
        ({"AIVISTA_OTEL": "on"}, "http://localhost:4318/v1/traces"),
        ({"AIVISTA_OTEL": "off", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, None),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, None),
    ],
)
def test_where_spans_go_is_read_as_the_sdk_reads_it(variables: dict[str, str], endpoint: str | None) -> None:
    telemetry = Settings.from_env(variables).telemetry
    assert (telemetry.endpoint if telemetry else None) == endpoint
    assert not (telemetry and telemetry.with_contents)


def test_contents_and_the_services_name_are_asked_for() -> None:
    variables = {"AIVISTA_OTEL": "1", "AIVISTA_OTEL_CONTENTS": "yes", "OTEL_SERVICE_NAME": "studio"}
    telemetry = Settings.from_env(variables).telemetry
    assert telemetry is not None
    assert (telemetry.with_contents, telemetry.service_name) == (True, "studio")
