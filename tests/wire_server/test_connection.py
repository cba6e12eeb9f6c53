"""HTTP itself, byte by byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import parse_headers

import pytest

from tests.wire_server import GeminiServer, Text
from tests.wire_server.raw import FLASH, HI

BODY = json.dumps(HI).encode()
HEAD = (
    f"POST /v1beta/models/{FLASH}:generateContent HTTP/1.1\r\nHost: here\r\nx-goog-api-key: k\r\n"
    "Content-Type: application/json\r\n"
).encode()
LENGTH = b"Content-Length: %d\r\n\r\n" % len(BODY)
REQUEST = HEAD + LENGTH + BODY


@pytest.fixture
def line(server: GeminiServer) -> Iterator[socket.socket]:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        yield connection


def answers(line: socket.socket, *pieces: bytes, count: int = 1) -> list[str]:
    """Send pieces; return the texts of the next responses."""
    for piece in pieces:
        line.sendall(piece)
    texts = []
    with line.makefile("rb") as coming:
        for _ in range(count):
            assert coming.readline() == b"HTTP/1.1 200 OK\r\n"
            body = coming.read(int(parse_headers(coming)["content-length"]))
            texts.append(json.loads(body)["candidates"][0]["content"]["parts"][0]["text"])
    return texts


def test_one_connection_serves_many_requests_in_small_pieces_or_sent_ahead(
    server: GeminiServer, line: socket.socket
) -> None:
    assert [answers(line, REQUEST) for _ in range(3)] == [["Hello."]] * 3
    assert answers(line, *(REQUEST[start : start + 7] for start in range(0, len(REQUEST), 7))) == ["Hello."]
    server.on_text(Text("first"), Text("second"))
    assert answers(line, REQUEST + REQUEST, count=2) == ["first", "second"]
    assert len(server.requests) == 6


def test_a_chunked_body_is_read_and_a_client_may_ask_to_close(server: GeminiServer, line: socket.socket) -> None:
    head, rest = HEAD + b"Transfer-Encoding: chunked\r\n\r\n", BODY[5:]
    chunks = (b"5\r\n" + BODY[:5] + b"\r\n", b"%x;note=1\r\n" % len(rest) + rest + b"\r\n", b"0\r\n\r\n")
    assert answers(line, head, *chunks) == ["Hello."]
    assert server.requests[0].size_bytes == len(BODY)
    assert answers(line, HEAD + b"Connection: close\r\n" + LENGTH + BODY) == ["Hello."]
    assert line.recv(1) == b""


@pytest.mark.parametrize("nonsense", [b"x" * 200_000, b"hello there\r\n\r\n", HEAD + b"Content-Length: many\r\n\r\n"])
def test_what_is_no_http_ends_the_connection(server: GeminiServer, line: socket.socket, nonsense: bytes) -> None:
    try:
        line.sendall(nonsense)
        is_closed = line.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        is_closed = True
    assert is_closed
    assert server.requests == []
