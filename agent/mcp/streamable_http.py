"""A server at an address: the SDK's streamable HTTP, through the guard that every outbound request of ours passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agent.errors import ToolArgumentError
from agent.fetching.transport import GuardedTransport
from agent.fetching.urls import refused
from agent.mcp.limits import MAX_MESSAGE_BYTES, TOO_LONG
from agent.mcp_config import HttpServer

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_TIMES = httpx2.Timeout(30.0, connect=5.0, read=300.0)
_LOCKED = frozenset({401, 403})


class HttpLink:
    """The way to such a server, for `mcp.Client`.

    `is_refused` is set when the guard would not dial, `is_locked` when the server wants another key. What is asked for
    goes to the configured address alone: the SDK follows no redirect away from it.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._stack = AsyncExitStack()
        self.is_refused = False
        self.is_locked = False
        self.last_words = ""

    async def __aenter__(self) -> TransportStreams:
        """Return the streams of the server's messages and of ours; nothing is sent yet."""
        headers = {name: value.get_secret_value() for name, value in self._server.headers.items()}
        # What is unpacked may be a thousand times as long as what was counted.
        headers["Accept-Encoding"] = "identity"
        client = httpx2.AsyncClient(
            transport=_Watched(self, self._server), headers=headers, timeout=_TIMES, trust_env=False
        )
        await self._stack.enter_async_context(client)
        streams = streamable_http_client(self._server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES)
        return await self._stack.enter_async_context(streams)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End the session, and close every connection."""
        return await self._stack.__aexit__(kind, error, trace)


class _Watched(httpx2.AsyncBaseTransport):
    """Notes why nothing came, and lets no answer grow. Which port a server listens on, the operator has said.

    An address of this machine or its network, which the guard would never dial, is dialled as the operator wrote it:
    in numbers, so that no name can lead elsewhere.
    """

    def __init__(self, link: HttpLink, server: HttpServer) -> None:
        self._link = link
        self._only_host = httpx2.URL(server.url).host if server.allow_local else None
        self._inner: httpx2.AsyncBaseTransport = (
            httpx2.AsyncHTTPTransport(trust_env=False) if server.allow_local else GuardedTransport(ports=None)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            if self._only_host not in (None, request.url.host):
                raise refused(str(request.url), "it is not the address in the operator's file")
            answer = await self._inner.handle_async_request(request)
        except ToolArgumentError:
            self._link.is_refused = True
            raise
        self._link.is_locked = answer.status_code in _LOCKED
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            await answer.aclose()
            raise httpx2.RemoteProtocolError("the answer is packed although that was not asked for")
        if answer.headers.get("content-type", "").lower().startswith("text/event-stream"):
            # It may go on for hours; each event of it is limited where it is put together.
            return answer
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=_Short(answer), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Short(httpx2.AsyncByteStream):
    def __init__(self, answer: httpx2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._answer.aiter_raw():
            size += len(piece)
            if size > MAX_MESSAGE_BYTES:
                # The one kind of error that costs the SDK this answer and not the whole session.
                raise httpx2.StreamError(TOO_LONG)
            yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()
