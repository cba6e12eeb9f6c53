"""Masks, the plan of an edit, and what is laid back of its answer: not a bit changes outside of the mask."""

from __future__ import annotations

import dataclasses
import functools

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.adapters.masks import (
    Box,
    Drift,
    EditPlan,
    Frame,
    Margins,
    Mask,
    MaskProblem,
    Notice,
    Reason,
    alignment,
    chosen_crop,
    drift,
    finish_edit,
    grow_mask,
    in_frame,
    keep_only,
    margins_for,
    overlay,
    packed,
    plan_edit,
    plan_expansion,
    read_mask,
    regrow,
    unpacked,
)
from tests.adapters.pixels import read_rgb
from tests.bench.masking import instead_of_a_sky, over_a_sky
from tests.bench.masking_simulator import Answer, Bytes, Redrawing, drifting, frames, jpeg, photograph, png
from tests.support.cases import each_case
from tests.support.masking_scenes import (
    FRAMES,
    HEIGHT,
    WIDTH,
    Pixels,
    Scene,
    composite,
    opened,
    photo,
    problem_of,
    rectangle,
    scene,
    stored,
    values,
)
from tests.support.pixels import encoded

SIZE = (60, 40)


def drawn() -> NDArray[np.uint8]:
    return rectangle(20, 10, 45, 25, SIZE)


@each_case("colour", [(255, 255, 255), (0, 0, 0), (230, 40, 90)])
def test_of_a_painters_layer_the_strokes_count_whatever_their_colour(colour: tuple[int, int, int]) -> None:
    layer = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    layer.paste((*colour, 255), (20, 10, 45, 25))
    np.testing.assert_array_equal(values(read_mask(encoded(layer), SIZE)), drawn())


def test_a_mask_of_another_size_is_scaled_if_its_ratio_is_off_by_two_per_cent_at_most() -> None:
    larger = Image.fromarray(drawn()).resize((180, 120), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(values(read_mask(encoded(larger), SIZE)), drawn())
    for width in (1000, 1019, 982):
        assert read_mask(encoded(Image.new("L", (width, 1000), 255)), (500, 500)).width == 500
    for width in (1021, 979):
        data = encoded(Image.new("L", (width, 1000), 255))
        assert problem_of(read_mask, data, (500, 500)) is MaskProblem.WRONG_RATIO
    stroke = np.zeros((400, 600), np.uint8)
    stroke[:, 301] = 255
    thin = values(read_mask(encoded(Image.fromarray(stroke)), SIZE))
    assert (thin[:, 30] == 255).all()
    assert int((thin > 0).sum()) == SIZE[1]


@given(st.integers(0, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_a_grown_mask_holds_the_old_one_and_reaches_so_far(pixels: int, seed: int) -> None:
    marked = np.where(np.random.default_rng(seed).random((30, 50)) > 0.995, 255, 0).astype(np.uint8)
    marked[15, 25] = 255
    wider = unpacked(grow_mask(packed(marked), pixels))
    reach = cv2.distanceTransform((marked == 0).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    assert (wider[marked > 0] == 255).all()
    assert (wider[reach > pixels] == 0).all()
    assert (wider[reach <= pixels] == 255).all()


@each_case("mode", ["1", "L", "RGB", "P", "LA", "RGBA", "16 bits"])
def test_white_is_what_changes_in_every_mode(mode: str) -> None:
    if mode == "16 bits":
        data = cv2.imencode(".png", drawn().astype(np.uint16) * 257)[1].tobytes()
    else:
        data = encoded(Image.fromarray(drawn()).convert(mode))
    np.testing.assert_array_equal(values(read_mask(data, SIZE)), drawn())


@each_case(
    ("data", "problem"),
    [
        (encoded(Image.new("L", SIZE, 0)), MaskProblem.EMPTY),
        (encoded(Image.new("RGBA", SIZE, (255, 255, 255, 0))), MaskProblem.EMPTY),
        (b"", MaskProblem.UNREADABLE),
        (b"no picture", MaskProblem.UNREADABLE),
        (encoded(Image.new("L", SIZE, 255))[:60], MaskProblem.UNREADABLE),
        (encoded(Image.new("L", (50, 50), 255)), MaskProblem.WRONG_RATIO),
    ],
)
def test_a_mask_that_marks_nothing_or_does_not_fit_is_refused(data: bytes, problem: MaskProblem) -> None:
    assert problem_of(read_mask, data, SIZE) is problem


def answered(plan: EditPlan) -> bytes:
    """Return an answer that repaints the new part in another tone and drifts."""
    sent = read_rgb(plan.crop)
    new = (sent != read_rgb(plan.marked)).any(axis=2)
    return Answer(np.where(new[..., None], 255 - sent, sent).astype(np.uint8), drifting(3)).data


@pytest.mark.parametrize("kind", ["RGB", "RGBA", "RGB of 16 bits"])
def test_every_pixel_of_the_picture_stays_in_the_wider_one(kind: str) -> None:
    alpha = np.full((HEIGHT, WIDTH, 1), 200, np.uint8)
    pixels: Pixels = {
        "RGB": photo(),
        "RGBA": np.concatenate([photo(), alpha], axis=2),
        "RGB of 16 bits": (photo().astype(np.uint16) * 257 - photo()).astype(np.uint16),
    }[kind]
    plan = plan_expansion(stored(pixels), Margins(left=40, right=130, bottom=60), FRAMES)
    outcome = finish_edit(plan, answered(plan))
    assert outcome.judgement.verdict == "good"
    result = composite(outcome)
    assert result.shape[:2] == (HEIGHT + 60, WIDTH + 170)
    np.testing.assert_array_equal(result[:HEIGHT, 40 : 40 + WIDTH], pixels)
    assert outcome.changed_outside == 0
    assert outcome.outside == WIDTH * HEIGHT


@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.1, 10))
@settings(max_examples=200)
def test_margins_come_to_the_ratio_evenly(width: int, height: int, ratio: float) -> None:
    sides = margins_for(width, height, ratio)
    wide, high = width + sides.left + sides.right, height + sides.top + sides.bottom
    assert min(sides.left, sides.right, sides.top, sides.bottom) >= 0
    assert wide == width or high == height
    assert abs(sides.left - sides.right) <= 1
    assert abs(sides.top - sides.bottom) <= 1
    # Half a pixel is what whole numbers cost.
    assert abs(wide - high * ratio) <= max(1.0, ratio)


def test_nothing_to_add_a_canvas_beyond_every_limit_and_bad_input_are_refused() -> None:
    picture = stored(photo())
    refused: list[tuple[bytes, Margins | float, tuple[Frame, ...], MaskProblem]] = [
        *((picture, none, FRAMES, MaskProblem.NOTHING_TO_ADD) for none in (Margins(), Margins(left=-5, right=9))),
        (picture, WIDTH / HEIGHT, FRAMES, MaskProblem.NOTHING_TO_ADD),
        (picture, Margins(left=200_000), FRAMES, MaskProblem.TOO_LARGE),
        (b"", Margins(left=9), FRAMES, MaskProblem.PICTURE_UNREADABLE),
        (picture, Margins(left=9), (), MaskProblem.NO_FRAME),
    ]
    for data, margins, offered, problem in refused:
        assert problem_of(plan_expansion, data, margins, offered) is problem


TWO_PLACES = ((slice(100, 180), slice(120, 220)), (slice(330, 420), slice(420, 540)))


def told(original: Bytes, edited: bytes) -> Drift:
    return drift(stored(original), edited)


def test_what_changed_is_marked_and_nothing_else_and_shift_zoom_and_turn_are_told() -> None:
    pixels = photo("astronaut").copy()
    for place in TWO_PLACES:
        pixels[place] = 255 - pixels[place]
    found = told(photo("astronaut"), Answer(pixels, Redrawing(shift=(5, -3), gamma=1.1, redraw=0.2)).data)
    assert found.is_comparable
    changed = values(found.changed) > 0
    truth = np.zeros((HEIGHT, WIDTH), bool)
    for place in TWO_PLACES:
        truth[place] = True
        assert changed[place].mean() > 0.9
    assert changed[~truth].mean() < 0.03
    assert found.changed_share == pytest.approx(truth.mean(), abs=0.03)
    how = Redrawing(shift=(7, -4), scale=1.04, turn_deg=0.4)
    found = told(photo("camera"), Answer(photo("camera"), how).data)
    assert found.shift_px == pytest.approx((7, -4), abs=0.2)
    assert found.scale == pytest.approx(1.04, abs=0.001)
    assert found.turn_deg == pytest.approx(0.4, abs=0.03)
    assert (found.ratio_change, found.changed_share < 0.02) == (1, True)


def test_bad_input_is_refused() -> None:
    good, area = stored(photo()), packed(rectangle(10, 10, 90, 90))
    nothing, small = packed(np.zeros((HEIGHT, WIDTH), np.uint8)), packed(np.full((9, 9), 255, np.uint8))
    assert problem_of(drift, b"", good) is problem_of(keep_only, b"", good, area) is MaskProblem.PICTURE_UNREADABLE
    assert problem_of(drift, good, b"") is problem_of(keep_only, good, b"", area) is MaskProblem.ANSWER_UNREADABLE
    assert problem_of(keep_only, good, good, nothing) is MaskProblem.EMPTY
    assert problem_of(keep_only, good, good, small) is MaskProblem.WRONG_RATIO


SIZES = st.integers(16, 3000)


def planned(pixels: np.ndarray, mask: np.ndarray, offered: tuple[Frame, ...] = FRAMES) -> EditPlan:
    plan = plan_edit(stored(pixels), packed(mask), offered)
    assert isinstance(plan, EditPlan)
    return plan


def notices(plan: EditPlan) -> set[Notice]:
    return {Notice(said.code) for said in plan.notices}


@given(st.data(), SIZES, SIZES, st.sampled_from((("1K",), ("1K", "2K", "4K"), ("4K",))))
@settings(max_examples=200)
def test_a_crop_holds_the_mask_and_has_the_frames_ratio(
    data: st.DataObject, width: int, height: int, sizes: tuple[str, ...]
) -> None:
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    mask = Box(left, top, data.draw(st.integers(1, width - left)), data.draw(st.integers(1, height - top)))
    crop = chosen_crop(mask, width, height, frames(*sizes))
    assert crop is not None
    assert crop.box.holds(mask)
    whole = Box(0, 0, width, height)
    stretch = (crop.box.width / crop.box.height) / (crop.frame.width_px / crop.frame.height_px)
    # A pixel more or less is what whole numbers cost; a whole picture may be stretched by 3 %.
    allowed = 1.5 / min(crop.box.width, crop.box.height) + (0.031 if crop.box == whole else 0)
    assert abs(np.log(stretch)) <= allowed
    if crop.box.width <= width and crop.box.height <= height:
        assert whole.holds(crop.box)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(8, 300), st.integers(8, 300))
@settings(max_examples=100)
def test_a_mask_has_no_holes_in_the_frame(left: int, top: int, width: int, height: int) -> None:
    mask = np.zeros((100, 100), np.uint8)
    mask[top:, left:] = 1
    seen = in_frame(mask, Box(0, 0, 100, 100), (width, height))
    first_row, first_column = np.argmax(seen[:, -1] > 0), np.argmax(seen[-1] > 0)
    assert (seen[first_row:, first_column:] == 255).all()
    assert not seen[:first_row].any()
    assert not seen[:, :first_column].any()
    assert abs(first_row - top * height / 100) <= 1
    assert abs(first_column - left * width / 100) <= 1


def test_the_marked_copy_differs_in_the_area_alone() -> None:
    plan = planned(photo(), rectangle(300, 250, 340, 290))
    differs = (read_rgb(plan.crop) != read_rgb(plan.marked)).any(axis=2)
    scale = plan.frame.width_px / plan.box.width
    rows, columns = np.nonzero(differs)
    assert abs(columns.min() - (300 - plan.box.left) * scale) <= 4
    assert abs(rows.max() + 1 - (290 - plan.box.top) * scale) <= 4
    assert differs[rows.min() + 4 : rows.max() - 3, columns.min() + 4 : columns.max() - 3].all()


@pytest.mark.parametrize(("colour", "not_named"), [((255, 0, 255), "magenta"), ((0, 255, 255), "cyan")])
def test_the_marker_is_a_colour_the_picture_lacks(colour: tuple[int, int, int], not_named: str) -> None:
    pixels = np.full((400, 400, 3), colour, np.uint8)
    assert planned(pixels, rectangle(100, 100, 200, 200, (400, 400))).marker != not_named


def test_a_larger_frame_is_asked_for_where_it_helps_and_a_loss_is_said_before_paying() -> None:
    picture, size = np.full((2000, 2000), 90, np.uint8), (2000, 2000)
    small, every = frames("1K"), frames("1K", "2K", "4K")
    assert planned(picture, rectangle(400, 400, 1000, 1000, size), every).frame.size == "1K"
    assert planned(picture, rectangle(300, 300, 1100, 1100, size), every).frame.size == "2K"
    softer = planned(picture, rectangle(200, 200, 1800, 1800, size), small)
    (said,) = [said for said in softer.notices if said.code == Notice.SOFTER]
    assert said.parameters == {"factor": round(2000 / 1024, 2)}
    apart = rectangle(40, 40, 120, 120, size) | rectangle(1850, 1850, 1950, 1950, size)
    at_once = planned(picture, apart, small)
    assert at_once.box.holds(Box(40, 40, 1910, 1910))
    assert Notice.AREAS_FAR_APART in notices(at_once)
    assert Notice.AREAS_FAR_APART not in notices(planned(picture, apart, every))
    whole = planned(photo(), np.full((HEIGHT, WIDTH), 255, np.uint8))
    assert Notice.COVERS_ALL in notices(whole)
    assert whole.box.holds(Box(0, 0, WIDTH, HEIGHT))


@each_case(
    ("picture", "mask", "offered", "problem"),
    [
        (png(photo()), packed(np.zeros((HEIGHT, WIDTH), np.uint8)), FRAMES, MaskProblem.EMPTY),
        (png(photo()), packed(np.full((HEIGHT, HEIGHT), 255, np.uint8)), FRAMES, MaskProblem.WRONG_RATIO),
        (png(photo()), packed(rectangle(1, 1, 9, 9)), (), MaskProblem.NO_FRAME),
        (b"no picture", Mask(4, 4, b""), FRAMES, MaskProblem.PICTURE_UNREADABLE),
    ],
)
def test_what_cannot_be_planned_is_refused(
    picture: bytes, mask: Mask, offered: tuple[Frame, ...], problem: MaskProblem
) -> None:
    assert problem_of(plan_edit, picture, mask, offered) is problem


MIDDLE = rectangle(250, 200, 370, 310)


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
KINDS = {
    "RGB": photo(),
    "grey": np.ascontiguousarray(photo()[..., 1]),
    "RGBA": with_alpha(HOLEY),
    "RGBA with colours under full transparency": with_alpha(np.where(HOLEY < 255, 0, HOLEY)),
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
    outcome = finish_edit(edit.plan, edit.answer(drifting(1)).data)
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
    outcome = finish_edit(edit.plan, png(truth))
    assert outcome.judgement.verdict == "good"
    result, original = composite(outcome).astype(int), edit.pixels.astype(int)
    assert not (result != original).any(axis=2)[mask == 0].any()
    edges = np.ones(mask.shape, bool)
    edges[1:-1, 1:-1] = False
    deep = cv2.erode(mask, np.ones((25, 25), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=255) > 0
    assert (deep & edges).any()
    assert np.median(np.abs(result - (255 - original)).max(axis=2)[deep & edges]) < 12


def test_an_answer_that_fills_everything_is_taken_as_it_is() -> None:
    edit = scene(photo(), np.full((HEIGHT, WIDTH), 255, np.uint8))
    other = photograph("rocket", edit.plan.frame.width_px, edit.plan.frame.height_px)
    outcome = finish_edit(edit.plan, png(other))
    assert (outcome.judgement.verdict, outcome.judgement.reason) == ("good", Reason.COVERS_ALL)
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
    outcome = finish_edit(edit.plan, edit.answer(drifting(seed)).data)
    if outcome.composite is None:
        assert outcome.judgement.verdict == "refused"
    else:
        assert not differs(composite(outcome), edit.pixels)[mask == 0].any()


@each_case("seed", range(3))
def test_a_drifted_genuine_answer_is_accepted_and_laid_back_to_a_fraction_of_a_pixel(seed: int) -> None:
    edit = middle()
    answer = edit.answer(drifting(seed))
    outcome = finish_edit(edit.plan, answer.data)
    assert outcome.judgement.verdict == "good"
    assert outcome.placement is not None
    assert not outcome.placement.bends
    matrix = overlay.fit_of(outcome.placement, outcome.judgement).matrix
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
        outcome = finish_edit(edit.plan, jpeg(answer, 90))
        assert (outcome.judgement.verdict, outcome.judgement.reason) == ("refused", reason), how
        assert outcome.composite is None
    assert problem_of(finish_edit, edit.plan, b"no picture") is MaskProblem.ANSWER_UNREADABLE


def test_a_plain_sky_whose_grain_was_drawn_anew_is_not_another_picture_but_a_photograph_is() -> None:
    outcome, judgement = over_a_sky(0), instead_of_a_sky(0).judgement
    assert outcome.judgement.verdict != "refused"
    assert outcome.changed_outside == 0
    assert (judgement.verdict, judgement.reason) == ("refused", Reason.ANOTHER_PICTURE)


def test_where_little_can_be_told_a_person_is_asked_with_before_and_after() -> None:
    flat = np.full((HEIGHT, WIDTH, 3), 140, np.uint8)
    edit = scene(flat, MIDDLE)
    outcome = finish_edit(edit.plan, edit.answer().data)
    assert (outcome.judgement.verdict, outcome.judgement.reason) == ("unsure", Reason.LITTLE_TO_ALIGN_BY)
    assert opened(outcome.before).size == opened(outcome.after).size
    assert opened(outcome.before).tobytes() != opened(outcome.after).tobytes()
    assert outcome.changed_outside == 0


def test_a_wobbling_answer_is_bent_back() -> None:
    edit = middle()
    answer = edit.answer(Redrawing(wobble_px=1.5, wobble_length_px=110, redraw=0.3, seed=4))
    outcome = finish_edit(edit.plan, answer.data)
    assert outcome.placement is not None
    assert outcome.placement.bends
    fit = overlay.fit_of(outcome.placement, outcome.judgement)
    x, y = alignment.places(fit.matrix, edit.area().shape, fit.bends)
    border = cv2.morphologyEx(edit.area(), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
    points = points_of(border)
    straight = np.median(missed(answer, points @ fit.matrix[:, :2].T + fit.matrix[:, 2], points))
    assert np.median(missed(answer, np.stack([x[border], y[border]], axis=1), points)) < min(0.5 * straight, 0.6)


def test_a_change_beyond_the_mask_is_told_and_not_written_and_a_mask_beyond_what_was_sent_is_refused() -> None:
    edit = middle()
    outcome = finish_edit(edit.plan, edit.answer(dataclasses.replace(drifting(6), bleed_px=24)).data)
    assert Notice.SPILLS in {said.code for said in outcome.notices}
    needed = 24 * edit.plan.box.width / edit.plan.frame.width_px
    assert needed - 4 <= outcome.spill_px <= needed + 12
    assert (values(outcome.grown_mask) >= MIDDLE).all()
    assert outcome.changed_outside == 0
    edit = scene(photo(), rectangle(20, 20, 60, 60))
    answer = edit.answer().data
    first = finish_edit(edit.plan, answer)
    assert first.placement is not None
    wider = packed(rectangle(20, 20, WIDTH, HEIGHT))
    refused = problem_of(regrow, edit.plan.original, answer, wider, first.placement, first.judgement)
    assert refused is MaskProblem.BEYOND_THE_ANSWER


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
