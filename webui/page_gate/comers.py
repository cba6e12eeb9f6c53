"""Who comes, as far as limits go: the browser by its cookie, and where it comes from."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from agent import OPERATOR
from webui.sessions import COOKIE, Sessions
from webui.words import Words

_MOST_SESSIONS = 20_000


@dataclass(frozen=True)
class Comer:
    """One who comes. `name` tells them from others, by cookie or else by address; `address` is None where several may
    stand behind it, or anybody could have made it up. `is_operator` says that no limit is meant for them."""

    name: str
    address: str | None
    words: Words
    is_operator: bool = False

    @property
    def crowd(self) -> str:
        """With whom they are counted: a cookie is dropped easily, where one comes from is not."""
        return f"from {self.address or 'anywhere'}"


def comer_of(scope: Scope, sessions: Sessions, *, is_behind_proxy: bool) -> Comer:
    """Return who sent a request. Where nobody but the operator comes, everybody is the same."""
    request = Request(scope)
    words, address = sessions.words(request), address_of(scope, is_behind_proxy=is_behind_proxy)
    if not sessions.is_shared:
        return Comer(OPERATOR, address, words, is_operator=True)
    found = sessions.read(request.cookies.get(COOKIE))
    if found is None:
        return Comer(f"@{address or ''}", address, words)
    return Comer(found.token, address, words, is_operator=found.owner == OPERATOR)


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


@dataclass
class PageSessions:
    """Whose each of Gradio's sessions is: the first who names it. The browser makes the name up, and it opens a queue
    of answers and the state of a tab, so that it must open nothing for anybody else."""

    _names: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def is_of(self, session: str, name: str) -> bool:
        """Whether a session is theirs, or nobody's so far: then it is theirs from now on."""
        owner = self._names.setdefault(session, name)
        self._names.move_to_end(session)
        if len(self._names) > _MOST_SESSIONS:
            self._names.popitem(last=False)
        return owner == name
