"""`python -m webui` for as long as a `with` block lasts."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeAlias

from tests.support.forks import STACKS
from tests.support.lines import read_line
from tests.support.turns import rows
from tests.support.warm_start import WarmCommand, WarmStart

# What is said, or that and the handle of the picture it is said of.
Wish: TypeAlias = str | tuple[str, str]
_PATIENCE_S = 90
_SKETCHING = "from tests.page.sketching import main; main()"
_OURS = ("AIVISTA_", "GEMINI_", "GOOGLE_", "GRADIO_", "HF_", "DISPLAY", "WAYLAND_")


def clean_environment(**more: str) -> dict[str, str]:
    """Return this process's environment without keys or settings of the studio's, and with `more`.

    A studio in it asks nothing twice, so that a test sees each failure of a model.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = os.pathsep.join(part for part in (str(Path(__file__).parents[2]), kept.get("PYTHONPATH", "")) if part)
    return {**kept, "PYTHONPATH": path, "AIVISTA_RETRY_BUDGET_S": "1e-12", **more}


def free_port() -> int:
    """Return a port nobody listens on, and no connection gets from the system: those begin at 32,768."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


@cache
def _warm_start() -> WarmStart:
    start = WarmStart(clean_environment())
    atexit.register(start.close)
    return start


def start(
    arguments: Sequence[str],
    errors: IO[str],
    *,
    environment: Mapping[str, str] | None = None,
    code: str = "",
    is_cold: bool = False,
    has_input: bool = False,
) -> subprocess.Popen[str] | WarmCommand:
    """Start the command, or `code` as `python -c` does, with its imports done already unless it `is_cold`."""
    environment = clean_environment() if environment is None else environment
    if sys.platform == "linux" and not is_cold:
        return _warm_start().run(arguments, environment, errors, code=code, has_input=has_input)
    return subprocess.Popen(
        [sys.executable, *(["-c", code] if code else ["-m", "webui"]), *arguments],
        stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=environment,
    )


def run_command(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; return its exit code and what it said."""
    return run_to_end(flags, environment=clean_environment(**environment))


def run_to_end(
    arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, code: str = "", is_cold: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the command, or `code`, to its end; return its exit code and what it said."""
    with tempfile.TemporaryFile("w+") as errors:
        process = start(arguments, errors, environment=environment, code=code, is_cold=is_cold)
        assert process.stdout is not None
        ending = threading.Timer(_PATIENCE_S, process.kill)
        ending.start()
        with process.stdout:
            said = process.stdout.read()
        ended = process.wait(_PATIENCE_S)
        ending.cancel()
        errors.seek(0)
        return subprocess.CompletedProcess([*arguments], ended, said, errors.read())


class PageProcess:
    """A running studio with its page at `url`.

    With `is_cold` it does its own imports, as one that a person starts; else they are done already, where the system
    can fork.
    """

    def __init__(
        self,
        *flags: str,
        home: Path,
        environment: Mapping[str, str] | None = None,
        is_cold: bool = False,
        port: int | None = None,
    ) -> None:
        self.home = home
        self.port = port or free_port()
        self._flags = flags
        self._is_cold = is_cold
        self._environment = clean_environment(**(environment or {}))
        self.said = ""

    def is_at_rest(self) -> bool:
        """Return whether no turn is at work."""
        return not rows(self.home / "aivista.db", "SELECT id FROM turns WHERE state = 'running'")

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}"

    def sketched(self, *wishes: Wish) -> str:
        """Return the address of a new conversation in which these wishes were drawn, one turn for each."""
        return f"{self.url}/?c={self.sketch(*wishes)}"

    def sketch(self, *wishes: Wish) -> str:
        """Draw the wishes in a new conversation beside the page, which takes a fraction of the time; return its id."""
        arguments = [str(self.home), json.dumps(wishes)]
        with tempfile.TemporaryFile("w+") as errors:
            process = start(arguments, errors, environment=self._environment, code=_SKETCHING)
            assert process.stdout is not None
            with process.stdout:
                made = read_line(process, errors, _PATIENCE_S)
            process.wait(_PATIENCE_S)
        return made

    def __enter__(self) -> Self:
        flags = ["--home", str(self.home), "--port", str(self.port), *self._flags]
        # A file, not a pipe: a pipe nobody reads fills up and stops the page.
        self._errors = tempfile.TemporaryFile("w+")
        try:
            self._process = start(flags, self._errors, environment=self._environment, is_cold=self._is_cold)
            self.said = self.read_line()
        except BaseException:
            self._errors.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.end(signal.SIGTERM)
        self._errors.close()

    @property
    def errors(self) -> str:
        """What the process wrote to its standard error so far."""
        self._errors.seek(0)
        return self._errors.read()

    def read_line(self) -> str:
        """Return the next line that the process says, once it has come."""
        return read_line(self._process, self._errors, _PATIENCE_S)

    def tell(self, how: signal.Signals) -> None:
        """Send a signal, and wait for nothing."""
        self._process.send_signal(how)

    def end(self, how: signal.Signals, patience_s: float = _PATIENCE_S) -> int:
        """Send a signal and return the exit code; a process that does not listen is killed and the wait fails."""
        self.tell(how)
        return self.ended(patience_s)

    def ended(self, patience_s: float = _PATIENCE_S) -> int:
        """Return the exit code once the process has ended; one that does not is killed, and the wait fails with what it
        was at."""
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired as error:
            self._process.send_signal(STACKS)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            self._process.kill()
            raise AssertionError(f"the studio did not end\n{self.errors}") from error
        finally:
            if self._process.stdout is not None:
                self._process.stdout.close()
