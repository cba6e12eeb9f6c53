"""HTTP itself, byte by byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from tests.wire_server import GeminiServer, Text
from tests.wire_server.raw import FLASH

BODY = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
HEAD = (
    f"POST /v1beta/models/{FLASH}:generateContent HTTP/1.1\r\nHost: here\r\nx-goog-api-key: k\r\n"
    "Content-Type: application/json\r\n"
).encode()
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


class Line:
    """A bare connection that reads one response at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._buffer = b""

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.sendall(piece)

    def response(self) -> bytes:
        """Return the body of the next response."""
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK"), head
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(self._buffer) < length:
            self._more()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return body

    def _more(self) -> None:
        data = self.connection.recv(65_536)
        assert data, "the server closed the connection"
        self._buffer += data


@pytest.fixture
def line(server: GeminiServer) -> Iterator[Line]:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        yield Line(connection)


def test_one_connection_serves_many_requests(server: GeminiServer, line: Line) -> None:
    for _ in range(3):
        line.send(REQUEST)
        assert b"Hello." in line.response()
    assert len(server.requests) == 3


def test_a_request_may_come_in_small_pieces(line: Line) -> None:
    line.send(*(REQUEST[start : start + 7] for start in range(0, len(REQUEST), 7)))
    assert b"Hello." in line.response()


def test_requests_sent_ahead_are_answered_in_order(server: GeminiServer, line: Line) -> None:
    server.on_text(Text("first"), Text("second"))
    line.send(REQUEST + REQUEST)
    assert b"first" in line.response()
    assert b"second" in line.response()


def test_a_chunked_body_is_read(server: GeminiServer, line: Line) -> None:
    line.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    line.send(b"5\r\n" + BODY[:5] + b"\r\n", b"%x;note=1\r\n" % len(BODY[5:]) + BODY[5:] + b"\r\n", b"0\r\n\r\n")
    assert b"Hello." in line.response()
    assert server.requests[0].size_bytes == len(BODY)


def test_a_client_may_ask_to_close(line: Line) -> None:
    line.send(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)
    assert b"Hello." in line.response()
    assert line.connection.recv(1) == b""


@pytest.mark.parametrize("nonsense", [b"x" * 200_000, b"hello there\r\n\r\n", HEAD + b"Content-Length: many\r\n\r\n"])
def test_what_is_no_http_ends_the_connection(server: GeminiServer, line: Line, nonsense: bytes) -> None:
    assert _closes(line, nonsense)
    assert server.requests == []


def _closes(line: Line, data: bytes) -> bool:
    try:
        line.send(data)
        return line.connection.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
