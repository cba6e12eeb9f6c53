"""Typing, scrolling and answers in a long conversation beside a short one, each opened by a fresh browser.

The long one has 200 messages and 100 pictures, made by real turns on the sketch model. Keys and wheel are input events
of Chromium's own.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page

from agent import Settings, Studio, TurnRequest, TurnSettings
from tests.bench.first_page import PATIENCE_MS, running_chromium, watched_tab
from tests.bench.measuring import command, table, with_p95
from tests.page import PageProcess
from tests.support.turns import send
from tests.wire_server import GeminiProcess

SHORT, LONG = 2, 100
_LINE = "the quick brown fox jumps over the lazy dog "
_KEY_MS, _WHEEL_MS = 40, 16
_WISHES = ("a red fox in the snow", "a lighthouse at dusk", "a teapot on a table", "a sailing boat", "a mountain lake")
# A conversation comes with so many turns.
_NEWEST = 12
_BOX = "#box textarea"
_ANSWERING = "an answer streams, and one types on"
_TARGETS = {
    "typing: from key to frame": "median ≤ 50 ms",
    "scrolling: between two frames": "p95 ≤ 50 ms",
    f"{_ANSWERING}: from key to frame": "median ≤ 50 ms",
}
# Rows of the table: every value of every round, by the row's name.
Seen = defaultdict[str, list[float]]


def measured(runs: int) -> tuple[Seen, Seen]:
    """Return what was seen of the short and of the long conversation, in turn."""
    brains = ("--text-brain", "tests.bench.brains:slow_text")
    seen: tuple[Seen, Seen] = defaultdict(list), defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, GeminiProcess(*brains) as server:
        home = Path(folder)
        # Before the browser: Playwright keeps an event loop running in this thread.
        ids = asyncio.run(_seeded(home))
        environment = {"GEMINI_API_KEY": "AIza-bench-0001", "GOOGLE_GEMINI_BASE_URL": server.url}
        with PageProcess(home=home, environment=environment) as studio, running_chromium() as browser:
            for _ in range(runs):
                for into, conversation, count in zip(seen, ids, (SHORT, LONG), strict=True):
                    _look(browser, f"{studio.url}/?c={conversation}", count, into)
    return seen


async def _seeded(home: Path) -> list[str]:
    """Return a short and a long conversation of pictures on the sketch model."""
    async with Studio(Settings(home=home, provider="sketch")) as studio:
        ids = [(await studio.conversations.create()).id for _ in (SHORT, LONG)]
        for conversation, count in zip(ids, (SHORT, LONG), strict=True):
            for number in range(count):
                wish = f"draw {_WISHES[number % len(_WISHES)]}, number {number + 1}"
                await send(studio, conversation, TurnRequest(text=wish, settings=TurnSettings(review="off")))
    return ids


def _look(browser: Browser, url: str, count: int, seen: Seen) -> None:
    with watched_tab(browser) as page:
        fetched: list[str] = []
        page.on("response", lambda answer: fetched.append(answer.url) if "/media/" in answer.url else None)
        page.goto(url, wait_until="commit")
        shown = f"document.querySelectorAll('#thread > .turn').length >= {min(count, _NEWEST)} && performance.now()"
        opened_ms = page.wait_for_function(shown, timeout=PATIENCE_MS).json_value()
        page.wait_for_timeout(1500)
        seen["opened: the newest messages are there"].append(opened_ms)
        seen["opened: pictures fetched, the others when they come near"].append(len(fetched))
        wire = page.context.new_cdp_session(page)
        wire.send("Performance.enable")
        for name, doing in {"typing": _typing, "scrolling": _scrolling, _ANSWERING: _answering}.items():
            page.locator(_BOX).click()
            page.evaluate("watch.taken()")
            before_ms = _busy_ms(wire)
            doing(page)
            page.wait_for_timeout(200)
            busy_ms = _busy_ms(wire) - before_ms
            taken = page.evaluate("watch.taken()")
            if taken["keys"]:
                seen[f"{name}: from key to frame"] += taken["keys"]
            seen[f"{name}: between two frames"] += taken["frames"]
            seen[f"{name}: the main thread is at work"].append(busy_ms)
        page.wait_for_function("!document.querySelector('#chat .live')", timeout=PATIENCE_MS)


def _busy_ms(wire: CDPSession) -> float:
    """Return how long the page's main thread was at work so far."""
    metrics = wire.send("Performance.getMetrics")["metrics"]
    return next(1000 * float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def _typing(page: Page, words: str = _LINE) -> None:
    for letter in words:
        page.keyboard.press("Space" if letter == " " else letter)
        page.wait_for_timeout(_KEY_MS)


def _scrolling(page: Page) -> None:
    """Turn the wheel up and down again, as fast as a hand does."""
    page.locator("#chat [role=log]").hover(position={"x": 400, "y": 300})
    for step in (-160, 160):
        for _ in range(90):
            page.mouse.wheel(0, step)
            page.wait_for_timeout(_WHEEL_MS)


def _answering(page: Page) -> None:
    """Type on while an answer of about four seconds streams in."""
    page.locator(_BOX).fill("tell me more")
    page.keyboard.press("Enter")
    _typing(page, _LINE * 2)


def _told(name: str, values: list[float]) -> str:
    if "fetched" in name:
        return f"{max(values):.0f}"
    if "opened" in name or "at work" in name:
        return f"{statistics.median(values):,.0f} ms"
    return with_p95(values, 1.0, " ms", digits=0)


def _report(runs: int) -> str:
    short, long = measured(runs)
    rows = [(name, _told(name, short[name]), _told(name, long[name]), _TARGETS.get(name, "")) for name in short]
    return table(f"what | {2 * SHORT} messages, {SHORT} pictures | {2 * LONG} messages, {LONG} pictures | target", rows)


if __name__ == "__main__":
    command("A long conversation", _report, runs=3)
