"""What fails for real: files that may not grow, Python children that die without goodbye."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.page.process import run_to_end, start
from tests.support.lines import read_line
from tests.support.waiting import PATIENCE_S


def run_child(code: str, *arguments: str, is_cold: bool = False) -> subprocess.CompletedProcess[str]:
    """Return what a Python child printed. Unless it `is_cold`, a studio's imports are done already."""
    return run_to_end(arguments, code=code, is_cold=is_cold)


@contextmanager
def full_disk(max_file_bytes: int) -> Iterator[None]:
    """For as long as the block lasts no file of this process can grow beyond this. Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def children_that_run(script: str) -> list[int]:
    """Return the processes that this one has started, that have not ended, and whose command names the script."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if fields[1] == str(os.getpid()) and fields[0] != "Z" and script.encode() in command:
            found.append(int(entry.name))
    return found


class StudioChild:
    """A program that runs a studio and may be killed, for as long as a `with` block lasts; its imports are done already
    where the system can fork."""

    def __init__(self, code: str, *arguments: str) -> None:
        self._code = code
        self._arguments = arguments

    def __enter__(self) -> Self:
        # A file, not a pipe: a pipe nobody reads fills up and stops the child.
        self._errors = tempfile.TemporaryFile("w+")
        self._child = start(self._arguments, self._errors, code=self._code)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait(PATIENCE_S)
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._errors.close()

    async def line(self) -> str:
        """Return the next line that it prints. Raises RuntimeError, with what it wrote of it, when none comes."""
        return await asyncio.to_thread(read_line, self._child, self._errors)

    def kill(self) -> None:
        """End it at once."""
        self._child.kill()

    async def ended(self) -> int:
        """Return its exit code once it has ended, minus the signal's number after a signal."""
        return await asyncio.to_thread(self._child.wait, PATIENCE_S)
