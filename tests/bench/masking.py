"""How exact a masked edit is, by answers that are simulated over real photographs (`masking_simulator`).

No model is asked. What the figures promise of real answers is only as good as that simulation.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from tests.adapters.masks import EditOutcome, EditPlan, alignment, finish_edit, overlay, packed, plan_edit
from tests.adapters.pixels import read_rgb
from tests.bench.masking_simulator import (
    NAMES,
    STRUCTURED,
    Answer,
    Bytes,
    Redrawing,
    blob,
    drifting,
    edited,
    frames,
    grain,
    jpeg,
    photograph,
    plain_sky,
)
from tests.bench.measuring import Row, command, table
from tests.support.masking_scenes import Scene, scene

Doubles = NDArray[np.float64]
_SIZES = ((1200, 900), (1024, 1024), (900, 1200), (1500, 850))
_RING_PX = 12
_KINDS: dict[str, Callable[[int], Redrawing]] = {
    "rigid": drifting,
    "without a cast": lambda seed: replace(drifting(seed), gain=(1.0, 1.0, 1.0), offset=(0.0, 0.0, 0.0), gamma=1.0),
    "wobbling": lambda seed: drifting(seed, wobble_px=1, redraw=0.4, wobble_length_px=(60, 90, 180)[seed % 3]),
    "redrawn": lambda seed: drifting(seed, wobble_px=2.0 * (seed % 2), redraw=0.8 + 0.2 * (seed % 2)),
    "spilling": lambda seed: drifting(seed, bleed_px=12 + 6 * (seed % 6)),
}
_FOREIGN = ("another picture", "mirrored", "another framing", "shuffled", "laid out anew")


@dataclass(frozen=True)
class Genuine:
    """What came of an answer that shows the same picture, without the pictures; errors in pixels of the frame.

    `border_px` is the median error along the mask's border, `worst_px` the worst along it and inside. Colour and
    gradient are not numbers where the answer was refused.
    """

    outcome: EditOutcome
    is_bent: bool
    border_px: float
    worst_px: float
    ring_difference: float
    seam: float
    too_far_px: float | None


def drawn_scene(seed: int, *, is_plain: bool = False) -> Scene:
    """Return a photograph, or a plain sky, with a mask of a tenth to a third of its height."""
    chance = np.random.default_rng(seed + 5000)
    width, height = _SIZES[seed % len(_SIZES)]
    name = STRUCTURED[seed % len(STRUCTURED)]
    pixels = plain_sky(width, height, seed) if is_plain else photograph(name, width, height, seed)
    radius = float(chance.uniform(0.07, 0.18)) * min(width, height)
    centre = (float(chance.uniform(0.25, 0.75)) * width, float(chance.uniform(0.25, 0.75)) * height)
    return scene(pixels, blob(width, height, centre, radius, seed), frames())


def genuine(seed: int, how: Redrawing) -> Genuine:
    """Return what came of an answer that shows the same picture."""
    made = drawn_scene(seed)
    area = made.area()
    answer = Answer(edited(made.sent, area, seed, bleed_px=how.bleed_px), how)
    outcome = finish_edit(made.plan, answer.data)
    assert outcome.placement is not None
    fit = overlay.fit_of(outcome.placement, outcome.judgement)
    rows, columns = np.indices(area.shape, np.float32)
    x, y = alignment.places(fit.matrix, area.shape, fit.bends)
    missed = np.hypot(*np.moveaxis(answer.back(np.stack([x, y], -1)), -1, 0) - (columns, rows))
    border = cv2.morphologyEx(area, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    colour, edge = float("nan"), float("nan")
    scale = made.plan.box.width / made.plan.frame.width_px
    if outcome.composite is not None:
        original, result = read_rgb(made.data), read_rgb(outcome.composite)
        inside, outside = _reach(made.mask > 0), _reach(made.mask == 0)
        near = (inside > 0) & (inside <= _RING_PX * scale)
        colour = float(ciede2000(_lab(original)[near], _lab(result)[near]).mean())
        seam = (inside <= 2) & (outside <= 2)
        edge = float(_energy(result)[seam].mean() / max(1e-6, float(_energy(original)[seam].mean())))
    return Genuine(
        outcome=replace(outcome, composite=None, placement=None, before=None, after=None),
        is_bent=fit.bends is not None,
        border_px=float(np.median(missed[border])),
        worst_px=float(missed[area > 0].max()),
        ring_difference=colour,
        seam=edge,
        too_far_px=outcome.spill_px / scale - how.bleed_px if outcome.spill_px else None,
    )


def over_a_sky(seed: int) -> EditOutcome:
    """Return what came of a genuine answer over a plain sky, whose grain is drawn anew."""
    made = drawn_scene(seed, is_plain=True)
    drawn = edited(made.sent, made.area(), seed)
    if seed % 2:
        drawn = np.asarray(cv2.GaussianBlur(drawn, (0, 0), 1.5), np.uint8)
    height, width = drawn.shape[:2]
    grained = np.clip(np.rint(drawn + grain(width, height, 2.5, seed + 1)), 0, 255).astype(np.uint8)
    return finish_edit(made.plan, Answer(grained, drifting(seed)).data)


def instead_of_a_sky(seed: int) -> EditOutcome:
    """Return what came of an answer that shows a photograph where a plain sky was sent."""
    made = drawn_scene(seed, is_plain=True)
    height, width = made.sent.shape[:2]
    return finish_edit(made.plan, jpeg(photograph(STRUCTURED[seed % len(STRUCTURED)], width, height, seed), 90))


def foreign(seed: int, kind: str) -> EditOutcome:
    """Return what came of an answer that shows something else."""
    made = drawn_scene(seed)
    sent, chance, is_odd = made.sent, np.random.default_rng(seed), seed // 5 % 2
    match kind:
        case "another picture":
            names = [name for name in NAMES if name != STRUCTURED[seed % len(STRUCTURED)]]
            drawn = photograph(names[seed // 5 % len(names)], sent.shape[1], sent.shape[0], seed + 9)
        case "mirrored":
            drawn = np.ascontiguousarray(sent[:, ::-1] if is_odd else sent[::-1])
        case "another framing":
            zoom = float(chance.uniform(0.6, 0.82) if is_odd else chance.uniform(1.2, 1.7))
            drawn = Answer(sent, Redrawing(scale=zoom, redraw=0.2, seed=seed)).pixels
        case "shuffled":
            tiles = [tile for row in np.split(sent, 4) for tile in np.split(row, 4, axis=1)]
            drawn = np.vstack([np.hstack([tiles[one] for one in row]) for row in chance.permutation(16).reshape(4, 4)])
        case _:
            # Everything is there, thirty pixels and more from where it was: another drawing of the same scene.
            drawn = Answer(sent, Redrawing(wobble_px=34, wobble_length_px=260, redraw=0.5, seed=seed)).pixels
    return finish_edit(made.plan, jpeg(drawn, 90))


def _reach(where: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.asarray(cv2.distanceTransform(where.astype(np.uint8), cv2.DIST_L2, 5), np.float32)


def _lab(picture: Bytes) -> Doubles:
    return cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_RGB2LAB).astype(np.float64)


def _energy(picture: Bytes) -> NDArray[np.float32]:
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    across, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0) / 8, cv2.Sobel(grey, cv2.CV_32F, 0, 1) / 8
    return np.asarray(across * across + down * down, np.float32)


def ciede2000(one: Doubles, other: Doubles) -> Doubles:
    """Return the differences of rows of L*, a*, b*, after Sharma, Wu and Dalal (2005)."""
    chroma = (np.hypot(one[:, 1], one[:, 2]) + np.hypot(other[:, 1], other[:, 2])) / 2
    stretch = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    a1, a2 = one[:, 1] * stretch, other[:, 1] * stretch
    c1, c2 = np.hypot(a1, one[:, 2]), np.hypot(a2, other[:, 2])
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, one[:, 2]), (a2, other[:, 2])))
    grey = c1 * c2 == 0
    turn = (h2 - h1 + 180) % 360 - 180
    delta_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(np.where(grey, 0, turn) / 2))
    light, colour = (one[:, 0] + other[:, 0]) / 2, (c1 + c2) / 2
    hue = np.where(grey, h1 + h2, (h1 + turn / 2) % 360)
    waves = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    t = 1 + sum(weight * np.cos(np.radians(times * hue + phase)) for weight, times, phase in waves)
    weight_l = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    weight_c, weight_h = 1 + 0.045 * colour, 1 + 0.015 * colour * t
    turned = -2 * np.sqrt(colour**7 / (colour**7 + 25.0**7))
    turned = turned * np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    in_l, in_c, in_h = (other[:, 0] - one[:, 0]) / weight_l, (c2 - c1) / weight_c, delta_h / weight_h
    return np.asarray(np.sqrt(np.maximum(in_l**2 + in_c**2 + in_h**2 + turned * in_c * in_h, 0)))


def exactness(cases: int) -> list[Row]:
    """Return the rows of so many rigid cases, and half as many of each other kind."""
    half = max(2, cases // 2)
    found = {
        kind: [genuine(seed, how(seed)) for seed in range(cases if kind == "rigid" else half)]
        for kind, how in _KINDS.items()
    }
    others = [foreign(seed, kind).judgement.verdict for kind in _FOREIGN for seed in range(half)]
    skies = [over_a_sky(seed).judgement.verdict for seed in range(half)]
    photographs = [instead_of_a_sky(seed).judgement.verdict for seed in range(half)]
    rigid, plain, wobbling, _, spilling = found.values()
    everyone = [case for cases_ in found.values() for case in cases_]
    judged = [case.outcome.judgement for case in everyone]
    verdicts = [one.verdict for one in judged]
    lowest = f"{min(one.correlation for one in judged):.2f}, {min(one.tile_share for one in judged):.2f}"
    spills = [case.too_far_px for case in spilling if case.too_far_px is not None]
    spilt = f"{len(spills)} of {half} found, suggested minus needed: median {np.median(spills or [0]):+.1f} px"
    false = sum(case.too_far_px is not None for case in rigid)
    changed = sum(case.outcome.changed_outside for case in everyone)
    return [
        (f"pixels changed outside the mask, {len(everyone)} edits", changed, "0"),
        _row("alignment, drift: worst point of each case", [c.worst_px for c in rigid], "p95 ≤ 0.1, worst ≤ 0.5"),
        _row("alignment, 1 px wobble: along the border", [c.border_px for c in wobbling], "median ≤ 0.6"),
        _row("colour in the ring, mean CIEDE2000 of each case", [c.ring_difference for c in rigid], "≤ 0.5"),
        _row("the same of answers without a cast: redrawing and JPEG alone", [c.ring_difference for c in plain], ""),
        _row("gradient along the border over the original's", [c.seam for c in rigid], "median ≤ 1.05"),
        ("drift taken for wobble", _share([c.is_bent for c in rigid], True), "none"),
        ("wobble seen", _share([c.is_bent for c in wobbling], True), "all"),
        ("genuine answers refused", _share(verdicts, "refused"), "none"),
        ("genuine answers unsure", _share(verdicts, "unsure"), ""),
        ("lowest correlation and tile share of a genuine answer", lowest, "above 0.50, 0.65"),
        ("other pictures refused", _share(others, "refused"), "all"),
        ("other pictures taken as good", _share(others, "good"), "none"),
        ("genuine answers over a plain sky refused", _share(skies, "refused"), "none"),
        ("the same unsure", _share(skies, "unsure"), ""),
        ("photographs in place of a plain sky refused", _share(photographs, "refused"), "all"),
        ("change beyond the mask", f"{spilt}; {false} of {cases} false", "all, none false"),
    ]


def _share(found: Sequence[object], what: object) -> str:
    return f"{list(found).count(what)} of {len(found)}"


def _row(name: str, values: Sequence[float], target: str) -> Row:
    known = np.array([value for value in values if not np.isnan(value)])
    middle, high = np.percentile(known, [50, 95])
    return f"{name}, {len(known)} cases", f"median {middle:.3f}, p95 {high:.3f}, worst {known.max():.3f}", target


def cost(side: int) -> Row:
    """Return the best times and the peak of memory of an edit of about a twentieth of a picture, in this process."""
    small = photograph("camera", min(side, 2048), min(side, 2048), 3)
    pixels = np.asarray(cv2.resize(small, (side, side), interpolation=cv2.INTER_CUBIC), np.uint8)
    made = scene(pixels, blob(side, side, (side * 0.55, side * 0.45), side * 0.12), frames("1K"))
    answer = jpeg(Answer(edited(made.sent, made.area(), 4), drifting(4)).pixels, 92)
    mask = packed(made.mask)
    # The peak is counted anew from here on.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    plans, finishes = [], []
    for _ in range(3):
        started_s = time.perf_counter()
        plan = plan_edit(made.data, mask, frames("1K"))
        planned_s = time.perf_counter()
        assert isinstance(plan, EditPlan)
        outcome = finish_edit(plan, answer)
        finishes.append(time.perf_counter() - planned_s)
        plans.append(planned_s - started_s)
        assert outcome.composite is not None
        assert outcome.changed_outside == 0
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak_mb = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return f"{side**2 >> 20} MP", f"{min(plans):.2f} s", f"{min(finishes):.2f} s", f"{peak_mb:.0f} MB"


def _report(cases: int) -> str:
    exact = table("what | measured | target", exactness(cases))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as fresh:
        costs = table("picture | plan | finish | peak memory", fresh.map(cost, (1024, 2048, 4096)))
    return f"{exact}\n\nTime and memory of an edit whose answer has about 1 megapixel:\n\n{costs}"


if __name__ == "__main__":
    command("Masked editing", _report, runs=60)
