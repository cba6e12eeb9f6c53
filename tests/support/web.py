"""A web of one's own on loopback: names that lead where a test says, and a server that answers in raw bytes."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from tests.adapters.fetcher import Endpoint, Guard, is_public

HERE = "127.0.0.1"
Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Names:
    """A resolver that knows what a test tells it. A name with several answers gives one a lookup, then the last."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    port_here: int = 0
    asked: list[str] = field(default_factory=list)

    def lead(self, host: str, *addresses: str) -> None:
        """Let a host have these addresses, from its next lookup on or after the answers it has already."""
        self.answers.setdefault(host, []).append(list(addresses))

    async def resolve(self, host: str, port: int) -> list[Endpoint]:
        """Return what the test said; loopback is where the test's own server listens, whatever the port."""
        self.asked.append(host)
        if host not in self.answers:
            raise OSError(f"no such name: {host}")
        answers = self.answers[host]
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [Endpoint(address, self.port_here if address == HERE else port) for address in addresses]


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    line: str
    headers: dict[str, str]


@dataclass
class Web:
    """The server, its names and what it was asked."""

    names: Names
    pages: dict[str, bytes | Handler] = field(default_factory=dict)
    requests: list[Asked] = field(default_factory=list)
    server_names: list[str] = field(default_factory=list)

    @property
    def guard(self) -> Guard:
        """The policy as it is, but that this server counts as public."""
        return Guard(self.names, lambda address: address == HERE or is_public(address))

    def page(self, path: str, body: bytes, kind: str | None = "text/html; charset=utf-8", *lines: str) -> None:
        """Serve a body at a path, with its length."""
        self.pages[path] = answer(body, kind, *lines)

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        """Send whoever asks for a path elsewhere."""
        self.pages[path] = f"HTTP/1.1 {status} Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and hang up."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *lines = head.strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
                self.requests.append(Asked(line, headers))
                page = self.pages.get(line.split(" ")[1], answer(b"no such page", "text/plain", status="404 Not Found"))
                if isinstance(page, bytes):
                    writer.write(page)
                    await writer.drain()
                else:
                    await page(writer)
            finally:
                writer.close()


def answer(body: bytes, kind: str | None = "text/html", *lines: str, status: str = "200 OK") -> bytes:
    """Return a whole answer; without a `kind` it has no Content-Type, and `lines` are further headers."""
    kinds = [] if kind is None else [f"Content-Type: {kind}"]
    head = "\r\n".join([f"HTTP/1.1 {status}", *kinds, f"Content-Length: {len(body)}", *lines])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def drop_by_drop(*pieces: bytes, pause_s: float = 0.05) -> Handler:
    """Return a handler that sends the pieces, then single bytes for ever."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(pieces))
        while not writer.is_closing():
            await asyncio.sleep(pause_s)
            writer.write(b"x")
            await writer.drain()

    return send


def endless(head: bytes, piece: bytes) -> Handler:
    """Return a handler that sends a head, and then the piece as often as it is taken."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    return send


@contextlib.asynccontextmanager
async def web(context: ssl.SSLContext | None = None) -> AsyncIterator[Web]:
    """Run the server; `site.test` and `other.test` lead to it. With a context it speaks TLS and notes the names."""
    names = Names()
    served = Web(names)
    if context is not None:
        context.sni_callback = lambda _, name, __: served.server_names.append(name or "")
    server = await asyncio.start_server(served.serve, HERE, 0, ssl=context, limit=1 << 20)
    names.port_here = server.sockets[0].getsockname()[1]
    for name in ("site.test", "other.test"):
        names.lead(name, HERE)
    # From Python 3.12 on the server as a context waits for its clients, some of which never end.
    with contextlib.closing(server):
        yield served
