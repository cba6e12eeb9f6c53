"""When the first page can be used, beside a bare Gradio page of the same parts: `python -m tests.bench.first_page`.

Both servers run; each visit is that of a browser that has seen nothing yet, in turn. A page can be used when its
composer takes words, and is filled once it shows its visitor's own conversation, which the second row tells: until then
ours keeps a press of Send.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Browser

from tests.bench.browser import running_chromium, watched_tab
from tests.bench.measuring import Figure, as_markdown, compared
from tests.bench.start import bare_page, our_page, parts_of_our_page

_PATIENCE_MS = 60_000


@dataclass(frozen=True)
class Visit:
    """One visit: milliseconds from the click to a usable page and to a filled one, and how many spinners were in sight
    at once."""

    usable_ms: float
    filled_ms: float
    spinners: int


def first_page_figures(runs: int) -> list[Figure]:
    """Return the rows of so many visits to each page."""
    bare, ours = [], []
    with bare_page(parts_of_our_page()) as (plain, _), our_page() as (studio, _), running_chromium() as browser:
        for number in range(runs + 1):
            one, other = _visit(browser, plain), _visit(browser, studio)
            if number:
                bare.append(one)
                ours.append(other)

    def both(of: Callable[[Visit], float]) -> tuple[list[float], list[float]]:
        return [of(one) for one in bare], [of(one) for one in ours]

    return [
        compared("click to a first page that can be used", *both(lambda one: one.usable_ms), "≤ 1.1x", 0.001, " s"),
        compared("the same, filled for its visitor", *both(lambda one: one.filled_ms), "≤ 1.1x", 0.001, " s"),
        Figure("the same: spinners in sight at once, at most", _most_spinners(bare), _most_spinners(ours), "", "≤ 1"),
    ]


def _most_spinners(visits: list[Visit]) -> str:
    return str(max(one.spinners for one in visits))


def _visit(browser: Browser, url: str) -> Visit:
    with watched_tab(browser) as tab:
        tab.page.goto(url, wait_until="commit")
        tab.page.wait_for_function("window.watch.filledMs !== null", timeout=_PATIENCE_MS)
        return Visit(*tab.page.evaluate("[watch.usableMs, watch.filledMs, watch.spinners]"))


if __name__ == "__main__":
    print(as_markdown(first_page_figures(10)))
