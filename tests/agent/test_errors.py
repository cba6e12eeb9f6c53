from __future__ import annotations

import re

from agent import (
    Actor,
    AivistaError,
    Charge,
    ContentBlocked,
    DesignRuleBroken,
    ErrorCode,
    ErrorInfo,
    KeyProblem,
    NetworkFailure,
    ProviderFailure,
    RateLimited,
    RequestRefused,
    SettingsError,
    StorageFailure,
    ToolArgumentError,
    error_from_info,
)

CLASS_OF_ACTOR: dict[Actor, type[AivistaError]] = {
    Actor.MODEL: ToolArgumentError,
    Actor.YOU: RequestRefused,
    Actor.KEY: KeyProblem,
    Actor.POLICY: ContentBlocked,
    Actor.PROVIDER: ProviderFailure,
    Actor.NETWORK: NetworkFailure,
    Actor.OPERATOR: StorageFailure,
    Actor.US: AivistaError,
}
EXCEPTIONS: dict[ErrorCode, type[AivistaError]] = {
    ErrorCode.RATE_LIMITED: RateLimited,
    ErrorCode.SLOW_DOWN: RateLimited,
    ErrorCode.BAD_SETTING: SettingsError,
    ErrorCode.MODEL_NOT_FOUND: ProviderFailure,
    ErrorCode.MODEL_UNFIT: ProviderFailure,
    ErrorCode.WRONG_ADDRESS: ProviderFailure,
    ErrorCode.WRONG_PATH: ProviderFailure,
    ErrorCode.REDIRECTED: ProviderFailure,
    ErrorCode.REQUEST_REJECTED: ProviderFailure,
    ErrorCode.DESIGN_RULE_BROKEN: DesignRuleBroken,
}


def test_every_code_says_who_must_act_and_ends_in_a_sentence() -> None:
    infos = [ErrorInfo(code=code) for code in ErrorCode]
    kinds = {info.code: (type(info.actor), type(info.can_retry), type(info.charged)) for info in infos}
    assert {code: found for code, found in kinds.items() if found != (Actor, bool, Charge)} == {}
    assert [info.message for info in infos if not re.search(r"[.?:]$", info.message)] == []
    assert [info.message for info in infos if len(info.message) < len("? is ?: ?.")] == []


def test_every_sentence_takes_its_parameters_and_does_without() -> None:
    names = (
        *("handle", "known", "name", "problem", "length", "limit", "count", "megabytes", "megapixels", "width"),
        *("height", "model", "setting", "value", "choices", "reason", "seconds", "status", "variable", "detail"),
        *("text", "steps", "rule"),
    )
    given: dict[str, str | int | float] = {name: f"<{name}>" for name in names}
    said = [(ErrorInfo(code=code).message, ErrorInfo(code=code, parameters=given).message) for code in ErrorCode]
    assert [(bare, full) for bare, full in said if "{" in bare + full] == []
    assert [(bare, full) for bare, full in said if full.count("<") != bare.count("?") - full.count("?")] == []


def test_a_failure_as_a_value_becomes_the_exception_of_its_kind() -> None:
    infos = [ErrorInfo(code=code, parameters={"seconds": 7}, provider_detail="said so") for code in ErrorCode]
    errors = [(info, error_from_info(info)) for info in infos]
    kinds = {info.code: EXCEPTIONS.get(info.code, CLASS_OF_ACTOR[info.actor]) for info in infos}
    assert {info.code: type(error) for info, error in errors if type(error) is not kinds[info.code]} == {}
    told = [(info, (error.info, error.code, str(error))) for info, error in errors]
    assert [info.code for info, found in told if found != (info, info.code, info.message)] == []


def test_a_rate_limit_says_when_to_come_back() -> None:
    error = RateLimited(ErrorCode.RATE_LIMITED, provider_detail="slow down", seconds=8)
    assert "in 8 s" in str(error)
    again = error_from_info(error.info)
    assert isinstance(again, RateLimited)
    assert error.retry_after_s == again.retry_after_s == 8


def test_only_what_is_too_busy_says_when_to_come_back() -> None:
    infos = [ErrorInfo(code=code, parameters={"seconds": 7}) for code in ErrorCode]
    assert {info.code for info in infos if info.retry_after_s == 7} == {
        *(ErrorCode.RATE_LIMITED, ErrorCode.SLOW_DOWN, ErrorCode.OVERLOADED, ErrorCode.MODEL_PAUSED),
        *(ErrorCode.QUEUE_FULL, ErrorCode.QUOTA_EXHAUSTED, ErrorCode.STUDIO_CLOSING),
    }


def test_a_key_that_the_provider_echoed_is_never_in_the_sentence() -> None:
    key = "AIza" + "C4N4RY_" * 5
    infos = [ErrorInfo(code=code, parameters={"key": key, "api_key": key}, provider_detail=key) for code in ErrorCode]
    errors = [error_from_info(info) for info in infos]
    shown = {error.code: [str(error), repr(error), error.info.message, *map(str, error.args)] for error in errors}
    assert {code: texts for code, texts in shown.items() if key in "\n".join(texts)} == {}
