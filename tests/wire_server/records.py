"""What the server saw, for the test to read and to wait on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.wire_server.refusals import Violation
from tests.wire_server.request import WireRequest

PATIENCE_S = 40.0


@dataclass(frozen=True)
class Disconnect:
    """A client that left before the end of its answer, and how many chunks it had been sent."""

    request_number: int
    model: str
    method: str
    chunks_sent: int


@dataclass
class Records:
    """Lists that only grow while the server runs; `wait_until` sleeps until they say what the caller hopes for."""

    keeps_bodies: bool = True
    requests: list[WireRequest] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    disconnects: list[Disconnect] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    held: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition, repr=False)
    _count: int = 0

    def next_number(self) -> int:
        """Return the number of the next request, from 1."""
        self._count += 1
        return self._count

    def add_request(self, request: WireRequest) -> None:
        """Keep a request; without its body when the server was told so."""
        kept = request if self.keeps_bodies else replace(request, body={}, normal={})
        with self._changed:
            self.requests.append(kept)
            self._changed.notify_all()

    def add_violation(self, rule: str, message: str, request_number: int) -> None:
        """Keep a broken rule."""
        with self._changed:
            self.violations.append(Violation(rule, message, request_number))
            self._changed.notify_all()

    def add_disconnect(self, disconnect: Disconnect) -> None:
        """Keep a client's leaving."""
        with self._changed:
            self.disconnects.append(disconnect)
            self._changed.notify_all()

    def add_fault(self, fault: Exception) -> None:
        """Keep an exception of the test's own brain or answer."""
        with self._changed:
            self.faults.append(fault)
            self._changed.notify_all()

    def add_held(self, change: int) -> None:
        """Count an answer that began or ceased to be held."""
        with self._changed:
            self.held += change
            self._changed.notify_all()

    def clear(self) -> None:
        """Forget everything seen so far; requests are counted on."""
        with self._changed:
            for kept in (self.requests, self.violations, self.disconnects, self.faults):
                kept.clear()

    def wait_until(self, is_true: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        """Return when the claim holds. Raises TimeoutError when it does not come true in time."""
        with self._changed:
            if not self._changed.wait_for(is_true, timeout_s):
                raise TimeoutError(f"still not so after {timeout_s} s; seen: {self}")
