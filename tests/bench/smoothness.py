"""Typing, scrolling and answers in a long conversation beside a short one: `python -m tests.bench.smoothness`.

The long one has 200 messages and 100 pictures, made by real turns on the sketch model. Both are opened by a browser
that has seen nothing yet; keys and wheel are Chromium's own input events. `--trace FOLDER` keeps what Chromium recorded
of each, for the Performance panel of its developer tools or <https://ui.perfetto.dev>.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from agent import Settings, Studio, TurnRequest, TurnSettings
from tests.bench.browser import Spent, Tab, running_chromium, watched_tab
from tests.bench.measuring import machine
from tests.page import PageProcess
from tests.wire_server import GeminiProcess

LONG, SHORT = 100, 2
_TARGET_MS = 50
_LINE = "the quick brown fox jumps over the lazy dog "
_KEY_MS, _WHEEL_MS = 40, 16
_ROUNDS = 3
_WISHES = ("a red fox in the snow", "a lighthouse at dusk", "a teapot on a table", "a sailing boat", "a mountain lake")
_PATIENCE_MS = 60_000
# A conversation comes with so many turns.
_NEWEST = 12
_LOG = "#chat [role=log]"


@dataclass(frozen=True)
class Doing:
    """What the page showed while one thing was done: milliseconds from key to frame, between frames, of long tasks."""

    keys_ms: tuple[float, ...]
    frames_ms: tuple[float, ...]
    long_ms: tuple[float, ...]
    spent: Spent


@dataclass(frozen=True)
class Seen:
    """All that was seen of one conversation."""

    opened_ms: float
    fetched: int
    typing: Doing
    scrolling: Doing
    answering: Doing


def section(folder: Path | None = None) -> str:
    """Return the page's section, measured now; Chromium's recordings go to `folder`."""
    short, long = measured(folder)
    return report(short, long)


def measured(folder: Path | None) -> tuple[Sequence[Seen], Sequence[Seen]]:
    """Return what was seen of the short and of the long conversation, in turn."""
    brains = ("--text-brain", "tests.bench.brains:slow_text")
    with tempfile.TemporaryDirectory() as home, GeminiProcess(*brains) as server:
        # Before the browser: Playwright keeps an event loop running in this thread.
        ids = asyncio.run(_seeded(Path(home)))
        environment = {"GEMINI_API_KEY": "AIza-bench-0001", "GOOGLE_GEMINI_BASE_URL": server.url}
        with PageProcess(home=Path(home), environment=environment) as studio, running_chromium() as browser:
            seen: tuple[list[Seen], list[Seen]] = ([], [])
            for number in range(_ROUNDS):
                for into, conversation, count in zip(seen, ids, (SHORT, LONG), strict=True):
                    trace = folder / f"{count}-pictures.json" if folder and number == 0 else None
                    into.append(_seen(browser, f"{studio.url}/?c={conversation}", count, trace))
    return seen


async def _seeded(home: Path) -> tuple[str, str]:
    """Return a short and a long conversation of pictures on the sketch model."""
    ids = []
    async with Studio(Settings(home=home, provider="sketch")) as studio:
        for count in (SHORT, LONG):
            conversation = await studio.conversations.create()
            ids.append(conversation.id)
            for number in range(count):
                wish = f"draw {_WISHES[number % len(_WISHES)]}, number {number + 1}"
                request = TurnRequest(text=wish, settings=TurnSettings(review="off"))
                async for _ in studio.run_turn(conversation.id, request):
                    pass
    first, second = ids
    return first, second


def _seen(browser: Browser, url: str, count: int, trace: Path | None) -> Seen:
    with watched_tab(browser) as tab:
        page, fetched = tab.page, []
        page.on("response", lambda answer: fetched.append(answer.url) if "/media/" in answer.url else None)
        if trace:
            browser.start_tracing(
                page=page, path=trace, categories=["devtools.timeline", "blink.user_timing", "loading"]
            )
        page.goto(url, wait_until="commit")
        shown = f"document.querySelectorAll('#thread > .turn').length >= {min(count, _NEWEST)} && performance.now()"
        opened_ms = float(page.wait_for_function(shown, timeout=_PATIENCE_MS).json_value())
        page.wait_for_timeout(1500)
        first_fetched = len(fetched)
        found = Seen(opened_ms, first_fetched, _typing(tab), _scrolling(tab), _answering(tab))
        if trace:
            browser.stop_tracing()
    return found


def _typing(tab: Tab) -> Doing:
    tab.page.locator("#box textarea").click()
    with _Watched(tab) as watched:
        _type(tab, _LINE)
    return watched.doing


def _scrolling(tab: Tab) -> Doing:
    """Turn the wheel up and down again, as fast as a hand does."""
    tab.page.locator(_LOG).hover(position={"x": 400, "y": 300})
    with _Watched(tab) as watched:
        for step in (-160, 160):
            for _ in range(90):
                tab.page.mouse.wheel(0, step)
                tab.page.wait_for_timeout(_WHEEL_MS)
    return watched.doing


def _answering(tab: Tab) -> Doing:
    """Type on while an answer of about four seconds streams in."""
    box = tab.page.locator("#box textarea")
    box.fill("tell me more")
    with _Watched(tab) as watched:
        box.press("Enter")
        _type(tab, _LINE * 2)
    tab.page.wait_for_function("!document.querySelector('#chat .live')", timeout=_PATIENCE_MS)
    return watched.doing


def _type(tab: Tab, words: str) -> None:
    for letter in words:
        tab.page.keyboard.press("Space" if letter == " " else letter)
        tab.page.wait_for_timeout(_KEY_MS)


class _Watched:
    """Notes what happens in a tab for as long as the block lasts."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._spent: list[Spent] = []
        self._spending = tab.spending(self._spent)

    def __enter__(self) -> _Watched:
        self._tab.page.evaluate("watch.taken()")
        self._spending.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tab.page.wait_for_timeout(200)
        self._spending.__exit__(*error)
        taken: dict[str, list[float]] = self._tab.page.evaluate("watch.taken()")
        keys, frames, long = (tuple(taken[name]) for name in ("keys", "frames", "longTasks"))
        self.doing = Doing(keys, frames, long, self._spent[0])


def report(short: Sequence[Seen], long: Sequence[Seen]) -> str:
    """Return what was seen as Markdown."""
    rows = [
        _row(
            "opened: the newest messages are there",
            [[one.opened_ms] for one in short],
            [[one.opened_ms] for one in long],
        ),
        *_doing_rows("typing", [one.typing for one in short], [one.typing for one in long]),
        *_doing_rows("scrolling", [one.scrolling for one in short], [one.scrolling for one in long], has_keys=False),
        *_doing_rows(
            "an answer streams, and one types on", *([one.answering for one in all_] for all_ in (short, long))
        ),
    ]
    head = f"| what | {2 * SHORT} messages, {SHORT} pictures | {2 * LONG} messages, {LONG} pictures | target |"
    fetched = max(one.fetched for one in long)
    return (
        "## A long conversation\n\nThe page with a long conversation beside a short one, in Chromium, "
        f"{_ROUNDS} times each in turn (`python -m tests.bench.smoothness`; {machine()}): median and ninety-fifth "
        "percentile. A key is measured from its press to the end of the frame that shows it. When the long one is "
        f"opened, {fetched} of its {LONG} pictures are fetched, the others when they come near.\n\n"
        + "\n".join([head, "| --- | --- | --- | --- |", *rows])
        + "\n"
    )


def _doing_rows(name: str, short: Sequence[Doing], long: Sequence[Doing], *, has_keys: bool = True) -> Iterator[str]:
    def both(of: Callable[[Doing], Sequence[float]]) -> tuple[list[Sequence[float]], list[Sequence[float]]]:
        return [of(one) for one in short], [of(one) for one in long]

    frames, keys = both(lambda one: one.frames_ms), both(lambda one: one.keys_ms)
    busy = both(lambda one: (one.spent.busy_ms,))
    if has_keys:
        yield _row(f"{name}: from key to frame", *keys, target=f"median ≤ {_TARGET_MS} ms")
    yield _row(f"{name}: between two frames", *frames, target="" if has_keys else f"p95 ≤ {_TARGET_MS} ms")
    yield _row(f"{name}: the main thread is at work", *busy)


def _row(name: str, short: Sequence[Sequence[float]], long: Sequence[Sequence[float]], target: str = "") -> str:
    return f"| {name} | {_told(short)} | {_told(long)} | {target} |"


def _told(runs: Sequence[Sequence[float]]) -> str:
    values = sorted(value for run in runs for value in run)
    if len(values) <= _ROUNDS:
        return f"{statistics.median(values):,.0f} ms"
    return f"{statistics.median(values):.0f} ms (p95 {values[int(0.95 * (len(values) - 1))]:.0f} ms)"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.smoothness")
    parser.add_argument("--trace", type=Path, help="the folder for Chromium's recordings")
    given = parser.parse_args()
    if given.trace:
        given.trace.mkdir(parents=True, exist_ok=True)
    print(section(given.trace))


if __name__ == "__main__":
    main()
