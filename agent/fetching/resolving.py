"""Where a host name leads: the system's resolver, in threads of its own so that a dead name holds up nobody else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

_THREADS = 4


class Endpoint(NamedTuple):
    """An IP address in text, and the port to dial there."""

    address: str
    port: int


class Resolver(Protocol):
    """Says where a host leads. Raises OSError when it does not know."""

    async def resolve(self, host: str, port: int) -> Sequence[Endpoint]:
        """Return every endpoint of the host, best first."""


class SystemResolver:
    """The resolver of the operating system."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolver")

    async def resolve(self, host: str, port: int) -> Sequence[Endpoint]:
        """Return every endpoint of the host, in the system's order. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _looked_up, host, port)
        return tuple(dict.fromkeys(found))


def _looked_up(host: str, port: int) -> list[Endpoint]:
    # As bytes: a name in text is put through Python's old IDNA codec once more.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [Endpoint(str(place[0]), int(place[1])) for *_, place in found]
