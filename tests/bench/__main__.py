"""`python -m tests.bench` measures everything and prints a table; `--write FILE` puts it into a page of the docs."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import gallery, keeping, masking, smoothness
from tests.bench.first_page import first_page_figures
from tests.bench.measuring import Figure, as_markdown, machine
from tests.bench.start import start_figure
from tests.bench.styles import measured, report
from tests.bench.turns import crowd_figure, growth_figure, text_ways, turn_figures, upload_figure
from tests.bench.whole_turn import whole_figures, whole_growth_figures, whole_ways
from tests.wire_server import GeminiProcess

_INTRODUCTION = """# Benchmarks

Measured by `python -m tests.bench` on {machine}, {day}. The server is the project's own strict test server in a process
of its own, on loopback, and answers at once; "bare" is google-genai called directly, or a bare Gradio page of the same
parts. Both ways run in turn in one run: medians, with the tenth and the ninetieth percentile in brackets; a ratio is
that of the pairs. A whole turn is three calls, each streamed: the planner's, which calls for a picture and may name a
style; the picture, of 64 × 36 pixels; and the review, which is given the picture and a JSON schema. Bare makes the
same calls and looks up no style; what is computed is called so. Ours writes its journal, its checkpoints and its
records on the way; what nobody waits for is written a few milliseconds after the turn, and counts as processor time
only.

"""

_STYLES = """
## Finding styles

How often a wish finds the style that it names (`python -m tests.bench.styles`). The wishes were written by those who
wrote the styles' names and descriptions, so every row flatters; the descriptions of the tuning half, which none of the
styles' own texts were written beside, are the nearest to what strangers say. "Traps" say words of styles of things.
Misses were looked at in the tuning half only.

"""


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--runs", type=int, default=200, help="turns of each way")
    parser.add_argument("--starts", type=int, default=5, help="starts of each page; 0 leaves them out")
    parser.add_argument("--visits", type=int, default=10, help="visits to each page; 0 leaves out the browser")
    parser.add_argument("--cases", type=int, default=60, help="masked edits of each kind; 0 leaves them out")
    parser.add_argument("--kept", type=int, default=30, help="looks into large homes; 0 leaves them out")
    parser.add_argument("--write", type=Path, help="the Markdown file to write")
    given = parser.parse_args()
    figures = asyncio.run(_turns(given.runs))
    if given.starts:
        figures.append(start_figure(given.starts))
    if given.visits:
        figures.extend(first_page_figures(given.visits))
    head = _INTRODUCTION.format(machine=machine(), day=datetime.now(UTC).date())
    page = f"{head}{as_markdown(figures)}\n{_STYLES}{report(asyncio.run(measured()))}\n"
    if given.visits:
        page += f"\n{smoothness.section()}"
    if given.cases:
        page += f"\n{masking.section(masking.measured(given.cases))}"
    if given.kept:
        page += f"\n{keeping.section()}\n{gallery.section(asyncio.run(gallery.measured(given.kept)))}"
    print(page)
    if given.write:
        given.write.write_text(page, encoding="utf-8")


async def _turns(runs: int) -> list[Figure]:
    brains = ("--sizes-only", "--text-brain", "tests.bench.brains:text", "--image-brain", "tests.bench.brains:image")
    with GeminiProcess(*brains) as server, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        figures = await turn_figures(home / "turns", server.url, runs)
        figures += await whole_figures(home / "whole", server.url, runs)
        figures.append(await growth_figure(home / "growth", server.url, max(100, runs)))
        figures += await whole_growth_figures(home / "whole-growth", server.url)
        for ways in (text_ways(server.url), whole_ways(server.url)):
            for people in (10, 50):
                place = home / f"crowd of {people}, {ways.name}"
                figures.append(await crowd_figure(place, server.url, ways, people, max(3, runs // 20)))
        figures.append(await upload_figure(home / "upload", server))
    return figures


if __name__ == "__main__":
    main()
