"""The guard for clients on httpx2: what they ask for is checked and dialled as the fetcher's pages are."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator

import httpcore2
import httpx2

from agent.fetching.dialling import Guard, GuardedBackend
from agent.fetching.urls import WEB_PORTS, web_url

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
    """For `httpx2.AsyncClient(transport=GuardedTransport(), trust_env=False)`.

    A refused address raises ToolArgumentError through the client; each redirect that the client follows comes through
    here again. `ports` None allows every port. Timeouts are the client's.
    """

    def __init__(
        self,
        guard: Guard | None = None,
        ports: frozenset[int] | None = WEB_PORTS,
        *,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._ports = ports
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context or httpcore2.default_ssl_context(),
            max_connections=_CONNECTIONS,
            network_backend=GuardedBackend(guard or Guard()),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer, its body still to be read. Raises ToolArgumentError and httpx2's errors."""
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
