"""The way out of the studio: a network backend that dials only addresses it has looked up and checked itself.

Names are resolved once a connection, and the checked address is what is dialled, so that a name which changes between
the check and the call changes nothing. TLS goes on above it with the host's name, for the certificate and for SNI.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import httpcore2

from agent.fetching.addresses import is_public
from agent.fetching.resolving import Endpoint, Resolver, SystemResolver
from agent.fetching.urls import refused

_SOCKET_OPTION = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
_CONNECT_S = 5.0
_MOST_ENDPOINTS = 4


@dataclass(frozen=True)
class Guard:
    """How a host becomes an address, and which addresses may be dialled; the code that makes one decides, no text."""

    resolver: Resolver = field(default_factory=SystemResolver)
    is_allowed: Callable[[str], bool] = is_public

    async def endpoints(self, host: str, port: int) -> Sequence[Endpoint]:
        """Return where to dial.

        Raises OSError when the host is not known, ToolArgumentError when any of its addresses may not be dialled: a
        name that is half public is a name of somebody who tries.
        """
        found = (Endpoint(host, port),) if _is_address(host) else await self.resolver.resolve(host, port)
        if not found:
            raise OSError("the name has no address")
        if not all(self.is_allowed(endpoint.address) for endpoint in found):
            raise refused(host, "it leads to an address that is not public")
        return found


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Dials what the guard lets through, for any client on httpcore2; a refusal passes through it as it is."""

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
        """Return a stream to a checked address. Raises ToolArgumentError for the others, and httpcore2's errors."""
        deadline = time.monotonic() + (_CONNECT_S if timeout is None else timeout)
        endpoints = (await self._looked_up(host, port, deadline))[:_MOST_ENDPOINTS]
        for left, endpoint in zip(range(len(endpoints), 0, -1), endpoints, strict=True):
            # One that does not answer leaves the others their share of the time.
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
        """Refuse: a socket in the file system is this machine."""
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
