"""When the first page is served and when it can be used, beside a bare Gradio page of the same parts, in turn.

Each start is that of a new process, each visit that of a browser that has seen nothing yet. A page can be used when its
composer takes words and it shows its visitor's own conversation: until then ours keeps a press of Send.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.measuring import BESIDE_BARE, command, compared, table
from tests.page import clean_environment, free_port
from tests.page.chromium import chromium

PATIENCE_MS = 60_000
_PATIENCE_S = 120
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_BARE = "tests.bench.bare_page"
_OURS = ("webui", "--port")


@contextlib.contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run a Chromium for as long as the block lasts."""
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS) as browser,
    ):
        yield browser


@contextlib.contextmanager
def watched_tab(browser: Browser) -> Iterator[Page]:
    """Open a page of a browser that has seen nothing yet, with `watching.js` in it."""
    with browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US") as context:
        page = context.new_page()
        page.add_init_script(Path(__file__).with_name("watching.js").read_text(encoding="utf-8"))
        yield page


@contextlib.contextmanager
def served(*program: str, parts: str = "") -> Iterator[tuple[str, float]]:
    """Run a page, which takes its port as the next argument; yield its address and the seconds until it was served."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    with tempfile.TemporaryDirectory() as home:
        quiet = clean_environment(AIVISTA_HOME=home, GRADIO_ANALYTICS_ENABLED="False", HF_HUB_OFFLINE="1")
        started = [sys.executable, "-m", *program, str(port), *filter(None, [parts])]
        started_s = time.perf_counter()
        process = subprocess.Popen(started, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not _answers(url):
                if process.poll() is not None or time.perf_counter() > started_s + _PATIENCE_S:
                    raise RuntimeError(f"no page at {url}")
                time.sleep(0.02)
            yield url, time.perf_counter() - started_s
        finally:
            process.terminate()
            process.wait(10)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as page:
            return bool(page.read())
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _start(parts: str) -> tuple[float, float]:
    with served(_BARE, parts=parts) as (_, bare_s):
        pass
    with served(*_OURS) as (_, our_s):
        return bare_s, our_s


def _visit(browser: Browser, url: str) -> float:
    """Return the milliseconds from the click to a page that can be used."""
    with watched_tab(browser) as page:
        page.goto(url, wait_until="commit")
        return float(page.wait_for_function("watch.usableMs", timeout=PATIENCE_MS).json_value())


def _report(runs: int) -> str:
    told = subprocess.run([sys.executable, "-m", _BARE], capture_output=True, text=True, check=True)
    parts = told.stdout.splitlines()[-1]
    starts = [_start(parts) for _ in range(runs + 1)][1:]
    with served(_BARE, parts=parts) as (bare, _), served(*_OURS) as (ours, _), running_chromium() as browser:
        visits = [(_visit(browser, bare), _visit(browser, ours)) for _ in range(runs + 1)][1:]
    started = compared("start to the first page served", starts, "≤ 1.2x", 1, " s")
    opened = compared("click to a first page that can be used", visits, "≤ 1.1x", 0.001, " s")
    return table(BESIDE_BARE, [started, opened])


if __name__ == "__main__":
    command("A first page", _report, runs=10)
