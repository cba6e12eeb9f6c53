"""Clients and their limits: request rates, concurrent jobs, and uploads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network, ip_address
from math import ceil
from pathlib import Path

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from agent import OPERATOR
from webui.api.auth import Buckets
from webui.http.sessions import COOKIE, Sessions
from webui.words import Words

UPLOADS_KEPT_S = 2 * 3600.0
# An address may be a whole office. Where addresses are unknown, everybody is in one group.
_TIMES_OF_AN_ADDRESS, _TIMES_OF_UNKNOWN = 5, 20
_WAIT_S = 5
_MOST_BYTES = 4 << 30
_MOST_BYTES_OF_ONE = 400 << 20
# Less than the total even for a group of unknown addresses, so that something is left for the operator.
_BYTES_TIMES_OF_AN_ADDRESS, _BYTES_TIMES_OF_UNKNOWN = 4, 8


class RejectedRequest(Exception):
    """A rejected request: its HTTP `status`, and the key and parameters of the sentence that says why."""

    def __init__(self, status: int, key: str, **parameters: str | int) -> None:
        self.status = status
        self.key = key
        self.parameters = parameters
        super().__init__(key)


@dataclass(frozen=True)
class Client:
    """The sender of a request. `name` identifies them, by cookie or else by address. `address` is None where several
    users may share it, or anybody could have forged it. `is_operator` exempts them from all limits."""

    name: str
    address: str | None
    words: Words
    is_operator: bool = False

    @property
    def group(self) -> str:
        """The name under which the client is counted together with others: cookies are easily dropped, addresses are
        not."""
        return f"from {self.address or 'anywhere'}"


def client_of(scope: Scope, sessions: Sessions, *, is_behind_proxy: bool) -> Client:
    """Return who sent a request. Where only the operator can come, all requests have the same sender."""
    request = Request(scope)
    words, address = sessions.words(request), address_of(scope, is_behind_proxy=is_behind_proxy)
    if not sessions.is_shared:
        return Client(OPERATOR, address, words, is_operator=True)
    found = sessions.read(request.cookies.get(COOKIE))
    if found is None:
        return Client(f"@{address or ''}", address, words)
    return Client(found.token, address, words, is_operator=found.owner == OPERATOR)


def address_of(scope: Scope, *, is_behind_proxy: bool) -> str | None:
    """Return the public address that a request comes from, None where it cannot be known. For IPv6, return the first
    address of its network: a client owns all 2**64 addresses beside its own.

    A client can write any `X-Forwarded-For`, and each proxy appends the address it was called from. Behind a trusted
    proxy, the last public address counts.
    """
    if is_behind_proxy:
        forwarded = reversed(Headers(scope=scope).get("x-forwarded-for", "").split(","))
        return next(filter(None, map(_public, forwarded)), None)
    host, port = scope.get("client") or ("", 0)
    # Without a port, uvicorn took it from the header, which it believes on the loopback interface.
    return _public(host) if port else None


def _public(address: str) -> str | None:
    try:
        found = ip_address(address.strip().strip("[]"))
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or IPv6Network((int(found), 64), strict=False).network_address
    return str(found) if found.is_global else None


class Rate:
    """Limits how often a client may ask for something. All clients behind one address share a limit, and so do all
    whose address is unknown. The operator has none."""

    def __init__(self, per_minute: float) -> None:
        self._own = Buckets(per_minute)
        self._of_address = Buckets(per_minute * _TIMES_OF_AN_ADDRESS)
        self._of_unknown = Buckets(per_minute * _TIMES_OF_UNKNOWN)

    def count(self, client: Client) -> None:
        """Count one request. Raises RejectedRequest when it is too much."""
        if client.is_operator:
            return
        group = self._of_unknown if client.address is None else self._of_address
        wait_s = self._own.take(client.name) or group.take(client.group)
        if wait_s > 0:
            raise _too_often(wait_s)


class ActiveJobs:
    """Limits long jobs: one at a time for a client, a few for its group, any number for the operator."""

    def __init__(self) -> None:
        self._under_way: list[Client] = []

    @contextmanager
    def one(self, client: Client) -> Iterator[None]:
        """Count one job while the context is open. Raises RejectedRequest when it is one too many."""
        if client.is_operator:
            yield
            return
        most = _TIMES_OF_UNKNOWN if client.address is None else _TIMES_OF_AN_ADDRESS
        group = [one.name for one in self._under_way if one.group == client.group]
        if len(group) >= most or any(one.name == client.name for one in self._under_way):
            raise _too_often(_WAIT_S)
        self._under_way.append(client)
        try:
            yield
        finally:
            self._under_way.remove(client)


def _too_often(wait_s: float) -> RejectedRequest:
    return RejectedRequest(429, "api.too_many_requests", seconds=ceil(wait_s))


@dataclass
class Upload:
    """One upload: its size, or the largest size that it may reach while it is under way."""

    client: Client
    size_bytes: int
    at_s: float
    is_under_way: bool = True


@dataclass
class Uploads:
    """The folder that uploads from browsers pass through: who owns each file, and how much each client may store there.
    Files are removed after `UPLOADS_KEPT_S`; `clock` returns Unix seconds.

    A file belongs to the clients that sent it: its path follows from its content, so that knowing a path proves
    nothing. Everything but the scan of the folder runs on the event loop only.
    """

    folder: Path
    most_bytes: int = _MOST_BYTES
    most_bytes_of_one: int = _MOST_BYTES_OF_ONE
    clock: Callable[[], float] = time.time
    _sent: list[Upload] = field(default_factory=list)
    # When each file was last sent, by path and client.
    _owners: dict[tuple[str, str], float] = field(default_factory=dict)

    async def begin(self, client: Client, announced_bytes: int) -> Upload:
        """Count the beginning of an upload. Old files are removed first, whoever sent them. An upload of unannounced
        size is counted as if it filled all the room there is. Raises RejectedRequest when there is no room."""
        taken = await anyio.to_thread.run_sync(_cleared, self.folder, self.clock() - UPLOADS_KEPT_S)
        since = self.clock() - UPLOADS_KEPT_S
        self._sent = [one for one in self._sent if one.is_under_way or one.at_s > since]
        # A file that was sent again meanwhile counts as new, whatever age the scan found.
        self._owners = {one: at_s for one, at_s in self._owners.items() if at_s > since}
        # Uploads run in parallel: those under way count at their full size.
        room = self.most_bytes - taken - sum(one.size_bytes for one in self._sent if one.is_under_way)
        if not client.is_operator:
            own = sum(one.size_bytes for one in self._sent if one.client.name == client.name)
            group = sum(one.size_bytes for one in self._sent if one.client.group == client.group)
            times = _BYTES_TIMES_OF_UNKNOWN if client.address is None else _BYTES_TIMES_OF_AN_ADDRESS
            room = min(room, self.most_bytes_of_one - own, self.most_bytes_of_one * times - group)
        most = announced_bytes or min(room, self.most_bytes_of_one)
        if room <= 0 or most > room:
            raise RejectedRequest(507, "refusal.no_room")
        upload = Upload(client, most, self.clock())
        self._sent.append(upload)
        return upload

    def end(self, upload: Upload, size_bytes: int) -> None:
        """Count what an upload has brought, whether it completed or not."""
        upload.size_bytes, upload.at_s, upload.is_under_way = size_bytes, self.clock(), False

    def keep(self, path: str, client: Client) -> None:
        """Remember who owns a file; several clients may have sent the same one."""
        self._owners[path, client.name] = self.clock()

    def is_of(self, path: str, client: Client) -> bool:
        """Whether a client owns a file: it sent the file, and asks for the very path that it was told."""
        return (path, client.name) in self._owners


def _cleared(folder: Path, before_s: float) -> int:
    """Remove files older than the moment; return the total size of the rest."""
    taken = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                state = os.stat(path := os.path.join(place, name), follow_symlinks=False)
                if state.st_mtime < before_s:
                    os.unlink(path)
                else:
                    taken += state.st_size
    return taken
