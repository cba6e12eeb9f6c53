from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from agent import (
    ContentPart,
    GroundingPart,
    ImageOrigin,
    PromptMessage,
    Source,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)
from tests.support.cases import each_case
from tests.support.histories import answer, image_part

SIGNATURE = bytes(range(256))
PARTS: dict[str, ContentPart] = {
    "text": TextPart(text="a fox 🦊 狐\u0000\u2028"),
    "signed text": TextPart(text="done", thought_signature=SIGNATURE, signed_by="m"),
    "empty signed text": TextPart(text="", thought_signature=b"\x00", signed_by="m"),
    "empty signature": TextPart(text="", thought_signature=b""),
    "thought": TextPart(text="hm", is_thought=True),
    "image": image_part("#7b", ImageOrigin.EDITED),
    "signed image": image_part().model_copy(update={"thought_signature": SIGNATURE * 9, "signed_by": "m"}),
    "call": ToolCallPart(name="f", arguments={"a": [1, 2.5, None, True, {"b": ""}]}, call_id="1"),
    "signed call": ToolCallPart(name="f", thought_signature=SIGNATURE, signed_by="m"),
    "result": ToolResultPart(name="f", content={"ok": 1}, images=(image_part(),), call_id="1", is_error=True),
    "grounding": GroundingPart(queries=("q",), sources=(Source(title="t", url="u"),), suggestions_html="<b>"),
}

adapter: TypeAdapter[ContentPart] = TypeAdapter(ContentPart)


@each_case("part", PARTS.values())
def test_a_part_cannot_be_changed(part: ContentPart) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(part, next(iter(type(part).model_fields)), "changed")


@each_case("part", PARTS.values())
def test_a_part_refuses_a_field_it_does_not_know(part: ContentPart) -> None:
    fields = json.loads(adapter.dump_json(part))
    with pytest.raises(ValidationError, match="extra"):
        adapter.validate_json(json.dumps({**fields, "surprise": 1}))


def test_a_part_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValidationError, match="type"):
        adapter.validate_json('{"type": "video", "text": "x"}')


@pytest.mark.parametrize("role", ["system", "user", ""])
def test_a_role_that_is_none_of_the_three_is_refused(role: str) -> None:
    with pytest.raises(ValidationError):
        PromptMessage.model_validate_json(json.dumps({"role": role, "parts": []}))


def test_the_words_and_pictures_of_a_message_leave_out_thoughts() -> None:
    message = answer("#2")
    assert message.text == "Here it is."
    assert [image.thought_signature is not None for image in message.images] == [True]


def test_usage_is_added_kind_by_kind_and_cached_tokens_count_once() -> None:
    one = TokenUsage(prompt_tokens=10, cached_tokens=4, tool_tokens=1, output_tokens=2, search_queries=1)
    two = TokenUsage(prompt_tokens=1, thought_tokens=5, image_tokens=1290, search_queries=2)
    added = one + two
    assert added == TokenUsage(
        prompt_tokens=11,
        cached_tokens=4,
        tool_tokens=1,
        output_tokens=2,
        thought_tokens=5,
        image_tokens=1290,
        search_queries=3,
    )
    assert added.total_tokens == 11 + 1 + 2 + 5 + 1290
