from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.masks import (
    EditPlan,
    Margins,
    MaskProblem,
    MaskRefusal,
    Verdict,
    finish_edit,
    margins_for,
    plan_expansion,
)
from tests.adapters.pixels import read_rgb
from tests.bench.masking_simulator import Answer, drifting, frames
from tests.support.masking_scenes import FRAMES, HEIGHT, WIDTH, Pixels, composite, done, photo, stored


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
