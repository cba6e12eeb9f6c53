"""How long until the page is served, beside a bare Gradio page of the same parts: fresh processes, in turn."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from tests.bench.measuring import Figure, compared
from tests.page import free_port

_PATIENCE_S = 120
_BARE = (sys.executable, "-m", "tests.bench.bare_page")
_OURS = (sys.executable, "-m", "webui", "--port")


def start_figure(runs: int) -> Figure:
    """Return the seconds from the start of the process to the first answer of the page."""
    bare, ours = [], []
    parts = parts_of_our_page()
    for number in range(runs + 1):
        with bare_page(parts) as (_, one):
            pass
        with our_page() as (_, other):
            pass
        if number:
            bare.append(one)
            ours.append(other)
    return compared("start to the first page served", bare, ours, "≤ 1.2x", 1, " s")


def parts_of_our_page() -> str:
    """Return what the bare page is made of, as `bare_page` takes it."""
    return subprocess.run(_BARE, capture_output=True, text=True, check=True).stdout.splitlines()[-1]


@contextlib.contextmanager
def bare_page(parts: str) -> Iterator[tuple[str, float]]:
    """Run the bare page; yield its address and the seconds until it was served."""
    port = free_port()
    with _served([*_BARE, str(port), parts], port) as seconds:
        yield f"http://127.0.0.1:{port}", seconds


@contextlib.contextmanager
def our_page() -> Iterator[tuple[str, float]]:
    """Run our page; yield its address and the seconds until it was served."""
    port = free_port()
    with _served([*_OURS, str(port)], port) as seconds:
        yield f"http://127.0.0.1:{port}", seconds


@contextlib.contextmanager
def _served(command: list[str], port: int) -> Iterator[float]:
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            "AIVISTA_HOME": home,
            "GRADIO_ANALYTICS_ENABLED": "False",
            "HF_HUB_OFFLINE": "1",
        }
        started_s = time.perf_counter()
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
        try:
            _wait_for(f"http://127.0.0.1:{port}/", process)
            yield time.perf_counter() - started_s
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as page:
                page.read()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.02)
    raise RuntimeError(f"no page at {url}")
