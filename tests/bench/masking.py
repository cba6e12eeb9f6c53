"""How exact a masked edit is: `python -m tests.bench.masking` prints a section.

The answers are simulated over real photographs (`masking_simulator`): no model is asked. What the figures promise of
real answers is only as good as that simulation.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.adapters.masks import Verdict
from tests.bench.masking_cases import FOREIGN, Genuine, foreign, genuine, instead_of_a_sky, over_a_sky
from tests.bench.masking_costs import Cost, costs
from tests.bench.masking_simulator import Redrawing, drifting
from tests.bench.measuring import machine

HEADING = "## Masked editing"
_NO_CAST: dict[str, Any] = {"gain": (1.0, 1.0, 1.0), "offset": (0.0, 0.0, 0.0), "gamma": 1.0}
_TEXT = """{heading}

Simulated answers over the photographs in `tests/data/photos` (`python -m tests.bench.masking`): shift up to 24 px, zoom
0.94 to 1.06, 1 % anisotropy, half a degree, a colour cast with gamma, redrawn fine structure, JPEG; no model was asked.
Errors are in pixels of the answer of about a megapixel; the ring is 12 px inside the border, where nothing new was
drawn. The plain skies have faint clouds and grain, which the answers draw anew; nothing here is periodic. {machine}.

"""
_COSTS = """
Time and memory of an edit whose answer has about 1 megapixel. A picture of 16 MP for which the model's largest size is
asked takes far more: one such edit was seen to take 1,449 MB.
"""


@dataclasses.dataclass(frozen=True)
class Results:
    """All cases by their kind."""

    rigid: list[Genuine]
    plain: list[Genuine]
    wobbling: list[Genuine]
    redrawn: list[Genuine]
    spilling: list[Genuine]
    refused: dict[str, list[Verdict]]
    skies: list[Verdict]
    not_skies: list[Verdict]
    costs: list[Cost]


def measured(cases: int, with_costs: bool = True) -> Results:
    """Run so many rigid cases, and of the other kinds about half as many each."""
    half = max(2, cases // 2)
    wobbles = (60.0, 90.0, 180.0)
    return Results(
        rigid=_each(cases, lambda seed: drifting(seed)),
        plain=_each(half, lambda seed: dataclasses.replace(drifting(seed), **_NO_CAST)),
        wobbling=_each(
            half, lambda seed: drifting(seed, wobble_px=1.0, redraw=0.4, wobble_length_px=wobbles[seed % 3])
        ),
        redrawn=_each(half, lambda seed: drifting(seed, wobble_px=2.0 * (seed % 2), redraw=0.8 + 0.2 * (seed % 2))),
        spilling=_each(half, lambda seed: drifting(seed, bleed_px=12 + 6 * (seed % 6))),
        refused={kind: [foreign(seed, kind).judgement.verdict for seed in range(half)] for kind in FOREIGN},
        skies=[over_a_sky(seed).judgement.verdict for seed in range(half)],
        not_skies=[instead_of_a_sky(seed).judgement.verdict for seed in range(half)],
        costs=costs() if with_costs else [],
    )


def _each(count: int, how: Callable[[int], Redrawing]) -> list[Genuine]:
    return [genuine(seed, how(seed)) for seed in range(count)]


def report(results: Results) -> str:
    """Return the section's text."""
    rigid, wobbling, skies, others = results.rigid, results.wobbling, results.skies, results.not_skies
    everyone = [*rigid, *results.plain, *wobbling, *results.redrawn, *results.spilling]
    refused = [verdict for verdicts in results.refused.values() for verdict in verdicts]
    verdicts = [case.verdict for case in everyone]
    lowest = f"{min(c.correlation for c in everyone):.2f}, {min(c.tile_share for c in everyone):.2f}"
    colour = "colour in the ring, mean CIEDE2000 of each case"
    without_a_cast = "the same of answers without a cast: redrawing and JPEG alone"
    rows: list[tuple[str, object, str]] = [
        ("what", "measured", "target"),
        ("---", "---", "---"),
        (f"pixels changed outside the mask, {len(everyone)} edits", sum(c.changed_outside for c in everyone), "0"),
        _row("alignment, drift: worst point of each case", [c.worst_px for c in rigid], "p95 ≤ 0.1, worst ≤ 0.5"),
        _row("alignment, 1 px wobble: along the border", [c.border_px for c in wobbling], "median ≤ 0.6"),
        _row("the same without bending", [c.straight_px for c in wobbling], ""),
        _row(colour, [c.ring_difference for c in rigid], "≤ 0.5"),
        _row(without_a_cast, [c.ring_difference for c in results.plain], ""),
        _row("gradient along the border over the original's", [c.seam for c in rigid], "median ≤ 1.05"),
        ("drift taken for wobble", _share([c.is_bent for c in rigid], True), "none"),
        ("wobble seen", _share([c.is_bent for c in wobbling], True), "all"),
        ("genuine answers refused", _share(verdicts, Verdict.REFUSED), "none"),
        ("genuine answers unsure", _share(verdicts, Verdict.UNSURE), ""),
        ("lowest correlation and tile share of a genuine answer", lowest, "above 0.50, 0.65"),
        ("other pictures refused", _share(refused, Verdict.REFUSED), "all"),
        ("other pictures taken as good", _share(refused, Verdict.GOOD), "none"),
        ("genuine answers over a plain sky refused", _share(skies, Verdict.REFUSED), "none"),
        ("the same unsure", _share(skies, Verdict.UNSURE), ""),
        ("photographs in place of a plain sky refused", _share(others, Verdict.REFUSED), "all"),
        _spill_row(results),
    ]
    table = [f"| {name} | {measured} | {target} |" for name, measured, target in rows]
    return "\n".join([*table, "", *_cost_rows(results.costs)])


def _share(found: Sequence[object], what: object) -> str:
    return f"{list(found).count(what)} of {len(found)}"


def _row(name: str, values: Sequence[float], target: str) -> tuple[str, str, str]:
    known = np.array([value for value in values if not np.isnan(value)])
    middle, high = np.percentile(known, [50, 95])
    return f"{name}, {len(known)} cases", f"median {middle:.3f}, p95 {high:.3f}, worst {known.max():.3f}", target


def _spill_row(results: Results) -> tuple[str, str, str]:
    found = [case.spill_px - case.needed_px for case in results.spilling if case.spill_px]
    alarms = sum(case.spill_px > 0 for case in results.rigid)
    missed = f"{len(found)} of {len(results.spilling)} found"
    off = f", suggested minus needed: median {np.median(found):+.1f} px" if found else ""
    return "change beyond the mask", f"{missed}{off}; {alarms} of {len(results.rigid)} false", "all, none false"


def _cost_rows(measured_costs: Sequence[Cost]) -> list[str]:
    if not measured_costs:
        return []
    rows = [
        *_COSTS.strip().splitlines(),
        "",
        "| picture | plan | finish | peak memory | Pillow decodes and encodes | its peak |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for cost in measured_costs:
        size = f"{round(cost.side_px**2 / (1 << 20))} MP"
        rows.append(
            f"| {size} | {cost.plan_s:.2f} s | {cost.finish_s:.2f} s | {cost.peak_mb:.0f} MB "
            f"| {cost.pillow_s:.2f} s | {cost.pillow_peak_mb:.0f} MB |"
        )
    return rows


def section(results: Results) -> str:
    """Return the section with its heading."""
    return f"{_TEXT.format(heading=HEADING, machine=machine())}{report(results)}\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.masking")
    parser.add_argument("--cases", type=int, default=60, help="rigid cases; half as many of each other kind")
    parser.add_argument("--no-costs", action="store_true", help="leave out time and memory")
    given = parser.parse_args()
    print(section(measured(given.cases, not given.no_costs)))


if __name__ == "__main__":
    main()
