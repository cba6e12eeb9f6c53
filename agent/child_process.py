"""A script of ours in a child process that holds what nobody has read, and ends with the call."""

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
    """The child gave no answer: it died, or was killed."""


class ChildTooSlow(ChildFailure):
    """The child was killed at the limit of its time, or of what it may compute."""


async def run_child(script: Path, work: bytes, *arguments: str, limit_s: float, max_answer_bytes: int) -> bytes:
    """Return what a script writes to its output, once it has read the work from its input to the end.

    The child runs isolated and without site packages, in a process group of its own with an empty environment, and
    never survives this call: work stuck inside C hears no signal but SIGKILL. Raises ChildTooSlow and ChildFailure.
    """
    try:
        process = _started(script, arguments)
    except (OSError, NotImplementedError) as error:
        raise ChildFailure(f"no process could be started ({error})") from error
    # asyncio's own processes are waited for until their pipes are closed too, and a pipe that nobody reads to its end
    # never is. Threads of its own, since the shared ones are few and a child can take seconds; two, since a child may
    # speak before it has read.
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
    # A child that dies before it has read everything breaks the pipe; its exit status says more.
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            with process.stdin as given:
                given.write(work)


def _read_answer(process: subprocess.Popen[bytes], most: int) -> bytes:
    """Return the answer when the child has ended, at most one byte too long."""
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
    """Return an empty environment; on Windows no process starts without knowing the system's folder."""
    if sys.platform == "win32":
        import ctypes

        folder = ctypes.create_unicode_buffer(260)
        ctypes.windll.kernel32.GetSystemWindowsDirectoryW(folder, len(folder))
        return {"SYSTEMROOT": folder.value}
    return {}
