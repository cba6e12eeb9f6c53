"""The server as its own process, so that it takes no time of the one being measured."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 30


class GeminiProcess:
    """`python -m tests.wire_server` for as long as a `with` block lasts."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.wire_server", "--port", "0", *self._arguments]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"the server did not start: exit code {self._process.wait(_PATIENCE_S)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:
            self._process.terminate()

    def control(self, **orders: Any) -> Any:
        """Script the server; return its state."""
        return self._ask("/_control", json.dumps(orders).encode())

    def release(self) -> None:
        """Let the held answers go on, once there are any. Raises TimeoutError when none comes."""
        until = time.monotonic() + _PATIENCE_S
        while not self.read("state")["held"]:
            if time.monotonic() > until:
                raise TimeoutError("no answer is held")
            time.sleep(0.02)
        self.control(release=True)

    def read(self, what: str) -> Any:
        """Return `requests`, `violations`, `disconnects` or `state`."""
        return self._ask(f"/_{what}")

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", body, timeout=_PATIENCE_S) as answer:
            return json.load(answer)
