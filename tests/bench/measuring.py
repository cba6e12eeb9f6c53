"""Figures with their spread, and how two ways are compared: in turn, in one run, on one machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """A row of the report."""

    name: str
    bare: str
    ours: str
    ratio: str
    target: str


def spread(values: Sequence[float], scale: float = 1.0, unit: str = "") -> str:
    """Return `median (p10 to p90)`."""
    tenths = statistics.quantiles(values, n=10) if len(values) > 1 else [values[0]] * 9
    low, middle, high = (scale * value for value in (tenths[0], statistics.median(values), tenths[-1]))
    return f"{middle:.2f}{unit} ({low:.2f} to {high:.2f})"


def with_worst(values: Sequence[float], scale: float = 1.0, unit: str = "") -> str:
    """Return `median (p95 …)`."""
    high = statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
    return f"{scale * statistics.median(values):.2f}{unit} (p95 {scale * high:.2f}{unit})"


def compared(name: str, bare: Sequence[float], ours: Sequence[float], target: str, scale: float, unit: str) -> Figure:
    """Return the row of two ways that were run in turn; the ratio is of the pairs."""
    ratios = [mine / theirs for theirs, mine in zip(bare, ours, strict=True)]
    return Figure(name, spread(bare, scale, unit), spread(ours, scale, unit), spread(ratios, 1.0, "x"), target)


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return the seconds that something takes."""
    started_s = time.perf_counter()
    await work()
    return time.perf_counter() - started_s


async def in_turn(
    first: Callable[[], Awaitable[float]], second: Callable[[], Awaitable[float]], runs: int, warm_up: int
) -> tuple[list[float], list[float]]:
    """Run two ways alternately and return what each took, without the warm-up."""
    both = [(await first(), await second()) for _ in range(warm_up + runs)][warm_up:]
    return [one for one, _ in both], [other for _, other in both]


def resident_mb() -> float:
    """Return the memory that this process holds now, in megabytes; not a number where the system does not tell."""
    file = Path("/proc/self/statm")
    return int(file.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if file.exists() else float("nan")


def machine() -> str:
    """Return a line about where the figures come from."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores {model}, {platform.system()}, Python {platform.python_version()}"


def as_markdown(figures: Sequence[Figure]) -> str:
    """Return the rows as a table."""
    head = "| what | bare | Aivista | ratio | target |\n| --- | --- | --- | --- | --- |"
    rows = [f"| {row.name} | {row.bare} | {row.ours} | {row.ratio} | {row.target} |" for row in figures]
    return "\n".join([head, *rows])
