"""One child process: started bare, given its job, heard up to a limit, and never outliving the call."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass
from pathlib import Path

_CHILD = Path(__file__).with_name("child.py")
_ENGINE = "_quickjs"
_PIECE_BYTES = 65536


@dataclass(frozen=True)
class Spoken:
    """What a child said; `was_late` when its time ran out, and `problem` is why there may be no answer in `data`."""

    data: bytes = b""
    was_late: bool = False
    problem: str = ""


async def ask_child(job: bytes, *, wall_s: float, max_bytes: int) -> Spoken:
    """Return what a child answers to the job within its time; at most `max_bytes` of it.

    The child runs isolated, without site packages and with an empty environment, in a process group of its own that is
    killed when the call ends, however it ends.
    """
    engine = importlib.util.find_spec(_ENGINE)
    if engine is None or engine.origin is None:
        return Spoken(problem="the package quickjs-ng is not installed")
    try:
        process = await _start(str(Path(engine.origin).parent))
    except (OSError, NotImplementedError) as error:
        return Spoken(problem=f"no process could be started ({error})")
    answer = bytearray()
    was_late = False
    feeding = asyncio.create_task(_feed(process, job))
    try:
        async with asyncio.timeout(wall_s):
            await _hear(process, answer, max_bytes)
            if len(answer) <= max_bytes:
                await process.wait()
    except TimeoutError:
        was_late = True
    finally:
        feeding.cancel()
        await _end(process)
        await asyncio.gather(feeding, return_exceptions=True)
    if len(answer) > max_bytes:
        return Spoken(problem=f"the process answered with more than {max_bytes} bytes")
    status = process.returncode
    problem = f"the process ended without an answer (status {status})"
    return Spoken(bytes(answer), was_late or _used_up_its_time(status), problem)


async def _start(folder: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_CHILD), folder),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=_bare_environment(),
        cwd=Path(sys.executable).anchor,
        start_new_session=True,
        close_fds=True,
    )


async def _feed(process: Process, job: bytes) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    # A child that dies before it has read everything breaks the pipe; its exit status says more.
    with contextlib.suppress(ConnectionError):
        try:
            pipe.write(job)
            await pipe.drain()
        finally:
            pipe.close()
            await pipe.wait_closed()


async def _hear(process: Process, answer: bytearray, max_bytes: int) -> None:
    while process.stdout is not None and len(answer) <= max_bytes:
        piece = await process.stdout.read(_PIECE_BYTES)
        if not piece:
            return
        answer += piece


async def _end(process: Process) -> None:
    _kill(process)
    # On some Pythons a process is only waited for to its end when its pipe was read to the end.
    while process.stdout is not None and await process.stdout.read(_PIECE_BYTES):
        continue
    await process.wait()


def _kill(process: Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _used_up_its_time(status: int | None) -> bool:
    return sys.platform != "win32" and status == -signal.SIGXCPU


def _bare_environment() -> dict[str, str]:
    """Return an empty environment; on Windows no process starts without knowing the system's folder."""
    if sys.platform == "win32":
        import ctypes

        folder = ctypes.create_unicode_buffer(260)
        ctypes.windll.kernel32.GetSystemWindowsDirectoryW(folder, len(folder))
        return {"SYSTEMROOT": folder.value}
    return {}
