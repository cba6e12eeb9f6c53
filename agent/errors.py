"""Every failure the studio knows, by who must act.

    AivistaError
    ├── ToolArgumentError      the model mends its call (unknown handle, illegal value, unknown tool)
    ├── RequestRefused         the person changes what was sent (bad picture, too long, too many)
    ├── KeyProblem             the person looks after the key, its billing or its region
    ├── ContentBlocked         the provider's policy refused the words or the picture
    ├── ProviderFailure        the provider failed; some kinds pass by themselves
    │   └── RateLimited        ... and this one says when
    ├── NetworkFailure         the connection failed or was cut
    ├── StorageFailure         the machine that runs the studio: disk full, database unreadable
    ├── SettingsError          the operator; names the variable or flag
    └── DesignRuleBroken       us: a rule of our own design was about to be broken

An exception is made from an `ErrorCode` and its parameters; `info` is the same as a frozen value, which is what
events, chunks and records carry. Sentences here are English; the page holds them in every language under
`error.<code>`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences import TABLE

__all__ = [
    "Actor",
    "AivistaError",
    "ContentBlocked",
    "DesignRuleBroken",
    "ErrorCode",
    "ErrorInfo",
    "KeyProblem",
    "NetworkFailure",
    "ProviderFailure",
    "RateLimited",
    "RequestRefused",
    "SettingsError",
    "StorageFailure",
    "ToolArgumentError",
    "error_from_info",
]

# `service` is whoever was asked, `console` the place where its keys are looked after.
_GOOGLE: dict[str, str | int | float] = {"service": "Google", "console": "Google AI Studio"}


# Which side of a call a policy refused: what was sent to the model, or what it made.
_REFUSED: dict[ErrorCode, Literal["input", "output"]] = {
    ErrorCode.PROMPT_BLOCKED: "input",
    ErrorCode.LANGUAGE_UNSUPPORTED: "input",
    ErrorCode.ANSWER_BLOCKED: "output",
    ErrorCode.PICTURE_BLOCKED: "output",
    ErrorCode.PICTURE_RECITATION: "output",
}


class ErrorInfo(BaseModel):
    """A failure as a value: its code, who must act, whether the same again can help, and the sentence's parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: ErrorCode
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    provider_detail: str = ""

    @property
    def actor(self) -> Actor:
        """Who must act."""
        return TABLE[self.code][0]

    @property
    def can_retry(self) -> bool:
        """Whether sending the very same again can help."""
        return TABLE[self.code][1]

    @property
    def refused(self) -> Literal["input", "output"] | None:
        """Whether a policy refused what was sent or what was made; None where none did."""
        return _REFUSED.get(self.code)

    @property
    def message(self) -> str:
        """The sentence in English."""
        return TABLE[self.code][2].format_map(_Blank(self.sentence_parameters))

    @property
    def sentence_parameters(self) -> dict[str, str | int | float]:
        """What fills the sentence in any language: the failure's own parameters; Google where none names a service."""
        return _GOOGLE | self.parameters


class _Blank(dict[str, Any]):
    """Parameters of a sentence; one that is missing reads as a question mark, never as a KeyError."""

    def __missing__(self, key: str) -> str:
        return "?"


class AivistaError(Exception):
    """The root. `info` is the failure as a value; `str()` is its English sentence."""

    def __init__(self, code: ErrorCode, *, provider_detail: str = "", **parameters: str | int | float) -> None:
        self.info = ErrorInfo(code=code, parameters=parameters, provider_detail=provider_detail)
        super().__init__(self.info.message)

    @property
    def code(self) -> ErrorCode:
        """The code of the failure."""
        return self.info.code


class ToolArgumentError(AivistaError):
    """The model called a tool wrongly and gets the sentence back as the tool's answer."""


class RequestRefused(AivistaError):
    """What the person sent cannot be used as it is."""


class KeyProblem(AivistaError):
    """The key, its billing, its quota or its region."""


class ContentBlocked(AivistaError):
    """The provider's policy."""


class ProviderFailure(AivistaError):
    """The provider answered with a failure, or with nothing usable."""


class RateLimited(ProviderFailure):
    """Too many requests; `retry_after_s` is the provider's own hint, when it gave one."""

    def __init__(self, retry_after_s: float | None, provider_detail: str = "", **parameters: str) -> None:
        self.retry_after_s = retry_after_s
        seconds = max(1, round(retry_after_s)) if retry_after_s is not None else 60
        super().__init__(ErrorCode.RATE_LIMITED, provider_detail=provider_detail, seconds=seconds, **parameters)


class NetworkFailure(AivistaError):
    """The connection."""


class StorageFailure(AivistaError):
    """The machine that runs the studio."""


class SettingsError(AivistaError):
    """A flag or variable of the operator's."""

    def __init__(self, name: str, value: object, problem: str) -> None:
        super().__init__(ErrorCode.BAD_SETTING, name=name, value=str(value), problem=problem)


class DesignRuleBroken(AivistaError):
    """A rule of the design was about to be broken; nothing was sent."""

    def __init__(self, rule: str) -> None:
        super().__init__(ErrorCode.DESIGN_RULE_BROKEN, rule=rule)


_CLASS_OF_ACTOR: dict[Actor, type[AivistaError]] = {
    Actor.MODEL: ToolArgumentError,
    Actor.YOU: RequestRefused,
    Actor.KEY: KeyProblem,
    Actor.POLICY: ContentBlocked,
    Actor.PROVIDER: ProviderFailure,
    Actor.NETWORK: NetworkFailure,
    Actor.OPERATOR: StorageFailure,
    Actor.US: AivistaError,
}


# Codes whose class is narrower than, or another than, that of who must act.
_CLASS_OF_CODE: dict[ErrorCode, type[AivistaError]] = {
    ErrorCode.RATE_LIMITED: RateLimited,
    ErrorCode.MODEL_NOT_FOUND: ProviderFailure,
    ErrorCode.BAD_SETTING: SettingsError,
    ErrorCode.DESIGN_RULE_BROKEN: DesignRuleBroken,
}


def error_from_info(info: ErrorInfo) -> AivistaError:
    """Return the exception that stands for a failure carried by a chunk or a record."""
    cls = _CLASS_OF_CODE.get(info.code) or _CLASS_OF_ACTOR[info.actor]
    error = cls.__new__(cls)
    Exception.__init__(error, info.message)
    error.info = info
    if isinstance(error, RateLimited):
        seconds = info.parameters.get("seconds")
        error.retry_after_s = float(seconds) if isinstance(seconds, int | float) else None
    return error
