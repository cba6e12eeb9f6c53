from __future__ import annotations

import httpcore2
import pytest

from agent.errors import ToolArgumentError
from tests.adapters.fetcher import Endpoint, Guard, GuardedBackend, SystemResolver
from tests.support.web import Names


async def test_the_system_says_where_this_machine_is() -> None:
    found = await SystemResolver().resolve("localhost", 81)
    assert {Endpoint("127.0.0.1", 81), Endpoint("::1", 81)} & set(found)
    assert len(set(found)) == len(found)


async def test_a_guard_of_its_own_takes_the_system_and_the_policy_as_they_are() -> None:
    with pytest.raises(ToolArgumentError, match="not public"):
        await Guard().endpoints("localhost", 80)


async def test_an_address_is_not_looked_up() -> None:
    names = Names()
    assert await Guard(names).endpoints("8.8.8.8", 80) == (Endpoint("8.8.8.8", 80),)
    assert names.asked == []


async def test_a_name_without_any_address_is_not_known() -> None:
    names = Names()
    names.lead("empty.test")
    with pytest.raises(httpcore2.ConnectError, match="not known"):
        await GuardedBackend(Guard(names)).connect_tcp("empty.test", 80)


async def test_a_socket_of_this_machine_is_not_dialled() -> None:
    with pytest.raises(httpcore2.ConnectError):
        await GuardedBackend(Guard()).connect_unix_socket("/var/run/docker.sock")
