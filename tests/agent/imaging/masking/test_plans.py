from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.masks import (
    Box,
    EditPlan,
    Frame,
    Mask,
    MaskProblem,
    MaskRefusal,
    Notice,
    chosen_crop,
    in_frame,
    packed,
    plan_edit,
)
from tests.adapters.pixels import read_rgb
from tests.bench.masking_simulator import frames, png
from tests.support.cases import each_case
from tests.support.masking_scenes import FRAMES, HEIGHT, WIDTH, photo, rectangle, stored

SIZES = st.integers(16, 3000)
BY_SIZE = (("1K",), ("1K", "2K", "4K"), ("4K",))


def planned(pixels: np.ndarray, mask: np.ndarray, offered: tuple[Frame, ...] = FRAMES) -> EditPlan:
    plan = plan_edit(stored(pixels), packed(mask), offered)
    assert isinstance(plan, EditPlan)
    return plan


def notices(plan: EditPlan) -> set[Notice]:
    return {said.notice for said in plan.notices}


@given(st.data(), SIZES, SIZES, st.sampled_from(BY_SIZE))
@settings(max_examples=200, deadline=None)
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
@settings(max_examples=100, deadline=None)
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
    (said,) = [said for said in softer.notices if said.notice is Notice.SOFTER]
    assert said.parameters == {"factor": round(2000 / 1024, 2)}
    apart = rectangle(40, 40, 120, 120, size) | rectangle(1850, 1850, 1950, 1950, size)
    at_once = planned(picture, apart, small)
    assert at_once.box.holds(Box(40, 40, 1910, 1910))
    assert Notice.AREAS_FAR_APART in notices(at_once)
    assert Notice.AREAS_FAR_APART not in notices(planned(picture, apart, every))
    whole = planned(photo(), np.full((HEIGHT, WIDTH), 255, np.uint8))
    assert (whole.covers_all, Notice.COVERS_ALL in notices(whole)) == (True, True)
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
    refused = plan_edit(picture, mask, offered)
    assert isinstance(refused, MaskRefusal)
    assert refused.problem is problem
