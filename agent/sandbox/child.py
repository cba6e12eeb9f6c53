"""The child of one run: reads a job, gives up what it could do, lets the script compute, answers, and ends.

It is started as `python -I -S child.py <folder of the engine>` and knows nothing of the project. In: a line of JSON
with the limits, and the job, JSON in ASCII, which goes to boot.js as it is. Out: one JSON object. Half of a run is the
start of its Python, so that nothing is imported here which takes its time (dataclasses, pathlib, typing).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

if sys.platform != "win32":
    import resource

_HERE = os.path.dirname(os.path.abspath(__file__))
_STACK_BYTES = 512 * 1024
# What the report may use beyond the script's own, so that a script which used up everything is still told of.
_REPORT_BYTES = 32 << 20
_REPORT_S = 0.5
_PROCESS_BYTES = 256 << 20


class _Stopped(Exception):
    """A limit of the engine's ended the script."""


class _CpuBudget:
    """The processor time that is left: the engine counts each entry anew, a script is not to gain by many."""

    def __init__(self, context: Any, cpu_s: float) -> None:
        self._context = context
        self._cpu_s = cpu_s
        self._started = time.process_time()

    def enter(self, work: Callable[..., Any], *arguments: str) -> Any:
        """Return what the engine answers within the time that is left. Raises _Stopped."""
        left = self._cpu_s - (time.process_time() - self._started)
        if left <= 0:
            raise _Stopped("interrupted")
        self._context.set_time_limit(left)
        try:
            return work(*arguments)
        except Exception as error:  # what the engine raises has no base of its own
            raise _Stopped(str(error)) from None


def main() -> None:
    """Run the one job of this process."""
    # Neither is on the path of an isolated interpreter; ours comes first, for others are called seccomp, too.
    # The package around the engine would load thread pools.
    sys.path += [_HERE, sys.argv[1]]
    engine = importlib.import_module("_quickjs")
    seccomp = importlib.import_module("seccomp")
    with open(os.path.join(_HERE, "boot.js"), encoding="utf-8") as file:
        boot = file.read()
    limits = json.loads(sys.stdin.buffer.readline())
    job = sys.stdin.buffer.read().decode("ascii")
    limited = protect(limits["cpu_s"], limits["heap_bytes"])
    unfiltered = seccomp.install()
    told = {"has_limits": limited, "unfiltered": unfiltered}
    _answer({**told, **_outcome(engine, "\n" * limits["lines"] + boot, job, limits)})
    # Nothing is freed: that would run the script's own finalizers, and takes longer than the run.
    os._exit(0)


def protect(cpu_s: float, heap_bytes: int) -> bool:
    """Limit what this process may use, for good; return whether the system has such limits."""
    if sys.platform == "win32":
        return False
    cpu = int(cpu_s) + 2
    for name, most in (
        ("RLIMIT_CPU", cpu),
        ("RLIMIT_AS", heap_bytes + _PROCESS_BYTES),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NPROC", 0),
        ("RLIMIT_NOFILE", 0),
    ):
        # Beyond the first of two limits of time comes SIGXCPU, which says what it was; beyond the other SIGKILL.
        hard = most + 1 if name == "RLIMIT_CPU" else most
        try:
            resource.setrlimit(getattr(resource, name), (most, hard))
        except (AttributeError, ValueError, OSError):
            continue  # not every system has each of them
    return True


def _outcome(engine: ModuleType, boot: str, job: str, limits: dict[str, Any]) -> dict[str, Any]:
    context = engine.Context()
    context.set_memory_limit(limits["heap_bytes"])
    context.set_max_stack_size(_STACK_BYTES)
    host = context.eval(boot)
    stopped = ""
    try:
        budget = _CpuBudget(context, limits["cpu_s"])
        budget.enter(host, "load", job)
        del job
        budget.enter(host, "start")
        for _ in range(limits["most_jobs"]):
            if not budget.enter(context.execute_pending_job):
                break
        else:
            stopped = "jobs"
    except _Stopped as error:
        stopped = str(error) or "interrupted"
    context.set_memory_limit(limits["heap_bytes"] + _REPORT_BYTES)
    return {"stopped": stopped, **_report(host, _CpuBudget(context, _REPORT_S), has_ended=not stopped)}


def _report(host: Callable[..., Any], budget: _CpuBudget, *, has_ended: bool) -> dict[str, Any]:
    """Return what the script left; the files only of one that came to its end. None of its code runs any more."""
    try:
        report = json.loads(budget.enter(host, "report"))
        names = report.pop("written")
        files = {}
        if has_ended and report["state"] == "done":
            files = {name: json.loads(budget.enter(host, "file", str(i))) for i, name in enumerate(names)}
    except (_Stopped, TypeError, ValueError) as error:
        return {"unreadable": str(error)}
    return {**report, "written": files}


def _answer(reply: dict[str, Any]) -> None:
    data = memoryview(json.dumps(reply).encode("ascii"))
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
