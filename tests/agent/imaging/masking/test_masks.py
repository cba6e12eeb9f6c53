"""Masks, pictures made wider, and what an edit changed beside what was asked."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.adapters.masks import (
    Drift,
    EditPlan,
    Margins,
    Mask,
    MaskProblem,
    MaskRefusal,
    Verdict,
    drift,
    finish_edit,
    grow_mask,
    invert_mask,
    keep_only,
    margins_for,
    packed,
    plan_expansion,
    read_mask,
    unpacked,
)
from tests.adapters.pixels import read_rgb
from tests.bench.masking_simulator import Answer, Bytes, Redrawing, drifting, frames
from tests.support.cases import each_case
from tests.support.masking_scenes import (
    FRAMES,
    HEIGHT,
    WIDTH,
    Pixels,
    composite,
    done,
    photo,
    rectangle,
    stored,
    values,
)
from tests.support.pixels import encoded

SIZE = (60, 40)


def drawn() -> NDArray[np.uint8]:
    values = np.zeros((SIZE[1], SIZE[0]), np.uint8)
    values[10:25, 20:45] = 255
    return values


def values_of(mask: Mask | MaskRefusal) -> NDArray[np.uint8]:
    assert isinstance(mask, Mask)
    return unpacked(mask)


@each_case("colour", [(255, 255, 255), (0, 0, 0), (230, 40, 90)])
def test_of_a_painters_layer_the_strokes_count_whatever_their_colour(colour: tuple[int, int, int]) -> None:
    layer = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    layer.paste((*colour, 255), (20, 10, 45, 25))
    np.testing.assert_array_equal(values_of(read_mask(encoded(layer), SIZE)), drawn())


def test_a_mask_of_another_size_is_scaled_if_its_ratio_is_off_by_two_per_cent_at_most() -> None:
    larger = Image.fromarray(drawn()).resize((180, 120), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(values_of(read_mask(encoded(larger), SIZE)), drawn())
    for width, is_fitting in ((1000, True), (1019, True), (1021, False), (982, True), (979, False)):
        read = read_mask(encoded(Image.new("L", (width, 1000), 255)), (500, 500))
        assert isinstance(read, Mask) is is_fitting
    stroke = np.zeros((400, 600), np.uint8)
    stroke[:, 301] = 255
    thin = values_of(read_mask(encoded(Image.fromarray(stroke)), SIZE))
    assert (thin[:, 30] == 255).all()
    assert int((thin > 0).sum()) == SIZE[1]


@given(st.integers(0, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_a_grown_mask_holds_the_old_one_and_reaches_so_far(pixels: int, seed: int) -> None:
    values = np.where(np.random.default_rng(seed).random((30, 50)) > 0.995, 255, 0).astype(np.uint8)
    values[15, 25] = 255
    wider = unpacked(grow_mask(packed(values), pixels))
    reach = cv2.distanceTransform((values == 0).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    assert (wider[values > 0] == 255).all()
    assert (wider[reach > pixels] == 0).all()
    assert (wider[reach <= pixels] == 255).all()


@each_case("mode", ["1", "L", "RGB", "P", "LA", "RGBA", "16 bits"])
def test_white_is_what_changes_in_every_mode(mode: str) -> None:
    if mode == "16 bits":
        data = cv2.imencode(".png", drawn().astype(np.uint16) * 257)[1].tobytes()
    else:
        data = encoded(Image.fromarray(drawn()).convert(mode))
    np.testing.assert_array_equal(values_of(read_mask(data, SIZE)), drawn())


def test_an_inverted_mask_marks_all_the_rest() -> None:
    np.testing.assert_array_equal(values_of(invert_mask(packed(drawn()))), 255 - drawn())
    assert invert_mask(packed(np.full((4, 4), 255, np.uint8))) == MaskRefusal(MaskProblem.EMPTY)


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
    refused = read_mask(data, SIZE)
    assert isinstance(refused, MaskRefusal)
    assert refused.problem is problem
    sizes = {"mask_width": 50, "mask_height": 50, "width": 60, "height": 40}
    assert problem is not MaskProblem.WRONG_RATIO or refused.parameters == sizes


def planned(pixels: Pixels, margins: Margins | float) -> EditPlan:
    plan = plan_expansion(stored(pixels), margins, FRAMES)
    assert isinstance(plan, EditPlan)
    return plan


def refused(plan: EditPlan | MaskRefusal) -> MaskProblem:
    assert isinstance(plan, MaskRefusal)
    return plan.problem


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
    plan = planned(pixels, Margins(left=40, right=130, bottom=60))
    outcome = done(finish_edit(plan, answered(plan)))
    assert outcome.judgement.verdict is Verdict.GOOD
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
    nothing: tuple[Margins | float, ...] = (Margins(), Margins(left=-5, right=9), WIDTH / HEIGHT)
    for margins in nothing:
        assert refused(plan_expansion(stored(photo()), margins, FRAMES)) is MaskProblem.NOTHING_TO_ADD
    assert refused(plan_expansion(stored(photo()), Margins(left=200_000), FRAMES)) is MaskProblem.TOO_LARGE
    assert refused(plan_expansion(b"", Margins(left=9), frames("1K"))) is MaskProblem.PICTURE_UNREADABLE
    assert refused(plan_expansion(stored(photo()), Margins(left=9), ())) is MaskProblem.NO_FRAME


TWO_PLACES = ((slice(100, 180), slice(120, 220)), (slice(330, 420), slice(420, 540)))


def with_changes() -> Bytes:
    pixels = photo("astronaut").copy()
    for place in TWO_PLACES:
        pixels[place] = 255 - pixels[place]
    return pixels


def told(original: Bytes, edited: bytes) -> Drift:
    found = drift(stored(original), edited)
    assert isinstance(found, Drift)
    return found


def test_what_changed_is_marked_and_nothing_else_and_shift_zoom_and_turn_are_told() -> None:
    found = told(photo("astronaut"), Answer(with_changes(), Redrawing(shift=(5, -3), gamma=1.1, redraw=0.2)).data)
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


def test_one_change_is_kept_and_the_other_undone() -> None:
    original = photo("astronaut")
    edited = Answer(with_changes(), Redrawing(shift=(4, 2), gain=(1.05, 1.0, 0.96), redraw=0.2)).data
    area = rectangle(400, 310, 560, 440)
    outcome = done(keep_only(stored(original), edited, packed(area)))
    assert outcome.judgement.verdict is Verdict.GOOD
    assert outcome.changed_outside == 0
    result = composite(outcome).astype(int)
    np.testing.assert_array_equal(result[area == 0], original[area == 0])
    kept = TWO_PLACES[1]
    assert np.median(np.abs(result - with_changes())[kept]) < 12


def test_bad_input_is_refused() -> None:
    good, area = stored(photo()), packed(rectangle(10, 10, 90, 90))
    assert drift(b"", good) == keep_only(b"", good, area) == MaskRefusal(MaskProblem.PICTURE_UNREADABLE)
    assert drift(good, b"") == keep_only(good, b"", area) == MaskRefusal(MaskProblem.ANSWER_UNREADABLE)
    assert keep_only(good, good, packed(np.zeros((HEIGHT, WIDTH), np.uint8))) == MaskRefusal(MaskProblem.EMPTY)
    refused = keep_only(good, good, packed(np.full((9, 9), 255, np.uint8)))
    assert isinstance(refused, MaskRefusal)
    assert refused.problem is MaskProblem.WRONG_RATIO
