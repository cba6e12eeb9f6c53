"""`Sandbox.run`: a script in a child process of its own, which ends with it.

The engine's limits stop nearly every script, the limits of the process and seccomp hold one that broke out of the
engine, and the clock of this side holds them all. What the child answers is read as hostile: capped and checked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Mapping

from agent.sandbox.process import Spoken, ask_child
from agent.sandbox.reply import Reply, read_reply
from agent.sandbox.run import Protection, ScriptEnding, ScriptError, ScriptResult

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
    """Runs scripts that nobody has read. `cpu_s` is what a script may compute, `wall_s` what its child may live.

    At most `at_once` run side by side, by default as many as the machine has processors; the others wait their turn.
    """

    def __init__(
        self, *, cpu_s: float = CPU_S, wall_s: float = WALL_S, heap_bytes: int = HEAP_BYTES, at_once: int | None = None
    ) -> None:
        self._cpu_s = cpu_s
        self._wall_s = wall_s
        self._heap_bytes = heap_bytes
        self._places = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self._has_told = False

    async def run(self, code: str, files: Mapping[str, str]) -> ScriptResult:
        """Run JavaScript with these files, text by name, to read; return what came of it, failures too.

        Nothing is kept from one run to the next. When the caller is cancelled, the child is killed.
        """
        refused = _refusal(code, files)
        if refused is not None:
            return ScriptResult(error=refused)
        job = await asyncio.to_thread(self._job, code, dict(files))
        async with self._places:
            started = time.monotonic()
            spoken = await ask_child(job, wall_s=self._wall_s, max_bytes=MAX_REPLY_BYTES)
            seconds = time.monotonic() - started
        return await asyncio.to_thread(self._told, spoken, seconds)

    def _told(self, spoken: Spoken, seconds: float) -> ScriptResult:
        reply = read_reply(spoken)
        if reply is None and spoken.was_late:
            return ScriptResult(error=self._too_slow(), seconds=seconds)
        if reply is None:
            _log.warning("A script could not be run: %s.", spoken.problem)
            return ScriptResult(error=_broken(spoken.problem), seconds=seconds)
        self._tell(reply)
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
            "heap_bytes": self._heap_bytes,
            "most_jobs": MAX_PROMISE_JOBS,
            # Boot's own lines come after the script's.
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
        """Return why the script did not come to its end, or None when it did."""
        if _is_out_of_memory(reply):
            return _limit(ScriptEnding.TOO_MUCH_MEMORY, f"the script used up its {self._heap_bytes >> 20} MB of memory")
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

    def _tell(self, reply: Reply) -> None:
        """Log once what protects this machine from a script."""
        if self._has_told:
            return
        self._has_told = True
        match reply.protection:
            case Protection.SECCOMP:
                _log.info("Scripts run in a process of their own, under resource limits and seccomp.")
            case Protection.PROCESS_LIMITS:
                _log.warning(
                    "Scripts run in a process of their own, under resource limits but without seccomp (%s).",
                    reply.unfiltered,
                )
            case Protection.ENGINE_LIMITS:
                _log.warning(
                    "Scripts run in a process of their own, under the engine's limits and a clock alone (%s).",
                    reply.unfiltered,
                )


def _refusal(code: str, files: Mapping[str, str]) -> ScriptError | None:
    """Return why a script is not even started, or None."""
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


def _limit(ending: ScriptEnding, message: str) -> ScriptError:
    return ScriptError(ending=ending, name="Stopped", message=message)


def _broken(detail: str) -> ScriptError:
    return ScriptError(
        ending=ScriptEnding.SANDBOX_FAILED, name="SandboxFailed", message=f"scripts cannot be run here now: {detail}"
    )
