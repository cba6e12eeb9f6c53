"""What every test stands on: its layer, its end, and no network but this machine."""

from __future__ import annotations

import faulthandler
import gc
import ipaddress
import os
import signal
import socket
import ssl
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import settings

from tests.support.forks import import_gradio

# How long an example takes says more of the machine than of the code.
settings.register_profile("aivista", deadline=None)
settings.load_profile("aivista")

# The machine's certificates, which a client takes longest to read, are the same for every client.
ssl.create_default_context = cache(ssl.create_default_context)

_TESTS = Path(__file__).parent
# The test functions that take long, made anew by `pytest --update-slow` over the whole suite.
_SLOW = _TESTS / "slow.txt"
_SLOW_S = 0.2
# Whoever imports one of these starts programs.
_PROGRAMS = frozenset(
    "PageProcess StudioChild GeminiProcess run_command commands run_child on_pipes meeting desk rogue".split()  # noqa: SIM905
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-slow", action="store_true", help="write the functions that took long to tests/slow.txt")
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden anew")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        # Whoever ends the run is shown where each worker was.
        faulthandler.register(signal.SIGTERM, file=os.dup(2), all_threads=True, chain=True)
        # A worker imports all tests.
        import_gradio()
    else:
        config.pluginmanager.register(Run(config.getoption("--update-slow")))


class Run:
    """The run as a whole, in the process that hands the tests out: what runs now, and how long each function took."""

    def __init__(self, updates_slow: bool) -> None:
        self._running: set[str] = set()
        self._took_s: defaultdict[str, float] = defaultdict(float)
        self._updates_slow = updates_slow
        # Of this process itself: what tests write is caught.
        self._stderr = os.dup(2)
        signal.signal(signal.SIGTERM, self._end)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.discard(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not {"browser", "process"} & report.keywords.keys():
            self._took_s[report.nodeid.split("[")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        if self._updates_slow:
            _SLOW.write_text("".join(f"{name}\n" for name, took_s in sorted(self._took_s.items()) if took_s > _SLOW_S))

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Say what was running, and end at once: whoever hangs would not let the run end by itself."""
        os.write(
            2, "\n".join(("", "The tests were ended from outside. These were running:", *self._running, "")).encode()
        )
        os._exit(128 + number)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its layer: browser, process, slow, or none; files that start programs, which take longest, come
    first, so that no worker is left alone with one in the end."""
    slow = frozenset(_SLOW.read_text(encoding="utf-8").split())
    for item in items:
        assert isinstance(item, pytest.Function)
        imported = vars(item.module)
        if item.path.is_relative_to(_TESTS / "browser"):
            item.add_marker("browser")
        elif not _PROGRAMS.isdisjoint(imported):
            item.add_marker("process")
        elif item.nodeid.split("[")[0] in slow:
            item.add_marker("slow")
    starting = {item.path for item in items if item.get_closest_marker("process")}
    items.sort(key=lambda item: item.path not in starting)


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


@pytest.fixture(autouse=True, scope="module")
def _looks_for_garbage_are_short() -> Iterator[None]:
    """Look at what a file's tests leave behind once: what lasts (libraries that they loaded, above all) would be looked
    at again each time, which takes a second by the end."""
    yield
    gc.collect()
    gc.freeze()


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

    def guarded(connect: Callable[[socket.socket, object], object]) -> Callable[[socket.socket, object], object]:
        def checked(self: socket.socket, address: object) -> object:
            if not _is_this_machine(address):
                raise ConnectionRefusedError(f"tests may not reach {address!r}")
            return connect(self, address)

        return checked

    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        patch.setattr(socket.socket, name, guarded(getattr(socket.socket, name)))
    yield
    patch.undo()
