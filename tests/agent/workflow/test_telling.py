"""A step as it goes on record: small enough, readable by anybody, without a key."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import SecretStr

from agent import (
    PromptMessage,
    Role,
    StepKind,
    StepSummary,
    TextPart,
    ToolCallPart,
    TraceStep,
)
from agent.providers.base import ChatOptions, ToolDeclaration
from agent.redaction import Redactor
from agent.workflow.hearing import Answer
from agent.workflow.telling import STEP_BYTES, told
from agent.workflow.tracing import Came, Sent, TextRequest

PLENTY = 1 << 30
SUMMARY = StepSummary(
    turn_id="t1",
    number=1,
    kind=StepKind.MODEL,
    node="planner",
    name="planner:1",
    began_at=datetime(2026, 11, 20, tzinfo=UTC),
    at_s=0.0,
    seconds=1.0,
)


def asked(*texts: str, **options: Any) -> TextRequest:
    messages = [PromptMessage(role=Role.PROMPT, parts=(TextPart(text=text),)) for text in texts]
    return TextRequest(messages, [ToolDeclaration(name="look", description="", parameters={})], ChatOptions(**options))


def record(sent: Sent, came: Came = None, *secrets: str, room_bytes: int = PLENTY) -> TraceStep:
    step, _ = told(SUMMARY, sent, came, Redactor([SecretStr(one) for one in secrets]), room_bytes)
    return step


def test_texts_are_whole_until_a_step_would_be_too_large_then_cut_in_their_middle() -> None:
    long = "狐 " * 40_000
    whole = record(asked(long))
    messages: Any = whole.sent["messages"]
    assert (messages[0]["parts"][0]["text"], whole.cuts) == (long, 0)
    cut = record(asked(*[f"{number} {long}" for number in range(30)]))
    messages = cast(list[Any], cut.sent["messages"])
    assert cut.cuts == 30
    assert [message["parts"][0]["text"][:5] for message in messages] == [f"{number} 狐 狐"[:5] for number in range(30)]
    assert "characters left out" in messages[0]["parts"][0]["text"]
    size = len(json.dumps({"sent": cut.sent, "came": cut.came}, ensure_ascii=False).encode())
    assert 100_000 < size <= STEP_BYTES


def test_what_json_cannot_say_is_told_all_the_same() -> None:
    broken = ToolCallPart.model_construct(
        name="look", arguments={"half": "\ud800", "number": float("nan")}, call_id=None
    )
    step = record(broken)
    assert step.sent["arguments"] == {"half": "?", "number": "nan"}
    json.dumps(step.model_dump(mode="json"), allow_nan=False).encode()


def test_beyond_a_turns_room_the_line_is_kept_without_its_contents() -> None:
    step, size_bytes = told(
        SUMMARY, asked("hello" * 100), Answer(parts=[TextPart(text="hi")]), Redactor(), room_bytes=200
    )
    assert (step.is_left_out, step.sent, step.came, size_bytes) == (True, {}, {}, 0)
    assert step.name == "planner:1"
