"""Who asks, as far as limits go, and how much they may: how often, what takes long, and files."""

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
# Behind one address may be an office; where addresses are not known, everybody is in one group.
_TIMES_OF_AN_ADDRESS, _TIMES_OF_UNKNOWN = 5, 20
_WAIT_S = 5
_MOST_BYTES = 4 << 30
_MOST_BYTES_OF_ONE = 400 << 20
# Less than all even for a group whose addresses are not known: something is left for the operator.
_BYTES_TIMES_OF_AN_ADDRESS, _BYTES_TIMES_OF_UNKNOWN = 4, 8


class RejectedRequest(Exception):
    """A request that is turned away: `status`, and the key of the sentence that says why, with what fills it."""

    def __init__(self, status: int, key: str, **parameters: str | int) -> None:
        self.status = status
        self.key = key
        self.parameters = parameters
        super().__init__(key)


@dataclass(frozen=True)
class Client:
    """One who asks. `name` tells them from others, by cookie or else by address; `address` is None where several may
    stand behind it, or anybody could have made it up. `is_operator` says that no limit is meant for them."""

    name: str
    address: str | None
    words: Words
    is_operator: bool = False

    @property
    def group(self) -> str:
        """With whom they are counted: a cookie is dropped easily, where one comes from is not."""
        return f"from {self.address or 'anywhere'}"


def client_of(scope: Scope, sessions: Sessions, *, is_behind_proxy: bool) -> Client:
    """Return who sent a request. Where nobody but the operator comes, everybody is the same."""
    request = Request(scope)
    words, address = sessions.words(request), address_of(scope, is_behind_proxy=is_behind_proxy)
    if not sessions.is_shared:
        return Client(OPERATOR, address, words, is_operator=True)
    found = sessions.read(request.cookies.get(COOKIE))
    if found is None:
        return Client(f"@{address or ''}", address, words)
    return Client(found.token, address, words, is_operator=found.owner == OPERATOR)


def address_of(scope: Scope, *, is_behind_proxy: bool) -> str | None:
    """Return the public address that a request comes from, None where that cannot be known. Of IPv6 it is the first of
    its network: whoever has one address there has all the 2**64 beside it.

    Whoever asks can write any `X-Forwarded-For`, and each proxy adds whom it heard at its end: of a proxy that is
    trusted, the last public address counts.
    """
    if is_behind_proxy:
        told = reversed(Headers(scope=scope).get("x-forwarded-for", "").split(","))
        return next(filter(None, map(_public, told)), None)
    host, port = scope.get("client") or ("", 0)
    # Without a port uvicorn has it from the header, which it believes whoever comes by the loopback.
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
    """How often one client may ask something, all behind one address together, and all whose address is not known. The
    operator may as often as they like."""

    def __init__(self, per_minute: float) -> None:
        self._own = Buckets(per_minute)
        self._of_address = Buckets(per_minute * _TIMES_OF_AN_ADDRESS)
        self._of_unknown = Buckets(per_minute * _TIMES_OF_UNKNOWN)

    def count(self, client: Client) -> None:
        """Count what they ask. Raises RejectedRequest when it is too much."""
        if client.is_operator:
            return
        group = self._of_unknown if client.address is None else self._of_address
        wait_s = self._own.take(client.name) or group.take(client.group)
        if wait_s > 0:
            raise _too_often(wait_s)


class ActiveJobs:
    """What takes long and is under way: one for a client, a few for all of their group, any for the operator."""

    def __init__(self) -> None:
        self._under_way: list[Client] = []

    @contextmanager
    def one(self, client: Client) -> Iterator[None]:
        """Count one more for as long as this is open. Raises RejectedRequest when it is one too many."""
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
    """What somebody sends: how large it is; while it is under way, how large it may become."""

    client: Client
    size_bytes: int
    at_s: float
    is_under_way: bool = True


@dataclass
class Uploads:
    """The folder that files pass through on their way from a browser: whose they are, and how much of it each may fill.
    After `UPLOADS_KEPT_S` they are gone; `clock` tells Unix seconds.

    A file belongs to whoever has sent it: its path can be told from its content, so that knowing it proves nothing.
    All but the scan of the folder is for the event loop alone.
    """

    folder: Path
    most_bytes: int = _MOST_BYTES
    most_bytes_of_one: int = _MOST_BYTES_OF_ONE
    clock: Callable[[], float] = time.time
    _sent: list[Upload] = field(default_factory=list)
    # By path and client, when it was sent last.
    _owners: dict[tuple[str, str], float] = field(default_factory=dict)

    async def begin(self, client: Client, announced_bytes: int) -> Upload:
        """Count what somebody begins to send. What is too old is removed first, whoever left it. Of how much nothing is
        announced, all that there is room for is thought to come. Raises RejectedRequest when there is no room."""
        taken = await anyio.to_thread.run_sync(_cleared, self.folder, self.clock() - UPLOADS_KEPT_S)
        since = self.clock() - UPLOADS_KEPT_S
        self._sent = [one for one in self._sent if one.is_under_way or one.at_s > since]
        # A file that was sent again meanwhile is young again, however old the scan found it.
        self._owners = {one: at_s for one, at_s in self._owners.items() if at_s > since}
        # Others send at the same time: what is under way counts as though all of it were there.
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
        """Count what has come of it, whether it came to its end or not."""
        upload.size_bytes, upload.at_s, upload.is_under_way = size_bytes, self.clock(), False

    def keep(self, path: str, client: Client) -> None:
        """Remember whose a file is; several may have sent the same."""
        self._owners[path, client.name] = self.clock()

    def is_of(self, path: str, client: Client) -> bool:
        """Whether a file is theirs: they sent it, and it is asked for by the very path that they were told."""
        return (path, client.name) in self._owners


def _cleared(folder: Path, before_s: float) -> int:
    """Remove what is older; return the size of the rest."""
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
