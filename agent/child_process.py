"""Runs one of the studio's scripts on untrusted data in a child process that ends with the call."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent.cancellation import shielded


class ChildFailure(Exception):
    """The child returned no answer: it died or was killed."""


class ChildTooSlow(ChildFailure):
    """The child was killed at its time limit or CPU limit."""


async def run_child(script: Path, work: bytes, *arguments: str, limit_s: float, max_answer_bytes: int) -> bytes:
    """Run a script with `work` on its stdin and return its stdout.

    The child runs isolated and without site packages, in its own process group with an empty environment. It never
    outlives this call: SIGKILL ends it, because code stuck in C reacts to no other signal. Raises ChildTooSlow and
    ChildFailure.
    """
    try:
        process = _started(script, arguments)
    except (OSError, NotImplementedError) as error:
        raise ChildFailure(f"no process could be started ({error})") from error
    # No asyncio subprocess: its wait() also waits until the pipes are closed, and a pipe that nobody reads to its end
    # never closes. Own threads, because the shared ones are few and a child can take seconds; two, because a child may
    # write before it has read everything.
    threads, loop = ThreadPoolExecutor(2, thread_name_prefix="child"), asyncio.get_running_loop()
    feeding = loop.run_in_executor(threads, _feed, process, work)
    answering = loop.run_in_executor(threads, _read_answer, process, max_answer_bytes)
    try:
        async with asyncio.timeout(limit_s):
            answer = await shielded(answering)
    except TimeoutError:
        raise ChildTooSlow from None
    finally:
        _kill(process)
        await asyncio.wait({feeding, answering})
        threads.shutdown(wait=False)
    if len(answer) > max_answer_bytes:
        raise ChildFailure("the answer is too long")
    if sys.platform != "win32" and process.returncode == -signal.SIGXCPU:
        raise ChildTooSlow
    if process.returncode != 0:
        raise ChildFailure(f"the process ended without an answer (status {process.returncode})")
    return answer


def _started(script: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(sys.executable).anchor,
        env=_bare_environment(),
        start_new_session=True,
    )


def _feed(process: subprocess.Popen[bytes], work: bytes) -> None:
    # A child that dies early breaks the pipe; its exit status is more informative.
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            with process.stdin as given:
                given.write(work)


def _read_answer(process: subprocess.Popen[bytes], most: int) -> bytes:
    """Return the answer after the child has ended; at most `most` + 1 bytes, so that the caller sees the excess."""
    if process.stdout is None:
        return b""
    with process.stdout as output:
        answer = output.read(most + 1)
    if len(answer) > most:
        _kill(process)
    process.wait()
    return answer


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _bare_environment() -> dict[str, str]:
    """Return an empty environment; on Windows it has SYSTEMROOT, without which no process can start."""
    if sys.platform == "win32":
        import ctypes

        folder = ctypes.create_unicode_buffer(260)
        ctypes.windll.kernel32.GetSystemWindowsDirectoryW(folder, len(folder))
        return {"SYSTEMROOT": folder.value}
    return {}
