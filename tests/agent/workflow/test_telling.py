"""A step as it goes on record: small enough, readable by anybody, without a key."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr

from agent import (
    ImageOrigin,
    ImagePart,
    PromptMessage,
    Role,
    StepKind,
    StepSummary,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    TraceStep,
)
from agent.providers.base import ChatOptions, Embedding, ImageRequest, ToolDeclaration
from agent.redaction import HIDDEN, Redactor
from agent.workflow.hearing import Answer
from agent.workflow.telling import STEP_BYTES, came_json, sent_json, told
from agent.workflow.tracing import Came, Sent, TextRequest
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.support.histories import image_part

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


def test_only_the_settings_that_were_chosen_are_told() -> None:
    plain: Any = sent_json(asked("hello"))
    assert set(plain) == {"messages", "tools"}
    assert plain["tools"] == ["look"]
    chosen = sent_json(asked("hello", system="Be kind.", google_search=True, thinking_level="low"))
    assert (chosen["system"], chosen["google_search"], chosen["thinking_level"]) == ("Be kind.", True, "low")


def test_a_picture_is_told_with_its_settings_and_its_mask_as_references() -> None:
    model = load_catalogue().model(ModelRole.IMAGE_FLASH, "gemini")
    prompt = PromptMessage(role=Role.PROMPT, parts=(TextPart(text="a fox"), image_part("#1")))
    request = ImageRequest(model=model, messages=(prompt,), aspect_ratio="16:9", mask=image_part("#m"), take=2)
    sent: Any = sent_json(request)
    assert set(sent) == {"messages", "aspect_ratio", "take", "mask"}
    assert sent["mask"]["digest"] == image_part("#m").digest
    assert sent["messages"][0]["parts"][1]["handle"] == "#1"


def test_a_tool_and_an_embedding_are_told_by_what_they_were_given_and_gave() -> None:
    call = ToolCallPart(name="look", arguments={"at": "#1"}, call_id="7")
    assert sent_json(call) == {"arguments": {"at": "#1"}, "call_id": "7"}
    result: Any = came_json(ToolResultPart(name="look", content={"seen": "a fox"}, images=(image_part("#1"),)))
    assert (result["content"], result["images"][0]["handle"], result["is_error"]) == ({"seen": "a fox"}, "#1", False)
    assert sent_json(("a", "b")) == {"texts": ["a", "b"]}
    assert came_json(Embedding([[0.5] * 192] * 2)) == {"vectors": 2, "dimension": 192}
    assert (sent_json(None), came_json(None), came_json(Embedding([]))) == ({}, {}, {"vectors": 0, "dimension": 0})


def test_a_known_key_is_hidden_in_summary_and_contents() -> None:
    call = ToolCallPart(name="look", arguments={"at": "the words of no shape", "token": "abc"})
    step = record(
        call, ToolResultPart(name="look", content={"said": ["the words of no shape"]}), "the words of no shape"
    )
    assert step.sent["arguments"] == {"at": HIDDEN, "token": HIDDEN}
    assert step.came["content"] == {"said": [HIDDEN]}


def test_texts_are_whole_until_a_step_would_be_too_large_then_cut_in_their_middle() -> None:
    long = "狐 " * 40_000
    whole = record(asked(long))
    messages: Any = whole.sent["messages"]
    assert (messages[0]["parts"][0]["text"], whole.cuts) == (long, 0)
    cut = record(asked(*[f"{number} {long}" for number in range(30)]))
    messages = cut.sent["messages"]
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


def test_no_byte_of_a_picture_is_told() -> None:
    image = ImagePart(digest="d" * 64, md5="m" * 32, mime_type="image/png", size_bytes=3, origin=ImageOrigin.UPLOADED)
    signed = image.model_copy(update={"thought_signature": b"\xffbytes" * 1000, "signed_by": "m"})
    [part] = _list(came_json(Answer(parts=[signed]))["parts"])
    assert part["thought_signature_bytes"] == 6000
    assert not [value for value in part.values() if isinstance(value, bytes)]


def _list(value: Any) -> list[Any]:
    assert isinstance(value, list)
    return value
