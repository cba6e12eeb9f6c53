from __future__ import annotations

import httpcore2
import httpx2
import pytest

from agent import ErrorCode, ToolArgumentError
from tests.adapters.fetcher import Endpoint, Guard, GuardedBackend, GuardedTransport, SystemResolver
from tests.support.cases import each_case
from tests.support.web import Handler, Names, drop_by_drop, web


@each_case("url", ["http://127.0.0.1/mcp", "http://localhost:8000/mcp", "http://metadata.test/", "http://2130706433/"])
@each_case("ports", [frozenset({80, 443}), None])
async def test_a_private_address_is_not_dialled(url: str, ports: frozenset[int] | None) -> None:
    names = Names()
    names.lead("metadata.test", "169.254.169.254")
    async with httpx2.AsyncClient(transport=GuardedTransport(Guard(names), ports)) as client:
        with pytest.raises(ToolArgumentError) as caught:
            await client.get(url)
    assert caught.value.code is ErrorCode.ADDRESS_REFUSED


async def test_a_redirect_that_the_client_follows_is_checked_and_a_port_only_asked_where_it_is_allowed() -> None:
    async with web() as served:
        served.redirect("/from", "http://169.254.169.254:8443/latest")
        served.page("/", b"x", "text/plain")
        transport = GuardedTransport(served.guard, frozenset({8443}))
        async with httpx2.AsyncClient(transport=transport, follow_redirects=True) as client:
            assert (await client.get("http://site.test:8443/")).text == "x"
            with pytest.raises(ToolArgumentError, match="not public"):
                await client.get("http://site.test:8443/from")
            with pytest.raises(ToolArgumentError, match="port 80"):
                await client.get("http://site.test/")


@each_case(
    ("raw", "kind"),
    [
        (b"SSH-2.0-OpenSSH_9.9\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 5_000_000, httpx2.TransportError),
        (drop_by_drop(b"", pause_s=60), httpx2.ReadTimeout),
    ],
)
async def test_a_failure_is_the_clients_own_kind_and_its_timeouts_hold(
    raw: bytes | Handler, kind: type[Exception]
) -> None:
    patience = httpx2.Timeout(60, read=0.2 if kind is httpx2.ReadTimeout else 60)
    async with web() as served:
        served.pages["/"] = raw
        async with httpx2.AsyncClient(transport=GuardedTransport(served.guard), timeout=patience) as client:
            with pytest.raises(kind):
                await client.get("http://site.test/")
            with pytest.raises(httpx2.ConnectError):
                await client.get("http://nowhere.test/")


async def test_names_are_looked_up_and_no_others_and_no_socket_of_this_machine_is_dialled() -> None:
    found = await SystemResolver().resolve("localhost", 81)
    assert {Endpoint("127.0.0.1", 81), Endpoint("::1", 81)} & set(found)
    assert len(set(found)) == len(found)
    with pytest.raises(ToolArgumentError, match="not public"):
        await Guard().endpoints("localhost", 80)
    names = Names()
    assert await Guard(names).endpoints("8.8.8.8", 80) == (Endpoint("8.8.8.8", 80),)
    assert names.asked == []
    names.lead("empty.test")
    with pytest.raises(httpcore2.ConnectError, match="not known"):
        await GuardedBackend(Guard(names)).connect_tcp("empty.test", 80)
    with pytest.raises(httpcore2.ConnectError):
        await GuardedBackend(Guard()).connect_unix_socket("/var/run/docker.sock")
