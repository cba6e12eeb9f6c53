"""Servers that are not the one that was looked for, or break on the way: real sockets for the failures of a network.

Each is a context manager that gives the address to ask.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import repeat

import trustme

from tests.support.waiting import join

# What a server does with a connection whose request has been read.
_Answer = Callable[[socket.socket], None]


@contextmanager
def refusing() -> Iterator[str]:
    """Nobody listens: every connection is refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def unknown_host() -> Iterator[str]:
    """No such name: the resolver finds nothing."""
    yield "http://no-such-host.invalid"


@contextmanager
def closing() -> Iterator[str]:
    """The connection closes in the place of an answer."""
    with _serving(lambda client: None) as url:
        yield url


@contextmanager
def resetting() -> Iterator[str]:
    """The connection is reset in the middle of the answer."""

    def reset(client: socket.socket) -> None:
        client.sendall(_head("200 OK", b"text/event-stream") + b"1\r\nd\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with _serving(reset) as url:
        yield url


@contextmanager
def speaking(answer: bytes, *, once: bool = False) -> Iterator[str]:
    """These bytes come in the place of an answer; when `once`, whoever asks again gets none."""
    answers = repeat(answer, 1) if once else repeat(answer)
    with _serving(lambda client: client.sendall(next(answers, b""))) as url:
        yield url


@contextmanager
def silent() -> Iterator[tuple[str, threading.Event]]:
    """No answer comes, however long the client waits; the event says that one has asked."""
    asked = threading.Event()

    def wait(client: socket.socket) -> None:
        asked.set()
        client.recv(1)

    with _serving(wait) as url:
        yield url, asked


@contextmanager
def untrusted() -> Iterator[str]:
    """A server behind TLS whose certificate nobody on this machine trusts."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(tls)
    with _serving(lambda client: None, tls) as url:
        yield url.replace("http://127.0.0.1", "https://localhost")


@contextmanager
def unencrypted() -> Iterator[str]:
    """A server without TLS, asked by an address that wants it."""
    with _serving(lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url:
        yield url.replace("http://", "https://")


def _head(status: str, content_type: bytes, *more: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + status.encode(), b"content-type: " + content_type, b"transfer-encoding: chunked", *more]
    return b"\r\n".join(lines) + b"\r\n\r\n"


BAD_GZIP = _head("200 OK", b"text/event-stream", b"content-encoding: gzip") + b"5\r\nnever\r\n0\r\n\r\n"
NOT_HTTP = b"SSH-2.0-OpenSSH_9.9\r\n\r\n"


@contextmanager
def _serving(answer: _Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Give the address of a server that reads each request and then does `answer`, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, answer, tls), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            # Closing a socket that another thread waits on does not wake that one everywhere.
            listener.shutdown(socket.SHUT_RDWR)
            join(thread)


def _serve(listener: socket.socket, answer: _Answer, tls: ssl.SSLContext | None) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        client.settimeout(30.0)
        # A client that finds fault with the certificate goes away in the middle of this.
        with suppress(OSError):
            connection = tls.wrap_socket(client, server_side=True) if tls is not None else client
            with connection:
                _read_request(connection)
                answer(connection)


def _read_request(client: socket.socket) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(65536)
        if not piece or piece[0] == 0x16:
            # The client is gone, or says hello in TLS.
            return
        head += piece
    before, _, body = head.partition(b"\r\n\r\n")
    lines = before.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0)
    while len(body) < length:
        piece = client.recv(65536)
        if not piece:
            return
        body += piece
