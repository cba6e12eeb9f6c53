"""HTTP/1.1 with keep-alive on a bare asyncio protocol: nothing between the socket and the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

# Headers and the framing of a chunked body together; a body's own limit is the server's.
_MAX_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class HttpRequest:
    """One request; a body over the limit was counted and thrown away."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytearray
    body_bytes: int


Handler = Callable[[HttpRequest, "Connection"], Awaitable[None]]


@dataclass
class _Coming:
    """A request whose head has been read."""

    method: str
    target: str
    headers: dict[str, str]
    length: int
    is_chunked: bool


class Connection(asyncio.Protocol):
    """One client's connection: requests one after the other, each handled in a task that ends with the client.

    `on_lost` is called when the client goes away while its answer is under way; `has_begun` says that the head of a
    streamed answer is out, so that no other can follow.
    """

    def __init__(self, handler: Handler, limit_bytes: int, everyone: set[Connection]) -> None:
        self._handler = handler
        self._limit_bytes = limit_bytes
        self._everyone = everyone
        self._buffer = bytearray()
        self._coming: _Coming | None = None
        self._dropped_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._has_hung_up = False
        self.has_begun = False
        self.on_lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # With no slack `drain` ends when the kernel has it all, so a client that left is noticed.
        transport.set_write_buffer_limits(0)
        self._everyone.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._everyone.discard(self)
        if self._task is not None:
            if self.on_lost is not None and not self._has_hung_up:
                self.on_lost()
            self._task.cancel()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._task is None:
            self._advance_or_hang_up()

    def hang_up(self) -> None:
        """Send what is written and close, in the middle of whatever was being said."""
        self._has_hung_up = True
        self._transport.close()

    def write_whole(self, status: int, headers: dict[str, str], body: bytes, *, has_body: bool = True) -> None:
        """Write a whole response."""
        head = _head(status, {**headers, "content-length": str(len(body))})
        self._transport.write(head + body if has_body else head)

    def write_head(self, status: int, headers: dict[str, str]) -> None:
        """Write the head of a response whose body follows in pieces."""
        self.has_begun = True
        self._transport.write(_head(status, {**headers, "transfer-encoding": "chunked"}))

    def write_piece(self, data: bytes) -> None:
        """Write one piece of the body."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def write_end(self) -> None:
        """Write the end of a body in pieces."""
        self._transport.write(b"0\r\n\r\n")

    async def drain(self) -> None:
        """Return when everything written has left the process."""
        await self._can_write.wait()

    async def stop(self) -> None:
        """Close at once and wait for the answer under way to end."""
        self._has_hung_up = True
        task = self._task
        self._transport.abort()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _advance_or_hang_up(self) -> None:
        try:
            self._advance()
        except ValueError:
            self.hang_up()

    def _advance(self) -> None:
        if self._coming is None and not self._read_head():
            return
        body = self._read_body()
        if body is None or self._coming is None:
            return
        coming, dropped, self._coming, self._dropped_bytes = self._coming, self._dropped_bytes, None, 0
        url = urlsplit(coming.target)
        request = HttpRequest(
            method=coming.method,
            path=unquote(url.path),
            query=dict(parse_qsl(url.query, keep_blank_values=True)),
            headers=coming.headers,
            body=body,
            body_bytes=len(body) + dropped,
        )
        self.has_begun = False
        self._task = asyncio.get_running_loop().create_task(self._handle(request))

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise ValueError("a head without an end")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        method, target, _ = lines[0].split(" ", 2)
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        self._coming = _Coming(
            method=method,
            target=target,
            headers=headers,
            length=int(headers.get("content-length", 0)),
            is_chunked="chunked" in headers.get("transfer-encoding", ""),
        )
        return True

    def _read_body(self) -> bytearray | None:
        assert self._coming is not None
        if self._coming.is_chunked:
            return self._read_chunked()
        length = self._coming.length
        if length > self._limit_bytes:
            # Read to the end before answering: a client that is still sending would see a reset, not the answer.
            self._dropped_bytes += (taken := min(len(self._buffer), length - self._dropped_bytes))
            del self._buffer[:taken]
            return bytearray() if self._dropped_bytes == length else None
        if len(self._buffer) < length:
            return None
        body = self._buffer
        self._buffer = body[length:]
        del body[length:]
        return body

    def _read_chunked(self) -> bytearray | None:
        body, start = bytearray(), 0
        while (line_end := self._buffer.find(b"\r\n", start)) >= 0:
            size = int(self._buffer[start:line_end].split(b";")[0], 16)
            start = line_end + 2 + size + 2
            if len(self._buffer) < start:
                return None
            if size == 0:
                del self._buffer[:start]
                return body
            body += self._buffer[line_end + 2 : line_end + 2 + size]
        return None

    async def _handle(self, request: HttpRequest) -> None:
        try:
            await self._handler(request, self)
            await self.drain()
        finally:
            self._task = None
            self.on_lost = None
        if self._has_hung_up:
            return
        if request.headers.get("connection", "").lower() == "close":
            self._transport.close()
        elif self._buffer:
            self._advance_or_hang_up()


def _head(status: int, headers: dict[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1")
