from __future__ import annotations

import dataclasses
import functools
import io

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from tests.adapters.masks import (
    MaskProblem,
    MaskRefusal,
    Notice,
    Reason,
    Verdict,
    finish_edit,
    laying,
    packed,
    plan_edit,
    regrow,
    wobble,
)
from tests.adapters.pixels import open_picture, read_rgb
from tests.bench.masking import instead_of_a_sky, over_a_sky
from tests.bench.masking_simulator import Answer, Redrawing, drifting, jpeg, photograph, png
from tests.support.cases import each_case
from tests.support.masking_scenes import (
    FRAMES,
    HEIGHT,
    WIDTH,
    Pixels,
    Scene,
    composite,
    done,
    opened,
    photo,
    rectangle,
    scene,
    values,
)

MIDDLE = rectangle(250, 200, 370, 310)
EVERYTHING = np.full((HEIGHT, WIDTH), 255, np.uint8)


@functools.cache
def middle() -> Scene:
    return scene(photo(), MIDDLE)


def differs(one: Pixels, other: Pixels) -> np.ndarray:
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    return np.asarray((one != other).any(axis=2))


def points_of(area: np.ndarray) -> np.ndarray:
    rows, columns = np.nonzero(area)
    return np.stack([columns, rows], axis=1).astype(np.float32)


def missed(answer: Answer, places: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return how far the places in the answer are from showing these points."""
    return np.asarray(np.linalg.norm(answer.back(places.astype(np.float32)) - points, axis=1))


def with_alpha(alpha: np.ndarray) -> np.ndarray:
    return np.concatenate([photo(), alpha[..., None]], axis=2).astype(np.uint8)


def sixteen(pixels: np.ndarray) -> np.ndarray:
    fine = np.random.default_rng(5).integers(0, 256, pixels.shape)
    return (pixels.astype(np.uint16) * 256 + fine).astype(np.uint16)


HOLEY = np.where(np.random.default_rng(3).random((HEIGHT, WIDTH)) > 0.5, 255, 40).astype(np.uint8)
CLEAR = with_alpha(np.where(HOLEY < 255, 0, HOLEY))
KINDS = {
    "RGB": photo(),
    "grey": np.ascontiguousarray(photo()[..., 1]),
    "RGBA": with_alpha(HOLEY),
    "RGBA with colours under full transparency": CLEAR,
    "grey with grey under full transparency": np.ascontiguousarray(
        with_alpha(np.where(HOLEY < 255, 0, HOLEY))[..., 2:]
    ),
    "grey of 16 bits": sixteen(photo()[..., 1]),
    "RGB of 16 bits": sixteen(photo()),
    "RGBA of 16 bits": sixteen(with_alpha(HOLEY)),
}


@each_case("kind", KINDS)
def test_not_a_bit_changes_outside_the_mask(kind: str) -> None:
    edit = scene(KINDS[kind], MIDDLE)
    outcome = done(finish_edit(edit.plan, edit.answer(drifting(1)).data))
    changed = differs(composite(outcome), edit.pixels)
    assert not changed[MIDDLE == 0].any()
    assert changed[MIDDLE > 0].mean() > 0.5
    assert outcome.changed_outside == 0
    assert outcome.outside == int((MIDDLE == 0).sum())


def test_what_is_drawn_on_transparency_becomes_visible_and_the_rest_stays_transparent() -> None:
    alpha = np.where(np.arange(WIDTH) < 310, 255, 0).astype(np.uint8)[None].repeat(HEIGHT, axis=0)
    edit = scene(with_alpha(alpha), rectangle(200, 150, 420, 360))
    sent, area = read_rgb(edit.plan.crop), edit.area()
    truth = sent.copy()
    rows, columns = np.nonzero(area)
    drawn = (slice(int(np.median(rows)) - 30, int(np.median(rows)) + 30), slice(columns.max() - 90, columns.max() - 40))
    truth[drawn] = (200, 20, 40)
    result = composite(finish_edit(edit.plan, png(truth)))
    scale = edit.plan.box.width / edit.plan.frame.width_px
    x = round(edit.plan.box.left + (columns.max() - 65) * scale)
    y = round(edit.plan.box.top + float(np.median(rows)) * scale)
    assert result[y, x, 3] == 255
    assert np.abs(result[y, x, :3].astype(int) - (200, 20, 40)).max() < 30
    assert (result[160:180, 330:400, 3] == 0).all()
    assert (result[160:340, 210:300, 3] == 255).all()


BORDERS = [
    *((0, 150, 120, 300), (520, 150, WIDTH, 300), (200, 0, 360, 110), (200, 420, 360, HEIGHT)),
    *((0, 0, 140, 140), (540, 430, WIDTH, HEIGHT)),
]


@each_case("sides", BORDERS)
def test_a_mask_at_the_border_is_filled_up_to_the_very_edge(sides: tuple[int, int, int, int]) -> None:
    mask = rectangle(*sides)
    edit = scene(photo("camera"), mask)
    # Nothing new is drawn, but all of it in another tone, which no colour correction may take for a cast.
    truth = np.where(edit.area()[..., None] > 0, 255 - read_rgb(edit.plan.crop), read_rgb(edit.plan.crop))
    outcome = done(finish_edit(edit.plan, png(truth)))
    assert outcome.judgement.verdict is Verdict.GOOD
    result, original = composite(outcome).astype(int), edit.pixels.astype(int)
    assert not (result != original).any(axis=2)[mask == 0].any()
    edges = np.ones(mask.shape, bool)
    edges[1:-1, 1:-1] = False
    deep = cv2.erode(mask, np.ones((25, 25), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=255) > 0
    assert (deep & edges).any()
    assert np.median(np.abs(result - (255 - original)).max(axis=2)[deep & edges]) < 12


def test_an_answer_that_fills_everything_is_taken_as_it_is() -> None:
    edit = scene(photo(), EVERYTHING)
    other = photograph("rocket", edit.plan.frame.width_px, edit.plan.frame.height_px)
    outcome = done(finish_edit(edit.plan, png(other)))
    assert (outcome.judgement.verdict, outcome.judgement.reason) == (Verdict.GOOD, Reason.COVERS_ALL)
    assert outcome.outside == outcome.changed_outside == 0
    box = edit.plan.box
    expected = cv2.resize(other, (box.width, box.height), interpolation=cv2.INTER_AREA)
    shown = expected[-box.top : HEIGHT - box.top, -box.left : WIDTH - box.left]
    assert np.abs(composite(outcome).astype(int) - shown).mean() < 6


# The last rows of the mask lie wholly beyond the answer: they hung.
@example(seed=627)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_outside_changes_whatever_the_mask_and_the_drift(seed: int) -> None:
    chance = np.random.default_rng(seed)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    for _ in range(int(chance.integers(1, 4))):
        centre = (int(chance.integers(WIDTH)), int(chance.integers(HEIGHT)))
        cv2.circle(mask, centre, int(chance.integers(2, 120)), int(chance.integers(1, 256)), -1)
    edit = scene(photo(), mask)
    outcome = done(finish_edit(edit.plan, edit.answer(drifting(seed)).data))
    if outcome.composite is None:
        assert outcome.judgement.verdict is Verdict.REFUSED
    else:
        assert not differs(composite(outcome), edit.pixels)[mask == 0].any()


@each_case("seed", range(3))
def test_a_drifted_genuine_answer_is_accepted_and_laid_back_to_a_fraction_of_a_pixel(seed: int) -> None:
    edit = middle()
    answer = edit.answer(drifting(seed))
    outcome = done(finish_edit(edit.plan, answer.data))
    assert outcome.judgement.verdict is Verdict.GOOD
    assert outcome.aligned is not None
    assert not outcome.aligned.bends
    matrix = laying.matrix_of(outcome.aligned)
    points = points_of(edit.area())
    assert missed(answer, points @ matrix[:, :2].T + matrix[:, 2], points).max() <= 0.25


def test_colours_match_round_the_border() -> None:
    edit = middle()
    cast = Redrawing(gain=(1.1, 0.95, 0.9), offset=(6, -4, 8), gamma=1.12)
    result = composite(finish_edit(edit.plan, edit.answer(cast).data)).astype(float)
    ring = (MIDDLE > 0) & (cv2.erode(MIDDLE, np.ones((11, 11), np.uint8)) == 0)
    naive = cv2.resize(edit.answer(cast).pixels, (edit.plan.box.width, edit.plan.box.height))
    before = np.zeros(edit.pixels.shape)
    box = edit.plan.box
    before[box.top : box.bottom, box.left : box.right] = naive
    assert np.abs(result - edit.pixels)[ring].mean() < 2
    assert np.abs(before - edit.pixels)[ring].mean() > 8


def test_a_foreign_answer_is_refused_and_the_picture_stays() -> None:
    edit = middle()
    size = (edit.plan.frame.width_px, edit.plan.frame.height_px)
    sent = read_rgb(edit.plan.crop)
    close = sent[size[1] // 6 : -size[1] // 6, size[0] // 6 : -size[0] // 6]
    reframed = np.asarray(cv2.resize(close, size, interpolation=cv2.INTER_CUBIC), np.uint8)
    grain = np.random.default_rng(1).integers(0, 255, sent.shape).astype(np.uint8)
    foreign = {
        "another picture": (photograph("astronaut", *size), Reason.ANOTHER_PICTURE),
        # It is found, mirrored: it is the same one in another framing.
        "mirrored": (np.ascontiguousarray(sent[:, ::-1]), Reason.ANOTHER_FRAMING),
        "another framing": (reframed, Reason.ANOTHER_FRAMING),
        "noise": (grain, Reason.ANOTHER_PICTURE),
    }
    for how, (answer, reason) in foreign.items():
        outcome = done(finish_edit(edit.plan, jpeg(answer, 90)))
        assert (outcome.judgement.verdict, outcome.judgement.reason) == (Verdict.REFUSED, reason), how
        assert outcome.composite is None
    assert finish_edit(edit.plan, b"no picture") == MaskRefusal(MaskProblem.ANSWER_UNREADABLE)


def test_a_plain_sky_whose_grain_was_drawn_anew_is_not_another_picture_but_a_photograph_is() -> None:
    outcome, judgement = over_a_sky(0), instead_of_a_sky(0).judgement
    assert outcome.judgement.verdict is not Verdict.REFUSED
    assert outcome.changed_outside == 0
    assert (judgement.verdict, judgement.reason) == (Verdict.REFUSED, Reason.ANOTHER_PICTURE)


def test_where_little_can_be_told_a_person_is_asked_with_before_and_after() -> None:
    flat = np.full((HEIGHT, WIDTH, 3), 140, np.uint8)
    edit = scene(flat, MIDDLE)
    outcome = done(finish_edit(edit.plan, edit.answer().data))
    assert (outcome.judgement.verdict, outcome.judgement.reason) == (Verdict.UNSURE, Reason.LITTLE_TO_ALIGN_BY)
    assert opened(outcome.before).size == opened(outcome.after).size
    assert opened(outcome.before).tobytes() != opened(outcome.after).tobytes()
    assert outcome.changed_outside == 0


def test_a_wobbling_answer_is_bent_back() -> None:
    edit = middle()
    answer = edit.answer(Redrawing(wobble_px=1.5, wobble_length_px=110, redraw=0.3, seed=4))
    outcome = done(finish_edit(edit.plan, answer.data))
    assert outcome.aligned is not None
    assert outcome.aligned.bends
    matrix = laying.matrix_of(outcome.aligned)
    x, y = wobble.places(matrix, edit.area().shape, laying.bends_of(outcome.aligned))
    border = cv2.morphologyEx(edit.area(), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    points = points_of(border)
    straight = np.median(missed(answer, points @ matrix[:, :2].T + matrix[:, 2], points))
    assert np.median(missed(answer, np.stack([x[border], y[border]], axis=1), points)) < min(0.5 * straight, 0.6)


def test_a_change_beyond_the_mask_is_told_and_not_written_and_a_mask_beyond_what_was_sent_is_refused() -> None:
    edit = middle()
    outcome = done(finish_edit(edit.plan, edit.answer(dataclasses.replace(drifting(6), bleed_px=24)).data))
    assert Notice.SPILLS in {said.notice for said in outcome.notices}
    needed = 24 * edit.plan.box.width / edit.plan.frame.width_px
    assert needed - 4 <= outcome.spill_px <= needed + 12
    assert (values(outcome.grown_mask) >= MIDDLE).all()
    assert outcome.changed_outside == 0
    edit = scene(photo(), rectangle(20, 20, 60, 60))
    first = done(finish_edit(edit.plan, edit.answer().data))
    assert first.aligned is not None
    refused = regrow(edit.plan, first.aligned, packed(rectangle(20, 20, WIDTH, HEIGHT)))
    assert refused == MaskRefusal(MaskProblem.BEYOND_THE_ANSWER)


@pytest.mark.parametrize(("keep_px", "fade_px"), [(40, 16), (2, 8)])
def test_the_fade_is_wider_where_the_edit_keeps_away_from_the_border(keep_px: int, fade_px: int) -> None:
    edit = middle()
    sent, area = read_rgb(edit.plan.crop), edit.area()
    depth = cv2.distanceTransform(area, cv2.DIST_L2, 5)
    toned = np.where(depth[..., None] > keep_px, 255 - sent, sent).astype(np.int16)
    # Two levels are too little to count as a change, and enough to see how much of the answer shows.
    faint = np.where((depth[..., None] > 0) & (depth[..., None] <= keep_px), toned + 4, toned)
    result = composite(finish_edit(edit.plan, png(np.clip(faint, 0, 255).astype(np.uint8)))).astype(int)
    scale = edit.plan.box.width / edit.plan.frame.width_px
    reach = cv2.distanceTransform(MIDDLE, cv2.DIST_L2, 5) / scale
    before_full = (reach > 0.6 * fade_px) & (reach < 0.8 * fade_px)
    after_full = (reach > 1.1 * fade_px) & (reach < 1.4 * fade_px)
    if keep_px > fade_px:
        shown = (result - edit.pixels).mean(axis=2)
        assert shown[after_full].mean() > shown[before_full].mean() + 0.3
    else:
        assert np.median(np.abs(result - (255 - edit.pixels.astype(int)))[after_full]) < 12


def test_the_colour_profile_is_kept() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    sink = io.BytesIO()
    Image.fromarray(photo()).save(sink, "PNG", icc_profile=profile)
    plan = plan_edit(sink.getvalue(), packed(MIDDLE), FRAMES)
    assert not isinstance(plan, MaskRefusal)
    outcome = done(finish_edit(plan, plan.crop))
    assert outcome.composite is not None
    assert open_picture(outcome.composite).profile == profile
