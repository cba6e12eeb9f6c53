"""What of the history the text model sees."""

from __future__ import annotations

from datetime import UTC, datetime

from agent import PromptMessage, Role, TextPart, ToolCallPart, ToolResultPart, Turn, TurnSettings
from tests.adapters.language import answer_open_calls, newest_messages, without_old_signatures

CALL = ToolCallPart(name="generate_image", call_id="c1", thought_signature=b"s", signed_by="m")


def message(text: str, role: Role = Role.PROMPT) -> PromptMessage:
    return PromptMessage(role=role, parts=(TextPart(text=text),))


def turn(name: str, *messages: PromptMessage) -> Turn:
    return Turn(id=name, text=name, settings=TurnSettings(), started_at=datetime.now(UTC), messages=messages)


def test_the_newest_turns_are_taken_whole_and_oldest_first() -> None:
    turns = [turn(str(n), message(f"ask {n}"), message(f"answer {n}", Role.MODEL)) for n in range(10)]
    seen = newest_messages(turns, 5)
    assert [one.text for one in seen] == ["ask 8", "answer 8", "ask 9", "answer 9"]


def test_a_turn_that_does_not_fit_is_left_out_so_that_no_call_loses_its_result() -> None:
    called = PromptMessage(role=Role.MODEL, parts=(CALL,))
    answered = PromptMessage(role=Role.TOOL, parts=(ToolResultPart(name="generate_image", call_id="c1"),))
    turns = [turn("long", message("ask"), called, answered), turn("short", message("more"))]
    assert newest_messages(turns, 3) == [message("more")]
    assert newest_messages(turns, 4) == [message("ask"), called, answered, message("more")]


def test_a_call_that_was_cut_off_is_answered_with_the_reason() -> None:
    cut = [message("ask"), PromptMessage(role=Role.MODEL, parts=(TextPart(text="Now."), CALL))]
    closed = answer_open_calls(cut, "Stopped.")
    [result] = closed[-1].parts
    assert isinstance(result, ToolResultPart)
    assert (closed[-1].role, result.name, result.call_id, result.is_error) == (Role.TOOL, "generate_image", "c1", True)
    said = [message("ask"), message("answer", Role.MODEL)]
    assert (answer_open_calls(closed, "Stopped."), answer_open_calls(said, "Stopped.")) == (closed, said)


def test_no_signature_is_left_for_the_retry_and_nothing_else_changes() -> None:
    [bare] = without_old_signatures([PromptMessage(role=Role.MODEL, parts=(TextPart(text="Now."), CALL))])
    assert bare.parts == (TextPart(text="Now."), CALL.model_copy(update={"thought_signature": None, "signed_by": None}))
