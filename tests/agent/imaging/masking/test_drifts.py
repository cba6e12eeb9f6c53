from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.masks import Drift, MaskProblem, MaskRefusal, Verdict, drift, keep_only, packed
from tests.bench.masking_simulator import Answer, Bytes, Redrawing
from tests.support.masking_scenes import HEIGHT, WIDTH, composite, done, photo, rectangle, stored, values

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
