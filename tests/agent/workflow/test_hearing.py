"""Chunks of one call gathered into one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent import CompletionChunk, ErrorCode, ErrorInfo, NetworkFailure, TextPart, TokenUsage, ToolCallPart
from tests.adapters.language import hear

CALL = ToolCallPart(name="generate_image", thought_signature=b"\x00sig", signed_by="m")


async def stream(
    *chunks: CompletionChunk | Exception, closed: list[bool] | None = None
) -> AsyncIterator[CompletionChunk]:
    try:
        for chunk in chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
    finally:
        if closed is not None:
            closed.append(True)


def words(text: str, signature: bytes | None = None, *, is_thought: bool = False) -> CompletionChunk:
    return CompletionChunk(part=TextPart(text=text, thought_signature=signature, is_thought=is_thought))


async def test_unsigned_neighbours_are_one_text() -> None:
    answer = await hear(stream(words("a"), words("b"), words("c")))
    assert answer.parts == [TextPart(text="abc")]


async def test_a_signed_part_stays_as_it_came_and_where_it_came() -> None:
    signed = words("", b"sig")
    answer = await hear(stream(words("a"), words("b"), signed, words("c"), CompletionChunk(part=CALL)))
    assert answer.parts == [TextPart(text="ab"), signed.part, TextPart(text="c"), CALL]
    assert answer.calls == [CALL]


async def test_thoughts_are_told_as_such_and_not_joined_with_words() -> None:
    spoken: list[tuple[str, bool]] = []

    async def listen(text: str, is_thought: bool) -> None:
        spoken.append((text, is_thought))

    answer = await hear(stream(words("hm", is_thought=True), words("Yes.")), listen)
    assert spoken == [("hm", True), ("Yes.", False)]
    assert answer.text == "Yes."
    assert len(answer.parts) == 2


async def test_a_failure_becomes_the_answers_error_and_the_parts_so_far_stay() -> None:
    closed: list[bool] = []
    answer = await hear(stream(words("a"), words("b"), NetworkFailure(ErrorCode.STREAM_CUT), closed=closed))
    assert answer.error is not None
    assert answer.error.code is ErrorCode.STREAM_CUT
    assert answer.text == "ab"
    assert closed == [True]


async def test_the_last_usage_counts_and_a_bad_end_is_told() -> None:
    ends = CompletionChunk(
        usage=TokenUsage(prompt_tokens=7), finish_reason="SAFETY", error=ErrorInfo(code=ErrorCode.ANSWER_BLOCKED)
    )
    answer = await hear(stream(CompletionChunk(usage=TokenUsage(prompt_tokens=3)), ends))
    assert answer.usage.prompt_tokens == 7
    assert (answer.finish_reason, answer.error) == ("SAFETY", ErrorInfo(code=ErrorCode.ANSWER_BLOCKED))


@pytest.mark.parametrize("blank", ["\n\n \n", "\u200b\u200d", "\ufeff\u2060\n", "\u3164\u2800"])
async def test_an_answer_of_which_nothing_would_be_seen_is_empty(blank: str) -> None:
    answer = await hear(stream(words(blank)))
    assert answer.error is not None
    assert (answer.error.code, answer.text) == (ErrorCode.EMPTY_ANSWER, "")
