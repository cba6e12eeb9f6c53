"""What every test stands on: the network is refused but for this machine."""

from __future__ import annotations

import gc
import ipaddress
import socket
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("aivista", deadline=None)
settings.load_profile("aivista")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected: hardly anything is, and each look is at all there is. Afterwards
    look again, but not among what lasts until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _is_this_machine(address: object) -> bool:
    if isinstance(address, str | bytes):
        return True  # a Unix socket
    if not isinstance(address, tuple) or not address:
        return False
    host = str(address[0])
    if host in {"localhost", ""}:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """Refuse every connection that leaves this machine, so that no test can lean on one."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded_connect(self: socket.socket, address: object) -> None:
        if not _is_this_machine(address):
            raise ConnectionRefusedError(f"tests may not reach {address!r}")
        connect(self, address)  # type: ignore[arg-type]

    def guarded_connect_ex(self: socket.socket, address: object) -> int:
        if not _is_this_machine(address):
            raise ConnectionRefusedError(f"tests may not reach {address!r}")
        return connect_ex(self, address)  # type: ignore[arg-type]

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded_connect)
    patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    yield
    patch.undo()
