"""The cases of the benchmark: genuine answers that drift or wobble, and answers that show something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from agent.imaging.masking import EditOutcome, EditPlan, Verdict, finish_edit, plan_edit
from agent.imaging.masking.laying import bends_of, matrix_of
from agent.imaging.masking.masks import packed
from agent.imaging.masking.wobble import places
from agent.pixels import read_rgb
from tests.bench.masking_measures import colour_differences, ring, seam
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
    png,
)

_SIZES = ((1200, 900), (1024, 1024), (900, 1200), (1500, 850))
_RING_PX = 12


@dataclass(frozen=True)
class Scene:
    """A picture, a mask of it and the plan, as made from a seed."""

    pixels: Bytes
    mask: Bytes
    plan: EditPlan
    sent: Bytes
    area: Bytes


@dataclass(frozen=True)
class Genuine:
    """What came of a genuine answer; errors in pixels of the frame, None where the answer was refused."""

    verdict: Verdict
    correlation: float
    tile_share: float
    changed_outside: int
    is_bent: bool
    border_px: float
    straight_px: float
    worst_px: float
    ring_difference: float
    seam: float
    spill_px: float
    needed_px: float


def scene(seed: int, *, is_plain: bool = False) -> Scene:
    """Return a photograph, or a plain sky, with a mask of a tenth to a third of its height."""
    chance = np.random.default_rng(seed + 5000)
    width, height = _SIZES[seed % len(_SIZES)]
    pixels = plain_sky(width, height, seed)
    if not is_plain:
        pixels = photograph(STRUCTURED[seed % len(STRUCTURED)], width, height, seed)
    radius = float(chance.uniform(0.07, 0.18)) * min(width, height)
    centre = (float(chance.uniform(0.25, 0.75)) * width, float(chance.uniform(0.25, 0.75)) * height)
    mask = blob(width, height, centre, radius, seed)
    plan = plan_edit(png(pixels), packed(mask), frames())
    assert isinstance(plan, EditPlan)
    sent = read_rgb(plan.crop)
    area = np.where((sent != read_rgb(plan.marked)).any(axis=2), 255, 0).astype(np.uint8)
    return Scene(pixels, mask, plan, sent, area)


def genuine(seed: int, how: Redrawing) -> Genuine:
    """Return what came of an answer that shows the same picture."""
    made = scene(seed)
    answer = Answer(edited(made.sent, made.area, seed, bleed_px=how.bleed_px), how)
    outcome = finish_edit(made.plan, answer.data)
    assert isinstance(outcome, EditOutcome)
    assert outcome.aligned is not None
    border, straight, worst = _errors(made, answer, outcome)
    colour, edge = float("nan"), float("nan")
    scale = made.plan.box.width / made.plan.frame.width_px
    if outcome.composite is not None:
        result = read_rgb(outcome.composite)
        near = ring(made.mask, _RING_PX * scale)
        colour = float(colour_differences(made.pixels, result, near).mean())
        edge = seam(made.pixels, result, made.mask)
    verdict = outcome.judgement
    return Genuine(
        verdict=verdict.verdict,
        correlation=verdict.correlation,
        tile_share=verdict.tile_share,
        changed_outside=outcome.changed_outside,
        is_bent=bool(outcome.aligned.bends),
        border_px=border,
        straight_px=straight,
        worst_px=worst,
        ring_difference=colour,
        seam=edge,
        spill_px=outcome.spill_px / scale,
        needed_px=how.bleed_px,
    )


def over_a_sky(seed: int) -> EditOutcome:
    """Return what came of a genuine answer over a plain sky, whose grain is drawn anew."""
    made = scene(seed, is_plain=True)
    drawn = edited(made.sent, made.area, seed)
    if seed % 2:
        drawn = np.asarray(cv2.GaussianBlur(drawn, (0, 0), 1.5), np.uint8)
    height, width = drawn.shape[:2]
    grained = np.clip(np.rint(drawn + grain(width, height, 2.5, seed + 1)), 0, 255).astype(np.uint8)
    answer = Answer(grained, drifting(seed))
    return _finished(made, answer.data)


def instead_of_a_sky(seed: int) -> EditOutcome:
    """Return what came of an answer that shows a photograph where a plain sky was sent."""
    made = scene(seed, is_plain=True)
    name = STRUCTURED[seed % len(STRUCTURED)]
    return _finished(made, jpeg(photograph(name, made.plan.frame.width_px, made.plan.frame.height_px, seed), 90))


def _finished(made: Scene, answer: bytes) -> EditOutcome:
    outcome = finish_edit(made.plan, answer)
    assert isinstance(outcome, EditOutcome)
    return outcome


def _errors(made: Scene, answer: Answer, outcome: EditOutcome) -> tuple[float, float, float]:
    """Return the median along the border, the same without bends, and the worst along it and inside."""
    kept = outcome.aligned
    assert kept is not None
    matrix, bends = matrix_of(kept), bends_of(kept)
    size = (kept.work_width, kept.work_height)
    assert size == (made.plan.frame.width_px, made.plan.frame.height_px)
    gradient = cv2.morphologyEx(made.area, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    rows, columns = np.mgrid[0 : size[1], 0 : size[0]].astype(np.float32)
    here = np.stack([columns, rows], axis=-1)

    def missed(with_bends: bool) -> np.ndarray:
        x, y = places(matrix, made.area.shape, bends if with_bends else None)
        return np.asarray(np.linalg.norm(answer.back(np.stack([x, y], axis=-1)) - here, axis=-1))

    bent, straight = missed(True), missed(False)
    return float(np.median(bent[gradient])), float(np.median(straight[gradient])), float(bent[made.area > 0].max())


def _other(made: Scene, seed: int) -> Bytes:
    size = (made.plan.frame.width_px, made.plan.frame.height_px)
    mine = STRUCTURED[seed % len(STRUCTURED)]
    names = [name for name in NAMES if name != mine]
    return photograph(names[seed // 5 % len(names)], *size, seed + 9)


def _mirrored(made: Scene, seed: int) -> Bytes:
    return np.ascontiguousarray(made.sent[:, ::-1] if seed // 5 % 2 else made.sent[::-1])


def _reframed(made: Scene, seed: int) -> Bytes:
    chance = np.random.default_rng(seed)
    zoom = float(chance.uniform(0.6, 0.82) if seed // 5 % 2 else chance.uniform(1.2, 1.7))
    return Answer(made.sent, Redrawing(scale=zoom, redraw=0.2, seed=seed)).pixels


def _shuffled(made: Scene, seed: int) -> Bytes:
    height, width = made.sent.shape[:2]
    order = np.random.default_rng(seed).permutation(16)
    tile_height, tile_width = height // 4, width // 4
    result = made.sent.copy()
    for place, source in enumerate(order):
        y, x = divmod(place, 4)
        from_y, from_x = divmod(int(source), 4)
        result[y * tile_height : (y + 1) * tile_height, x * tile_width : (x + 1) * tile_width] = made.sent[
            from_y * tile_height : (from_y + 1) * tile_height, from_x * tile_width : (from_x + 1) * tile_width
        ]
    return result


def _laid_out_anew(made: Scene, seed: int) -> Bytes:
    # Everything is there, thirty pixels and more from where it was: another drawing of the same scene.
    return Answer(made.sent, Redrawing(wobble_px=34, wobble_length_px=260, redraw=0.5, seed=seed)).pixels


FOREIGN: dict[str, Callable[[Scene, int], Bytes]] = {
    "another picture": _other,
    "mirrored": _mirrored,
    "another framing": _reframed,
    "shuffled": _shuffled,
    "laid out anew": _laid_out_anew,
}


def foreign(seed: int, kind: str) -> EditOutcome:
    """Return what came of an answer that shows something else."""
    made = scene(seed)
    return _finished(made, jpeg(FOREIGN[kind](made, seed), 90))
