"""A server in a thread of its own: HTTP/1.1 on loopback, what it saw, its script, and answers that can be held.

Whatever API it speaks: a subclass says what a request is answered with.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson

from tests.support.waiting import join
from tests.wire_server.refusals import Json, Refused, Violation, error_body

PATIENCE_S = 40.0
MAX_BODY_BYTES = 100 << 20
_MAX_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class HttpRequest:
    """One request; a body over the limit was counted and thrown away."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    body_bytes: int


class Connection(asyncio.Protocol):
    """One client's connection: requests one after the other, in a task that ends when the client leaves.

    `on_lost` is called when the client goes away while its answer is under way; `has_begun` says that the head of a
    streamed answer is out, so that no other can follow.
    """

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._reader = asyncio.StreamReader(_MAX_HEAD_BYTES)
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._has_hung_up = False
        self.has_begun = False
        self.on_lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._reader.set_transport(transport)
        # With no slack `drain` ends when the kernel has it all, so a client that left is noticed.
        transport.set_write_buffer_limits(0)
        self._server.connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self.on_lost is not None and not self._has_hung_up:
            self.on_lost()
        self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._reader.feed_data(data)

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def hang_up(self) -> None:
        """Send what is written and close, in the middle of whatever was being said."""
        self._has_hung_up = True
        self._transport.close()

    async def stop(self) -> None:
        """Close at once and wait for the answer under way to end."""
        self._has_hung_up = True
        self._transport.abort()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def write_whole(self, status: int, headers: dict[str, str], body: Json | bytes) -> None:
        """Write a whole response."""
        data = dumped(body)
        self._transport.write(_head(status, {**headers, "content-length": str(len(data))}) + data)

    def write_piece(self, data: bytes, headers: dict[str, str]) -> None:
        """Write one piece of a streamed body, the response's head before the first; the empty piece ends it."""
        if not self.has_begun:
            self.has_begun = True
            self._transport.write(_head(200, {**headers, "transfer-encoding": "chunked"}))
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def drain(self) -> None:
        """Return when everything written has left the process."""
        await self._can_write.wait()

    async def _serve(self) -> None:
        try:
            is_open = True
            while is_open:
                request = await self._next_request()
                self.has_begun = False
                await self._server.answer(request, self)
                await self.drain()
                self.on_lost = None
                is_open = request.headers.get("connection", "").lower() != "close"
        except (ValueError, asyncio.LimitOverrunError):
            pass  # it is no HTTP
        self.hang_up()

    async def _next_request(self) -> HttpRequest:
        """Return the next request. Raises ValueError or LimitOverrunError when it is none."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        url = urlsplit(target)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        return HttpRequest(method, unquote(url.path), query, headers, *await self._read_body(headers))

    async def _read_body(self, headers: dict[str, str]) -> tuple[bytes, int]:
        """Return the body and its size."""
        if "chunked" in headers.get("transfer-encoding", ""):
            body = bytearray()
            while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
                body += (await self._reader.readexactly(size + 2))[:-2]
            await self._reader.readexactly(2)
            return bytes(body), len(body)
        length = left = int(headers.get("content-length", 0))
        if length <= self._server.most_bytes:
            return await self._reader.readexactly(length), length
        # Read to the end before answering: a client that is still sending would see a reset, not the answer.
        while left:
            left -= len(await self._reader.read(min(left, _MAX_HEAD_BYTES)))
        return b"", length


def _head(status: int, headers: dict[str, str]) -> bytes:
    phrase = next((known.phrase for known in HTTPStatus if known == status), "Unknown")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1")


def dumped(body: Json | bytes) -> bytes:
    """Return a body as it goes onto the wire."""
    return body if isinstance(body, bytes) else orjson.dumps(body)


# What an answer is made of: steps, played one after the other onto the wire.


@dataclass(frozen=True)
class Pause:
    """Nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class WaitForRelease:
    """Nothing until the test calls `release`."""


@dataclass(frozen=True)
class HangUp:
    """The connection closes without the end of the answer."""


@dataclass(frozen=True)
class Event:
    """One event of a stream: its JSON, or bytes as they are."""

    data: Json | bytes


@dataclass(frozen=True)
class Response:
    """A whole HTTP response; an event with its body when the stream has begun."""

    status: int
    body: Json | bytes
    headers: dict[str, str] = field(default_factory=dict)


Step = Pause | WaitForRelease | HangUp | Event | Response


@dataclass(frozen=True)
class Disconnect:
    """A client that left before the end of its answer, and how many chunks it had been sent."""

    request_number: int
    model: str
    method: str
    chunks_sent: int


class Serving:
    """A server on a free port of this machine, for as long as a `with` block lasts.

    An exception of a test's own brain is raised on leaving. `path` ends the address that clients are given. The lists
    of what was seen only grow while the server runs; `violations` are the rules broken, `disconnects` the clients that
    left before the end of their answer, `faults` the exceptions of the test's own brains and answers.
    """

    json_headers: ClassVar[dict[str, str]]
    stream_headers: ClassVar[dict[str, str]]
    event_end: ClassVar[bytes]

    def __init__(self, *, port: int = 0, most_bytes: int = MAX_BODY_BYTES, path: str = "") -> None:
        self._port, self._path, self.most_bytes, self.url = port, path, most_bytes, ""
        self.connections: set[Connection] = set()
        self.violations: list[Violation] = []
        self.disconnects: list[Disconnect] = []
        self.faults: list[Exception] = []
        self._count = 0
        # Held while what was seen or scripted changes; notified when something was seen.
        self._changed = threading.Condition()
        self._queues: defaultdict[str, deque[Any]] = defaultdict(deque)
        self._brains: dict[str, Callable[[Any], Any]] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._lets_next_pass = False

    async def serve(self, http: HttpRequest, connection: Connection, number: int) -> None:
        """Answer a request, the one of this number from 1. Raises Refused."""
        raise NotImplementedError

    def headers_for(self, http: HttpRequest) -> dict[str, str]:
        """Return the headers of a whole response to this request."""
        return self.json_headers

    # In a thread.

    def __enter__(self) -> Self:
        started: Future[str] = Future()
        name = type(self).__name__
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(started)), name=name, daemon=True)
        self._thread.start()
        self.url = started.result(PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        join(self._thread)
        if error is None and self.faults:
            raise self.faults[0]

    async def _live(self, started: Future[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            listener = await self._loop.create_server(lambda: Connection(self), "127.0.0.1", self._port)
        except OSError as fault:
            started.set_exception(fault)
            return
        started.set_result(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{self._path}")
        await self._stopping.wait()
        listener.close()
        await asyncio.gather(*(connection.stop() for connection in tuple(self.connections)))
        await listener.wait_closed()

    # What was seen.

    def note(self, kept: list[Any], seen: Any) -> None:
        """Keep what was seen."""
        with self._changed:
            kept.append(seen)
            self._changed.notify_all()

    def wait_until(self, is_true: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        """Return when the claim about what was seen holds. Raises TimeoutError. From a coroutine, in a thread."""
        with self._changed:
            if not self._changed.wait_for(is_true, timeout_s):
                raise TimeoutError(f"still not so after {timeout_s} s; seen: {self.__dict__}")

    def wait_for_held(self, count: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Return when so many answers are held."""
        self.wait_until(lambda: self.held >= count, timeout_s)

    def wait_for_disconnect(self, count: int = 1, timeout_s: float = PATIENCE_S) -> Disconnect:
        """Return the newest disconnect when there have been so many."""
        self.wait_until(lambda: len(self.disconnects) >= count, timeout_s)
        return self.disconnects[-1]

    # What is answered: in order from a queue for each kind of model, then by a brain, which looks at the request.

    @property
    def remaining(self) -> int:
        """How many scripted answers nobody has asked for."""
        return sum(map(len, self._queues.values()))

    def add_answers(self, kind: str, answers: Iterable[Any]) -> None:
        """Queue answers; a callable becomes the brain that answers whenever the queue is empty."""
        with self._changed:
            for answer in answers:
                if callable(answer):
                    self._brains[kind] = answer
                else:
                    self._queues[kind].append(answer)

    def next_answer(self, kind: str, request: Any, default: Any) -> Any:
        """Take the answer of this request; None of a brain leaves it to the default."""
        with self._changed:
            if queued := self._queues[kind]:
                return queued.popleft()
            brain = self._brains.get(kind)
        return (brain(request) if brain is not None else None) or default

    def clear(self) -> None:
        """Forget what was scripted and seen; requests are counted on."""
        with self._changed:
            for kept in (self.violations, self.disconnects, self.faults, self._queues, self._brains):
                kept.clear()
        # Behind whatever was released before.
        self._loop.call_soon_threadsafe(self._pass_next, False)

    # Holding: opening lets go of the answers that wait now, else of the next one.

    @property
    def held(self) -> int:
        """How many answers are held now."""
        return len(self._waiting)

    def release(self) -> None:
        """Let every held answer go on, or the next that is held: its request may still be on its way."""
        self._loop.call_soon_threadsafe(self._open)

    def _open(self) -> None:
        self._pass_next(not self._waiting)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _pass_next(self, passes: bool) -> None:
        self._lets_next_pass = passes

    async def _wait_for_release(self) -> None:
        if self._lets_next_pass:
            self._lets_next_pass = False
            return
        future = self._loop.create_future()
        with self._changed:
            self._waiting.add(future)
            self._changed.notify_all()
        try:
            await future
        finally:
            with self._changed:
                self._waiting.discard(future)
                self._changed.notify_all()

    # From a request to its answer.

    async def answer(self, http: HttpRequest, connection: Connection) -> None:
        """Answer one request: as it was scripted, or with its refusal, or by failing as the test's own code did."""
        number = self._count = self._count + 1
        try:
            await self.serve(http, connection, number)
        except Refused as refusal:
            if refusal.rule:
                self.note(self.violations, Violation(refusal.rule, refusal.message, number))
            connection.write_whole(refusal.status, self.headers_for(http), refusal.body)
        except Exception as fault:
            self.note(self.faults, fault)
            if connection.has_begun:
                connection.hang_up()
            else:
                body = error_body(500, f"The test's own answer failed: {fault!r}")
                connection.write_whole(500, self.headers_for(http), body)

    async def play(
        self, steps: Iterable[Any], http: HttpRequest, connection: Connection, number: int, model: str, method: str = ""
    ) -> None:
        """Send an answer's steps as a stream of events, or as the one response that is among them."""
        sent = 0
        connection.on_lost = lambda: self.note(self.disconnects, Disconnect(number, model, method, sent))
        for step in steps:
            match step:
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case WaitForRelease():
                    await self._wait_for_release()
                case HangUp():
                    connection.hang_up()
                    return
                case Response(status, body, headers) if not connection.has_begun:
                    connection.write_whole(status, {**self.headers_for(http), **headers}, body)
                    return
                case Event(data) | Response(body=data):
                    connection.write_piece(b"data: %b%b" % (dumped(data), self.event_end), self.stream_headers)
                    sent += 1
            await connection.drain()
        connection.write_piece(b"", self.stream_headers)
