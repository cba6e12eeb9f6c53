"""`Sandbox.run`: runs a script in its own child process, which ends with the script.

The engine's limits stop nearly every script; the process limits and seccomp contain one that broke out of the engine;
and a timeout in this process ends them all. The child's answer is untrusted, limited in size and validated, because a
script that broke out of the engine can answer anything.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError, field_validator

from agent.child_process import ChildFailure, ChildTooSlow, run_child
from agent.messages import Value


class Protection(StrEnum):
    """The protection around the script, strongest first; each level includes the following ones."""

    SECCOMP = "seccomp"
    PROCESS_LIMITS = "process_limits"
    ENGINE_LIMITS = "engine_limits"


class ScriptEnding(StrEnum):
    """Why a script did not finish."""

    THROWN = "thrown"
    TOO_SLOW = "too_slow"
    TOO_MUCH_MEMORY = "too_much_memory"
    TOO_MANY_JOBS = "too_many_jobs"
    NEVER_SETTLED = "never_settled"
    TOO_LARGE = "too_large"
    SANDBOX_FAILED = "sandbox_failed"


class ConsoleLine(Value):
    """One call of a console method: `log`, `info`, `debug`, `warn` or `error`."""

    level: Literal["log", "info", "debug", "warn", "error"]
    text: str


class ScriptError(Value):
    """Why the script ended: the name and message of the thrown error, or of the limit; `line` counts from 1."""

    ending: ScriptEnding
    name: str
    message: str
    line: int | None = None


class ScriptResult(Value):
    """The result of a script.

    `result` is the value of its last expression, or what it returned; None if there is none. `written` are the files it
    wrote, by name, empty if it did not finish; `read` are the names of the files it read, and `has_listed` says that it
    saw the names of all files. `is_truncated` says that the result or the console was cut. `protection` is None when
    nothing was run.
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


class Thrown(Value):
    """The error that a script threw."""

    name: str
    message: str
    line: int | None


class Reply(Value):
    """The answer of a child process.

    `stopped` names the engine's limit that ended the script, if any: `interrupted`, `jobs` or the engine's message;
    `unreadable` says why its state could not be reported; `unfiltered` says why there is no seccomp filter.
    """

    has_limits: bool
    unfiltered: str
    stopped: str
    unreadable: str = ""
    state: Literal["pending", "done", "failed"] = "pending"
    result: JsonValue = None
    error: Thrown | None = None
    console: tuple[ConsoleLine, ...] = ()
    read: tuple[str, ...] = ()
    has_listed: bool = False
    written: dict[str, str] = Field(default_factory=dict)
    is_truncated: bool = False

    @field_validator("result")
    @classmethod
    def _is_json_to_everybody(cls, result: JsonValue) -> JsonValue:
        # Python and Pydantic accept NaN and Infinity, which are not valid JSON elsewhere.
        json.dumps(result, allow_nan=False)
        return result

    @property
    def protection(self) -> Protection:
        """The protection around the script."""
        if not self.unfiltered:
            return Protection.SECCOMP
        return Protection.PROCESS_LIMITS if self.has_limits else Protection.ENGINE_LIMITS


def read_reply(spoken: bytes) -> Reply | None:
    """Return the parsed answer, or None when it is invalid."""
    try:
        return Reply.model_validate_json(spoken)
    except ValidationError:
        return None


_CHILD = Path(__file__).with_name("child.py")

_log = logging.getLogger(__name__)

CPU_S = 2.0
WALL_S = 2.5
HEAP_BYTES = 64 << 20
MAX_CODE_BYTES = 200_000
MAX_INPUT_CHARACTERS = 12_000_000
MAX_CONSOLE_CHARACTERS = 20_000
MAX_RESULT_CHARACTERS = 50_000
MAX_WRITTEN_FILES = 200
MAX_WRITTEN_CHARACTERS = 4_000_000
MAX_PROMISE_JOBS = 100_000
MAX_REPLY_BYTES = 32 << 20

_LINE_BREAKS = "\n\r\u2028\u2029"


class Sandbox:
    """A runner of untrusted scripts. `cpu_s` limits a script's CPU time, `wall_s` the lifetime of its child process.

    At most `at_once` run in parallel, by default as many as the machine has processors; others wait.
    """

    def __init__(self, *, cpu_s: float = CPU_S, wall_s: float = WALL_S, at_once: int | None = None) -> None:
        self._cpu_s = cpu_s
        self._wall_s = wall_s
        self._places = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self._has_logged = False

    async def run(self, code: str, files: Mapping[str, str]) -> ScriptResult:
        """Run JavaScript with these readable files (text by name), and return the result; failures are results too.

        No state is kept between runs. When the caller is cancelled, the child is killed.
        """
        refused = _refusal(code, files)
        if refused is not None:
            return ScriptResult(error=refused)
        job = await asyncio.to_thread(self._job, code, dict(files))
        async with self._places:
            started = time.monotonic()
            try:
                spoken = await self._in_child(job)
            except ChildTooSlow:
                return ScriptResult(error=self._too_slow(), seconds=time.monotonic() - started)
            except ChildFailure as failure:
                return _not_run(str(failure), time.monotonic() - started)
            seconds = time.monotonic() - started
        return await asyncio.to_thread(self._result_of, spoken, seconds)

    async def _in_child(self, job: bytes) -> bytes:
        engine = importlib.util.find_spec("_quickjs")
        if engine is None or engine.origin is None:
            raise ChildFailure("the package quickjs-ng is not installed")
        folder = str(Path(engine.origin).parent)
        return await run_child(_CHILD, job, folder, limit_s=self._wall_s, max_answer_bytes=MAX_REPLY_BYTES)

    def _result_of(self, spoken: bytes, seconds: float) -> ScriptResult:
        reply = read_reply(spoken)
        if reply is None:
            return _not_run("the process gave no answer that can be read", seconds)
        self._log_protection(reply)
        return ScriptResult(
            result=reply.result,
            error=self._error(reply),
            console=reply.console,
            read=reply.read,
            has_listed=reply.has_listed,
            written=reply.written,
            seconds=seconds,
            is_truncated=reply.is_truncated,
            protection=reply.protection,
        )

    def _job(self, code: str, files: dict[str, str]) -> bytes:
        lines = sum(code.count(one) for one in _LINE_BREAKS) + 1
        limits = {
            "cpu_s": self._cpu_s,
            "heap_bytes": HEAP_BYTES,
            "most_jobs": MAX_PROMISE_JOBS,
            # The lines of boot.js are numbered after those of the script.
            "lines": lines + 1,
        }
        job = {
            "code": code,
            "files": files,
            "lines": lines,
            "maxConsole": MAX_CONSOLE_CHARACTERS,
            "maxResult": MAX_RESULT_CHARACTERS,
            "maxFiles": MAX_WRITTEN_FILES,
            "maxWritten": MAX_WRITTEN_CHARACTERS,
        }
        return f"{json.dumps(limits)}\n{json.dumps(job)}".encode("ascii")

    def _error(self, reply: Reply) -> ScriptError | None:
        """Return why the script did not finish, or None when it did."""
        if _is_out_of_memory(reply):
            return _limit(ScriptEnding.TOO_MUCH_MEMORY, f"the script used up its {HEAP_BYTES >> 20} MB of memory")
        if reply.stopped == "jobs":
            return _limit(ScriptEnding.TOO_MANY_JOBS, f"the script was stopped after {MAX_PROMISE_JOBS} promise jobs")
        if "interrupted" in reply.stopped:
            return self._too_slow()
        if reply.stopped or reply.unreadable:
            return _broken((reply.stopped or reply.unreadable)[:200])
        if reply.error is not None:
            thrown = reply.error
            return ScriptError(ending=ScriptEnding.THROWN, name=thrown.name, message=thrown.message, line=thrown.line)
        if reply.state == "pending":
            return _limit(ScriptEnding.NEVER_SETTLED, "the script waits for a promise that never settled")
        return None

    def _too_slow(self) -> ScriptError:
        return _limit(
            ScriptEnding.TOO_SLOW,
            f"the script was stopped: it may compute for {self._cpu_s:g} s, {self._wall_s:g} s in all",
        )

    def _log_protection(self, reply: Reply) -> None:
        """Log once which protection scripts run under."""
        if self._has_logged:
            return
        self._has_logged = True
        if reply.protection is Protection.SECCOMP:
            _log.info("Scripts run in a process of their own, under resource limits and seccomp.")
            return
        limits = "resource limits but without seccomp" if reply.has_limits else "the engine's limits and a clock alone"
        _log.warning("Scripts run in a process of their own, under %s (%s).", limits, reply.unfiltered)


def _refusal(code: str, files: Mapping[str, str]) -> ScriptError | None:
    """Return why a script is not started at all, or None."""
    size = len(code.encode("utf-8", "surrogatepass"))
    if size > MAX_CODE_BYTES:
        return _limit(ScriptEnding.TOO_LARGE, f"the script has {size} bytes; at most {MAX_CODE_BYTES} can be run")
    length = sum(len(text) for text in files.values())
    if length > MAX_INPUT_CHARACTERS:
        return _limit(
            ScriptEnding.TOO_LARGE,
            f"the files have {length} characters; at most {MAX_INPUT_CHARACTERS} can be given to a script",
        )
    return None


def _is_out_of_memory(reply: Reply) -> bool:
    thrown = reply.error.message if reply.error is not None else ""
    return "out of memory" in reply.stopped or "out of memory" in reply.unreadable or thrown == "out of memory"


def _not_run(problem: str, seconds: float) -> ScriptResult:
    _log.warning("A script could not be run: %s.", problem)
    return ScriptResult(error=_broken(problem), seconds=seconds)


def _limit(ending: ScriptEnding, message: str) -> ScriptError:
    return ScriptError(ending=ending, name="Stopped", message=message)


def _broken(detail: str) -> ScriptError:
    return ScriptError(
        ending=ScriptEnding.SANDBOX_FAILED, name="SandboxFailed", message=f"scripts cannot be run here now: {detail}"
    )
