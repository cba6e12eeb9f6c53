"""What every benchmark repeats: two ways in turn, figures with their spread, a table, the command, the docs' page."""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

Row = Sequence[object]
BESIDE_BARE = "what | bare | Aivista | ratio | target"


def command(heading: str, measure: Callable[[int], str], runs: int = 0) -> None:
    """Be the command of a subject: measure, and print what goes under its heading in `docs/benchmarks.md`.

    With `--write PAGE` it is put there: behind the heading's own words, from "Measured on" to the next heading.
    """
    given = options(runs).parse_args()
    how = f", with `--runs {given.runs}`" if given.runs else ""
    measured = f"Measured on {machine()}, {datetime.now(UTC).date()}{how}.\n\n{measure(given.runs)}\n"
    print(f"## {heading}\n\n{measured}")
    if given.write:
        section = rf"(\n## {re.escape(heading)}\n(?:(?!\n## ).)*?)Measured on .*?(?=\n## |\Z)"
        page = given.write.read_text(encoding="utf-8")
        page, count = re.subn(section, lambda found: found[1] + measured, page, flags=re.DOTALL)
        if not count:
            raise SystemExit(f'{given.write} has no "Measured on" under "{heading}"')
        given.write.write_text(page, encoding="utf-8")


def options(runs: int | None = None) -> argparse.ArgumentParser:
    """Return the reader of what every command takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=runs, help="how often each way runs, or how many cases of a kind")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the figures into this page of the docs")
    return parser


def machine() -> str:
    """Return what the figures were measured on."""
    file = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", file.read_text("utf-8")) if file.exists() else None
    name = model[1].strip() if model else platform.machine()
    return f"{os.cpu_count()} cores {name}, {platform.system()}, Python {platform.python_version()}"


def table(head: str, rows: Iterable[Row]) -> str:
    """Return the rows as Markdown; `head` names the columns, with bars between them."""
    names = head.split(" | ")
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (names, ["---"] * len(names), *rows))


def spread(values: Sequence[float], scale: float = 1.0, unit: str = "") -> str:
    """Return `median (p10 to p90)`."""
    tenths = statistics.quantiles(values, n=10) if len(values) > 1 else [values[0]] * 9
    low, middle, high = (scale * value for value in (tenths[0], statistics.median(values), tenths[-1]))
    return f"{middle:.2f}{unit} ({low:.2f} to {high:.2f})"


def with_p95(values: Sequence[float], scale: float = 1.0, unit: str = "", digits: int = 2) -> str:
    """Return `median (p95 …)`."""
    high = statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
    return f"{scale * statistics.median(values):,.{digits}f}{unit} (p95 {scale * high:,.{digits}f}{unit})"


def compared(
    name: str,
    pairs: Iterable[tuple[float, float]],
    target: str,
    scale: float,
    unit: str,
    told: Callable[[Sequence[float], float, str], str] = spread,
) -> Row:
    """Return the row of two ways that ran in turn; the ratio is that of the pairs."""
    bare, ours = zip(*pairs, strict=True)
    ratios = [mine / theirs for theirs, mine in zip(bare, ours, strict=True)]
    return name, told(bare, scale, unit), told(ours, scale, unit), told(ratios, 1.0, "x"), target


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return the seconds that something takes."""
    started_s = time.perf_counter()
    await work()
    return time.perf_counter() - started_s


async def in_turn(
    first: Callable[[], Awaitable[float]], second: Callable[[], Awaitable[float]], runs: int, warm_up: int
) -> list[tuple[float, float]]:
    """Run two ways alternately and return what each gave, without the warm-up."""
    return [(await first(), await second()) for _ in range(warm_up + runs)][warm_up:]
