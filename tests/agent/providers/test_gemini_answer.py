"""What each end that the API knows comes to, for words and for pictures, when an answer brought nothing."""

from __future__ import annotations

import pytest
from google.genai import types

from agent.errors import Actor, ErrorCode
from agent.messages import CompletionChunk
from agent.providers.catalogue import ModelEntry, ModelRole, load_catalogue
from agent.providers.gemini_answer import AnswerReader

CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.FLASH, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
FINISHES = {
    ErrorCode.EMPTY_ANSWER: ("STOP", "FINISH_REASON_UNSPECIFIED"),
    ErrorCode.ANSWER_TOO_LONG: ("MAX_TOKENS", "CONTINUATION"),
    ErrorCode.ANSWER_BLOCKED: (
        *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION"),
        *("PUP_LIMITED_DISABLED", "OTHER"),
    ),
    ErrorCode.LANGUAGE_UNSUPPORTED: ("LANGUAGE",),
    ErrorCode.MALFORMED_CALL: (
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"),
    ),
    ErrorCode.SIGNATURE_REJECTED: ("MISSING_THOUGHT_SIGNATURE",),
    ErrorCode.PICTURE_BLOCKED: ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"),
    ErrorCode.PICTURE_RECITATION: ("IMAGE_RECITATION",),
    ErrorCode.NO_PICTURE: ("IMAGE_OTHER", "NO_IMAGE"),
}
OF_WORDS = {reason: code for code, reasons in FINISHES.items() for reason in reasons}
OF_PICTURES = OF_WORDS | {
    **{reason: ErrorCode.PICTURE_BLOCKED for reason, code in OF_WORDS.items() if code is ErrorCode.ANSWER_BLOCKED},
    "RECITATION": ErrorCode.PICTURE_RECITATION,
    "OTHER": ErrorCode.NO_PICTURE,
}


def read(by: ModelEntry, **response: object) -> CompletionChunk:
    reader = AnswerReader(by)
    list(reader.read(types.GenerateContentResponse.model_validate(response)))
    return list(reader.end())[-1]


def test_every_finish_reason_of_the_sdk_is_in_the_table() -> None:
    assert set(OF_WORDS) == {reason.value for reason in types.FinishReason}


@pytest.mark.parametrize(
    ("by", "codes"), [pytest.param(FLASH, OF_WORDS, id="words"), pytest.param(PAINTER, OF_PICTURES, id="pictures")]
)
def test_every_finish_reason_is_told_as_what_it_is(by: ModelEntry, codes: dict[str, ErrorCode]) -> None:
    for reason, code in codes.items():
        end = read(by, candidates=[{"finishReason": reason, "finishMessage": "because"}])
        assert end.finish_reason == reason
        assert end.error is not None, reason
        assert end.error.code is code, reason
        assert "?" not in end.error.message, reason


def test_every_reason_a_prompt_is_blocked_for_is_told() -> None:
    for reason in types.BlockedReason:
        error = read(FLASH, promptFeedback={"blockReason": reason.value}).error
        assert error is not None, reason
        assert (error.code, error.actor) == (ErrorCode.PROMPT_BLOCKED, Actor.POLICY), reason
        assert error.parameters == {"reason": reason.value}
