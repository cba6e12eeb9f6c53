"""What a run of a script came to, as frozen values."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from agent.messages import Value


class Protection(StrEnum):
    """What held the script, from the most to the least; each holds what the next one does, too."""

    SECCOMP = "seccomp"
    PROCESS_LIMITS = "process_limits"
    ENGINE_LIMITS = "engine_limits"


class ScriptEnding(StrEnum):
    """Why a script did not come to its end."""

    THROWN = "thrown"
    TOO_SLOW = "too_slow"
    TOO_MUCH_MEMORY = "too_much_memory"
    TOO_MANY_JOBS = "too_many_jobs"
    NEVER_SETTLED = "never_settled"
    TOO_LARGE = "too_large"
    SANDBOX_FAILED = "sandbox_failed"


class ConsoleLine(Value):
    """One call of the console: `log`, `info`, `debug`, `warn` or `error`."""

    level: Literal["log", "info", "debug", "warn", "error"]
    text: str


class ScriptError(Value):
    """What ended the script: the name and message of what it threw, or of the limit; `line` counts from 1."""

    ending: ScriptEnding
    name: str
    message: str
    line: int | None = None


class ScriptResult(Value):
    """What came of a script.

    `result` is the value of its last expression, or what it returned; `None` also when there is none. `written` are
    the files it wrote, by name, and none when it did not come to its end; `read` the names of those it read, and
    `has_listed` says that it saw the names of all. `is_truncated` says that the result or the console was cut.
    `protection` is None when nothing was run.
    """

    result: JsonValue = None
    error: ScriptError | None = None
    console: tuple[ConsoleLine, ...] = ()
    read: tuple[str, ...] = ()
    has_listed: bool = False
    written: dict[str, str] = Field(default_factory=dict)
    seconds: float = 0.0
    is_truncated: bool = False
    protection: Protection | None = None
