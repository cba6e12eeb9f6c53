"""Studios that start warm: one process has done the imports, and every studio is a fork of it.

The imports take four seconds of a processor at every start, and dozens of studios are started. What runs in a fork is
the command itself, from its first line to its exit code, or a program of a test's that uses a studio, in an
environment, a home and a folder of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from tests.support.forks import NUMBER
from tests.support.waiting import PATIENCE_S

# Read when they are imported, and by the command always set to these.
_IMPORTED_WITH = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

_PROGRAM = """
import sys
from tests.support.forks import main
sys.exit(main(int(sys.argv[1])))
"""


class WarmCommand:
    """A fork at work, with what a test needs of `subprocess.Popen`; its standard output is a pipe, and its input if it
    has one."""

    def __init__(self, pid: int, status: int, stdin: IO[str] | None, stdout: IO[str]) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self._pid = pid
        self._status = status
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, minus the signal's number after a signal, or None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises subprocess.TimeoutExpired when it has not ended after `timeout` seconds."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("studio", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self._pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout_s: float | None) -> int | None:
        if self._code is None and select.select([self._status], [], [], timeout_s)[0]:
            (self._code,) = NUMBER.unpack(os.read(self._status, NUMBER.size))
            os.close(self._status)
        return self._code


class WarmStart:
    """The process that has done the imports; it ends with the process that started it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**environment, **_IMPORTED_WITH},
            )

    def run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        errors: IO[str],
        *,
        code: str = "",
        has_input: bool = False,
    ) -> WarmCommand:
        """Run the command in a fork, or `code` as `python -c` does. Raises RuntimeError when there is no fork."""
        stdin, to_say = os.pipe() if has_input else (os.open(os.devnull, os.O_RDONLY), None)
        said, stdout = os.pipe()
        told, status = os.pipe()
        request = {"arguments": list(arguments), "environment": dict(environment), "folder": os.getcwd(), "code": code}
        handles = [stdin, stdout, errors.fileno(), status]
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], handles)
        finally:
            for handle in (stdin, stdout, status):
                os.close(handle)
        # It imports before it answers.
        is_told = bool(select.select([told], [], [], PATIENCE_S)[0])
        number = os.read(told, NUMBER.size) if is_told else b""
        if not number:
            raise RuntimeError(f"no studio was forked within {PATIENCE_S:g} s (exit code {self._process.poll()})")
        (pid,) = NUMBER.unpack(number)
        return WarmCommand(pid, told, None if to_say is None else os.fdopen(to_say, "w"), os.fdopen(said))

    def close(self) -> None:
        """End the process. Studios that still run go on."""
        self._requests.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
