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
events, chunks and records carry. Its sentence stands in `agent/locales`, in every language; an exception's own text is
English.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from math import ceil
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.error_codes import Actor, Charge, ErrorCode

__all__ = [
    "Actor",
    "AivistaError",
    "Charge",
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
    "error_sentences",
]

# `service` is whoever was asked, `console` the place where its keys are looked after.
_GOOGLE: dict[str, str | int | float] = {"service": "Google", "console": "Google AI Studio"}


# Which side of a call a policy refused: what was sent to the model, or what it made.
_REFUSED: dict[ErrorCode, Literal["input", "output"]] = {
    ErrorCode.PROMPT_BLOCKED: "input",
    ErrorCode.ANSWER_BLOCKED: "output",
    ErrorCode.PICTURE_BLOCKED: "output",
    ErrorCode.PICTURE_RECITATION: "output",
}


@cache
def error_sentences(language: str = "en") -> Mapping[str, str]:
    """Return what each failure says in a language, by its code, with `{parameters}`."""
    text = resources.files("agent").joinpath("locales", f"errors.{language}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


class ErrorInfo(BaseModel):
    """A failure as a value: its code, the sentence's parameters, and what the provider said of it.

    `charge` is set where this failure was charged otherwise than its code says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: ErrorCode
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    provider_detail: str = ""
    charge: Charge | None = None

    @property
    def actor(self) -> Actor:
        """Who must act."""
        return self.code.actor

    @property
    def can_retry(self) -> bool:
        """Whether sending the very same again can help."""
        return self.code.can_retry

    @property
    def charged(self) -> Charge:
        """Whether the provider charges for the call that failed."""
        return self.charge or self.code.charge

    @property
    def refused(self) -> Literal["input", "output"] | None:
        """Whether a policy refused what was sent or what was made; None where none did."""
        return _REFUSED.get(self.code)

    @property
    def message(self) -> str:
        """The sentence in English."""
        return self.sentence("en")

    def sentence(self, language: str) -> str:
        """Return the sentence in a language that the page speaks."""
        return error_sentences(language)[self.code.value].format_map(_Blank(self.sentence_parameters))

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
        if retry_after_s is None:
            super().__init__(ErrorCode.SLOW_DOWN, provider_detail=provider_detail, **parameters)
            return
        seconds = max(1, ceil(retry_after_s))
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
    ErrorCode.SLOW_DOWN: RateLimited,
    ErrorCode.MODEL_NOT_FOUND: ProviderFailure,
    ErrorCode.MODEL_UNFIT: ProviderFailure,
    ErrorCode.WRONG_ADDRESS: ProviderFailure,
    ErrorCode.WRONG_PATH: ProviderFailure,
    ErrorCode.REDIRECTED: ProviderFailure,
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
