"""A server in a thread of its own, what it saw, and the gate that holds its answers: whatever API it speaks."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from tests.support.waiting import join
from tests.wire_server.connection import Connection, Handler
from tests.wire_server.refusals import Violation

PATIENCE_S = 40.0
MAX_BODY_BYTES = 100 << 20
A = TypeVar("A")


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
    requests: list[Any] = field(default_factory=list)
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

    def add(self, seen: Any) -> None:
        """Keep a request, a broken rule, a client's leaving, or an exception of the test's own brain or answer."""
        kinds = ((Violation, self.violations), (Disconnect, self.disconnects), (Exception, self.faults))
        if not isinstance(seen, (Violation, Disconnect, Exception)) and not self.keeps_bodies:
            seen = replace(seen, body={}, normal={})
        kept: list[Any] = next((kept for kind, kept in kinds if isinstance(seen, kind)), self.requests)
        with self._changed:
            kept.append(seen)
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


class Gate:
    """Holds answers until it is opened; opening lets go of those that wait now, else of the next one."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._waiting: set[asyncio.Future[None]] = set()
        self._lets_next_pass = False

    async def wait(self) -> None:
        """Return when the gate is next opened, or at once when it was opened for this one before it came."""
        if self._lets_next_pass:
            self._lets_next_pass = False
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        self._records.add_held(1)
        try:
            await future
        finally:
            self._waiting.discard(future)
            self._records.add_held(-1)

    def open(self) -> None:
        """Let every waiting answer go on, or the next that comes: its request may still be on its way."""
        self._lets_next_pass = not self._waiting
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """Let nothing pass that has not come yet."""
        self._lets_next_pass = False


class Script(Generic[A]):
    """What the server will answer, in order: a queue for each kind of model, then a brain.

    A brain looks at the request and says what to answer; None leaves it to the default.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: defaultdict[str, deque[A]] = defaultdict(deque)
        self._brains: dict[str, Callable[[Any], A | None]] = {}

    def add(self, kind: str, *answers: A | Callable[[Any], A | None]) -> None:
        """Queue answers; a callable becomes the brain that answers whenever the queue is empty."""
        with self._lock:
            for answer in answers:
                if callable(answer):
                    self._brains[kind] = answer
                else:
                    self._queues[kind].append(answer)

    def clear(self) -> None:
        """Forget every answer and brain."""
        with self._lock:
            self._brains.clear()
            self._queues.clear()

    @property
    def remaining(self) -> int:
        """How many queued answers nobody has asked for yet."""
        return sum(map(len, self._queues.values()))

    def next(self, kind: str, request: Any, default: A) -> A:
        """Take the answer of this request."""
        with self._lock:
            if queued := self._queues[kind]:
                return queued.popleft()
            brain = self._brains.get(kind)
        return (brain(request) if brain is not None else None) or default


class Serving:
    """A server in a thread: real HTTP on a free port of this machine, for as long as a `with` block lasts.

    An exception of a test's own brain is raised on leaving. `path` ends the address that clients are given.
    """

    def __init__(
        self, handle: Handler, records: Records, gate: Gate, *, port: int = 0, most_bytes: int, path: str = ""
    ) -> None:
        self._handle, self._records, self._gate = handle, records, gate
        self._port, self._most_bytes, self._path = port, most_bytes, path
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self.url = ""

    def __enter__(self) -> Self:
        started: queue.Queue[str | BaseException] = queue.Queue()
        name = type(self).__name__
        self._thread = threading.Thread(target=self._run, args=(started,), name=name, daemon=True)
        self._thread.start()
        first = started.get(timeout=PATIENCE_S)
        if isinstance(first, BaseException):
            raise first
        self.url = first
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stopping is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            join(self._thread)
        if error is None and self._records.faults:
            raise self._records.faults[0]

    @property
    def violations(self) -> list[Violation]:
        """Every rule broken."""
        return self._records.violations

    @property
    def disconnects(self) -> list[Disconnect]:
        """Every client that left before the end of its answer."""
        return self._records.disconnects

    @property
    def held(self) -> int:
        """How many answers are held now."""
        return self._records.held

    def release(self) -> None:
        """Let every held answer go on, or the next that is held."""
        self._soon(self._gate.open)

    def wait_until(self, is_true: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        """Return when the claim about what was seen holds. Raises TimeoutError. From a coroutine, in a thread."""
        self._records.wait_until(is_true, timeout_s)

    def wait_for_held(self, count: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Return when so many answers are held."""
        self.wait_until(lambda: self.held >= count, timeout_s)

    def wait_for_disconnect(self, count: int = 1, timeout_s: float = PATIENCE_S) -> Disconnect:
        """Return the newest disconnect when there have been so many."""
        self.wait_until(lambda: len(self.disconnects) >= count, timeout_s)
        return self.disconnects[-1]

    def _soon(self, call: Callable[[], None]) -> None:
        assert self._loop is not None, "the server is not running"
        self._loop.call_soon_threadsafe(call)

    def _run(self, started: queue.Queue[str | BaseException]) -> None:
        try:
            asyncio.run(self._live(started))
        except BaseException as fault:
            started.put(fault)

    async def _live(self, started: queue.Queue[str | BaseException]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        connections: set[Connection] = set()
        listener = await loop.create_server(
            lambda: Connection(self._handle, self._most_bytes, connections), "127.0.0.1", self._port
        )
        started.put(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{self._path}")
        await self._stopping.wait()
        listener.close()
        await asyncio.gather(*(connection.stop() for connection in tuple(connections)))
        await listener.wait_closed()
