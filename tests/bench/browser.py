"""The Chromium that measures, and what it is asked to note about a page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests.page.chromium import chromium

_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_WATCH = Path(__file__).with_name("watching.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Spent:
    """What the page's main thread did meanwhile: milliseconds of tasks, of scripts, of styles and layout."""

    busy_ms: float
    scripts_ms: float
    drawing_ms: float


@dataclass(frozen=True)
class Tab:
    """A page that is watched."""

    page: Page
    wire: CDPSession

    @contextlib.contextmanager
    def spending(self, into: list[Spent]) -> Iterator[None]:
        """Note what the main thread did while the block ran."""
        before = self._metrics()
        yield
        after = self._metrics()
        spent = {name: (after[name] - before[name]) * 1000 for name in after}
        drawing_ms = spent["RecalcStyleDuration"] + spent["LayoutDuration"]
        into.append(Spent(spent["TaskDuration"], spent["ScriptDuration"], drawing_ms))

    def _metrics(self) -> dict[str, float]:
        wanted = ("TaskDuration", "ScriptDuration", "RecalcStyleDuration", "LayoutDuration")
        told: list[dict[str, Any]] = self.wire.send("Performance.getMetrics")["metrics"]
        return {one["name"]: one["value"] for one in told if one["name"] in wanted}


@contextlib.contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run a Chromium for as long as the block lasts."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(_ARGUMENTS))
        yield browser
        browser.close()


@contextlib.contextmanager
def watched_tab(browser: Browser) -> Iterator[Tab]:
    """Open a tab of a browser that has seen nothing yet, with `watching.js` in every page of it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
    page = context.new_page()
    page.add_init_script(_WATCH)
    wire = context.new_cdp_session(page)
    wire.send("Performance.enable")
    yield Tab(page, wire)
    context.close()
