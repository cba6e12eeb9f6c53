"""The server as its own process, so that it takes no time of the one being measured."""

from __future__ import annotations

import json
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.lines import read_line, running
from tests.support.waiting import PATIENCE_S, wait_until

ROOT = Path(__file__).parents[2]


class GeminiProcess:
    """`python -m tests.wire_server` for as long as a `with` block lasts."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.wire_server", "--port", "0", *self._arguments]
        with ExitStack() as stack:
            self.url = read_line(*stack.enter_context(running(command, cwd=ROOT)))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def control(self, **orders: Any) -> Any:
        """Script the server; return its state."""
        return self._ask("/_control", json.dumps(orders).encode())

    def release(self) -> None:
        """Let the held answers go on, once there are any. Raises TimeoutError when none comes."""
        wait_until(lambda: self.read("state")["held"])
        self.control(release=True)

    def read(self, what: str) -> Any:
        """Return `requests`, `violations`, `disconnects` or `state`."""
        return self._ask(f"/_{what}")

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", body, timeout=PATIENCE_S) as answer:
            return json.load(answer)
