"""A Python child for one piece of work on untrusted bytes: nothing of ours in it, and killed when it takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class ChildFailure(Exception):
    """The child gave no answer: it died, or was killed."""


class ChildTooSlow(ChildFailure):
    """The child was killed at the limit."""


async def run_child(script: Path, work: bytes, *, limit_s: float, max_answer_bytes: int) -> bytes:
    """Return what a script writes to its output, once it has read the work from its input to the end.

    The child runs isolated and without site packages, in a process group of its own with an empty environment, and
    never survives this call: parsing stuck inside C hears no signal but SIGKILL. Raises ChildTooSlow and ChildFailure.
    """
    process = _started(script)
    # asyncio's own processes are waited for until their pipes are closed too, and a pipe that nobody reads to its end
    # never is. A thread of its own, since the shared ones are few and a child can take seconds.
    thread = ThreadPoolExecutor(1, thread_name_prefix="child")
    talk = asyncio.get_running_loop().run_in_executor(thread, _talk, process, work, max_answer_bytes)
    try:
        async with asyncio.timeout(limit_s):
            answer = await asyncio.shield(talk)
    except TimeoutError:
        raise ChildTooSlow from None
    finally:
        _kill(process)
        await asyncio.wait({talk})
        thread.shutdown(wait=False)
    if len(answer) > max_answer_bytes:
        raise ChildFailure("the answer is too long")
    if process.returncode != 0:
        raise ChildFailure(f"exit status {process.returncode}")
    return answer


def _started(script: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(sys.executable).anchor,
        env={},
        start_new_session=True,
    )


def _talk(process: subprocess.Popen[bytes], work: bytes, most: int) -> bytes:
    """Give the work, and return the answer, at most one byte too long; blocking."""
    if process.stdin is None or process.stdout is None:
        return b""
    with process.stdout as output:
        # A child that dies before it has read everything breaks the pipe; its exit status says more.
        with contextlib.suppress(ConnectionError), process.stdin as given:
            given.write(work)
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
