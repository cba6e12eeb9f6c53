from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.adapters.language import Adjustment, AdjustmentChange, ChangeKind, CropBox, CropRatio, Flip, describe
from tests.support.cases import each_case
from tests.support.tables import table


@each_case("wrong", table("adjustments")["without_meaning"])
def test_what_has_no_meaning_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Adjustment.model_validate(wrong)


def test_a_ratio_may_be_written_as_people_write_it_and_crops_without_end_are_refused() -> None:
    for written in ("16:9", " 16 : 9 ", "16x9", "16×9", "16：9"):
        crop = Adjustment.model_validate({"crop": written}).crop
        assert isinstance(crop, CropRatio)
        assert (crop, crop.text) == (CropRatio(width=16, height=9), "16:9")
    adjustment, narrower = Adjustment(), Adjustment(crop=CropBox(right=0.9))
    for _ in range(16):
        adjustment = adjustment.combine(narrower)
    with pytest.raises(ValueError, match="at most 16 crops"):
        adjustment.combine(narrower)


def test_every_part_is_told_in_a_fixed_order_and_of_several_crops_the_last() -> None:
    frame: dict[str, object] = {"crop": "16:9", "flip": "horizontal", "rotate": -90}
    tones = {"sharpness": -5, "warmth": 15, "saturation": -40, "contrast": 60, "brightness": -30}
    assert describe(Adjustment.model_validate({**frame, **tones})) == (
        AdjustmentChange(kind=ChangeKind.DARKER, amount=30),
        AdjustmentChange(kind=ChangeKind.MORE_CONTRAST, amount=60),
        AdjustmentChange(kind=ChangeKind.LESS_SATURATION, amount=40),
        AdjustmentChange(kind=ChangeKind.WARMER, amount=15),
        AdjustmentChange(kind=ChangeKind.SOFTER, amount=5),
        AdjustmentChange(kind=ChangeKind.TURNED_LEFT, amount=90),
        AdjustmentChange(kind=ChangeKind.FLIPPED_HORIZONTALLY),
        AdjustmentChange(kind=ChangeKind.CROPPED_TO_RATIO, ratio="16:9"),
    )
    assert describe(Adjustment()) == ()
    assert describe(Adjustment(saturation=-100)) == (AdjustmentChange(kind=ChangeKind.BLACK_AND_WHITE),)
    both = Adjustment.model_validate({"crop": "1:1"}).combine(Adjustment(crop=CropBox(right=0.5)))
    assert [change.kind for change in describe(both)] == [ChangeKind.CROPPED]


@settings(deadline=None)
@given(
    st.builds(
        Adjustment,
        brightness=st.integers(-100, 100),
        saturation=st.integers(-100, 100),
        rotate=st.floats(-360, 360),
        flip=st.none() | st.sampled_from(Flip),
    )
)
def test_amounts_are_never_negative_and_each_kind_is_told_once(adjustment: Adjustment) -> None:
    changes = describe(adjustment)
    assert all(change.amount >= 0 for change in changes)
    assert len({change.kind for change in changes}) == len(changes)
    assert (changes == ()) == adjustment.is_identity
