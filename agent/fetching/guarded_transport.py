"""The studio's outbound network: a backend that connects only to addresses it has resolved and checked itself.

A name is resolved once per connection, and the checked address is dialled, so a DNS change between check and connection
has no effect. TLS still uses the host's name, for the certificate and for SNI.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import httpcore2
import httpx2

from agent.fetching.urls import WEB_PORTS, is_public, refused, web_url

_THREADS = 4
_SOCKET_OPTION = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
_CONNECT_S = 5.0
_MOST_ENDPOINTS = 4


class Endpoint(NamedTuple):
    """An IP address as text, and the port to connect to."""

    address: str
    port: int


class Resolver(Protocol):
    """A resolver of host names. Raises OSError when the host is unknown."""

    async def resolve(self, host: str, port: int) -> Sequence[Endpoint]:
        """Return every endpoint of the host, best first."""


class SystemResolver:
    """The operating system's resolver, with its own threads, so that a slow lookup does not block other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolver")

    async def resolve(self, host: str, port: int) -> Sequence[Endpoint]:
        """Return every endpoint of the host, in the system's order. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _looked_up, host, port)
        return tuple(dict.fromkeys(found))


def _looked_up(host: str, port: int) -> list[Endpoint]:
    # Pass bytes: Python would encode a str with its old IDNA codec again.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [Endpoint(str(place[0]), int(place[1])) for *_, place in found]


@dataclass(frozen=True)
class Guard:
    """A resolver and a check of which addresses are allowed; only the code that creates a guard chooses them."""

    resolver: Resolver = field(default_factory=SystemResolver)
    is_allowed: Callable[[str], bool] = is_public

    async def endpoints(self, host: str, port: int) -> Sequence[Endpoint]:
        """Return the endpoints to connect to.

        Raises OSError when the host is unknown, and ToolArgumentError when any of its addresses is not allowed: a name
        with both public and private addresses is probably an attack.
        """
        found = (Endpoint(host, port),) if _is_address(host) else await self.resolver.resolve(host, port)
        if not found:
            raise OSError("the name has no address")
        if not all(self.is_allowed(endpoint.address) for endpoint in found):
            raise refused(host, "it leads to an address that is not public")
        return found


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """A network backend for httpcore2 that connects only to what the guard allows; a refusal is not converted."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._dialler = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[_SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a stream to a checked address. Raises ToolArgumentError for a refused one, and httpcore2's errors."""
        deadline = time.monotonic() + (_CONNECT_S if timeout is None else timeout)
        endpoints = (await self._looked_up(host, port, deadline))[:_MOST_ENDPOINTS]
        for left, endpoint in zip(range(len(endpoints), 0, -1), endpoints, strict=True):
            # Divide the remaining time, so that one unresponsive address leaves time for the others.
            seconds = max(0.0, deadline - time.monotonic()) / left
            try:
                return await self._dialler.connect_tcp(  # pyrefly: ignore[missing-attribute]
                    *endpoint, timeout=seconds, local_address=local_address, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if left == 1:
                    raise
        raise httpcore2.ConnectError("no address answered")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[_SOCKET_OPTION] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: a Unix socket is on this machine."""
        raise httpcore2.ConnectError("only the public web is dialled")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def _looked_up(self, host: str, port: int, deadline: float) -> Sequence[Endpoint]:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await self._guard.endpoints(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("the name was not resolved in time") from None
        except OSError as error:
            raise httpcore2.ConnectError("the name is not known") from error


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_CONNECTIONS = 16
_ERRORS: dict[type[Exception], type[httpx2.TransportError]] = {
    httpcore2.ConnectTimeout: httpx2.ConnectTimeout,
    httpcore2.ReadTimeout: httpx2.ReadTimeout,
    httpcore2.WriteTimeout: httpx2.WriteTimeout,
    httpcore2.PoolTimeout: httpx2.PoolTimeout,
    httpcore2.ConnectError: httpx2.ConnectError,
    httpcore2.ReadError: httpx2.ReadError,
    httpcore2.WriteError: httpx2.WriteError,
    httpcore2.UnsupportedProtocol: httpx2.UnsupportedProtocol,
    httpcore2.LocalProtocolError: httpx2.LocalProtocolError,
    httpcore2.RemoteProtocolError: httpx2.RemoteProtocolError,
}


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient(transport=GuardedTransport(), trust_env=False)`.

    A refused address raises ToolArgumentError through the client; each redirect that the client follows is checked here
    again. When `ports` is None, every port is allowed. Without `keeps_connections`, each request opens a new
    connection. The client sets the timeouts.
    """

    def __init__(
        self,
        guard: Guard | None = None,
        ports: frozenset[int] | None = WEB_PORTS,
        *,
        ssl_context: ssl.SSLContext | None = None,
        keeps_connections: bool = True,
    ) -> None:
        self._ports = ports
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context or httpcore2.default_ssl_context(),
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_CONNECTIONS if keeps_connections else 0,
            network_backend=GuardedBackend(guard or Guard()),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response with its body not yet read. Raises ToolArgumentError and httpx2's errors."""
        place = web_url(str(request.url), self._ports)
        url = httpcore2.URL(
            scheme=place.scheme.encode(), host=place.host.encode(), port=place.port, target=request.url.raw_path
        )
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            raise TypeError("an asynchronous client sends an asynchronous body")
        sent = httpcore2.Request(
            method=request.method,
            url=url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _in_httpx2():
            answer = await self._pool.handle_async_request(sent)
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _in_httpx2():
            async for chunk in self._answer.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextlib.contextmanager
def _in_httpx2() -> Iterator[None]:
    try:
        yield
    except tuple(_ERRORS) as error:
        kind = next(_ERRORS[one] for one in type(error).__mro__ if one in _ERRORS)
        raise kind(str(error)) from error
