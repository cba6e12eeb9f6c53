"""The child process of one run: it reads a job, drops its privileges, runs the script, answers, and exits.

It is started as `python -I -S child.py <folder of the engine>` and imports nothing else of the project than seccomp.py.
Input: a line of JSON with the limits, then the job, JSON in ASCII, which is passed to boot.js unchanged. Output: one
JSON object. Starting Python takes half of the time of a run, so slow imports are avoided here (dataclasses, pathlib,
typing).
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
# Extra memory and time for the report, so that there is also one of a script that used up its limits.
_REPORT_BYTES = 32 << 20
_REPORT_S = 0.5
_PROCESS_BYTES = 256 << 20


class _Stopped(Exception):
    """A limit of the engine stopped the script."""


class _CpuBudget:
    """The remaining CPU time: the engine restarts its count at each entry, and many entries must not give more time."""

    def __init__(self, context: Any, cpu_s: float) -> None:
        self._context = context
        self._cpu_s = cpu_s
        self._started = time.process_time()

    def enter(self, work: Callable[..., Any], *arguments: str) -> Any:
        """Return the engine's answer, computed within the remaining time. Raises _Stopped."""
        left = self._cpu_s - (time.process_time() - self._started)
        if left <= 0:
            raise _Stopped("interrupted")
        self._context.set_time_limit(left)
        try:
            return work(*arguments)
        except Exception as error:  # the engine's errors have no base class of their own
            raise _Stopped(str(error)) from None


def main() -> None:
    """Run the one job of this process."""
    # An isolated interpreter has neither folder on its path. Ours comes first, because other modules are also called
    # seccomp. `_quickjs` is imported directly, because the package around it would load thread pools.
    sys.path += [_HERE, sys.argv[1]]
    engine = importlib.import_module("_quickjs")
    seccomp = importlib.import_module("seccomp")
    with open(os.path.join(_HERE, "boot.js"), encoding="utf-8") as file:
        boot = file.read()
    limits = json.loads(sys.stdin.buffer.readline())
    job = sys.stdin.buffer.read().decode("ascii")
    limited = protect(limits["cpu_s"], limits["heap_bytes"])
    unfiltered = seccomp.install()
    head = {"has_limits": limited, "unfiltered": unfiltered}
    reply = {**head, **_outcome(engine, "\n" * limits["lines"] + boot, job, limits)}
    left = memoryview(json.dumps(reply).encode("ascii"))
    while left:
        left = left[os.write(1, left) :]
    # Exit without freeing anything: that would run the script's finalizers and take longer than the run.
    os._exit(0)


def protect(cpu_s: float, heap_bytes: int) -> bool:
    """Limit the resources of this process irrevocably; return whether the system supports such limits."""
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
        # Above the soft limit of CPU time comes SIGXCPU, which tells the reason; above the hard limit SIGKILL.
        hard = most + 1 if name == "RLIMIT_CPU" else most
        try:
            resource.setrlimit(getattr(resource, name), (most, hard))
        except (AttributeError, ValueError, OSError):
            continue  # not every system has all of these limits
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
    """Return the script's report; files are included only if it finished. The script's code does not run any more."""
    try:
        report = json.loads(budget.enter(host, "report"))
        names = report.pop("written")
        files = {}
        if has_ended and report["state"] == "done":
            files = {name: json.loads(budget.enter(host, "file", str(i))) for i, name in enumerate(names)}
    except (_Stopped, TypeError, ValueError) as error:
        return {"unreadable": str(error)}
    return {**report, "written": files}


if __name__ == "__main__":
    main()
