from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.adapters.language import Adjustment, CropBox, CropRatio, Flip
from tests.support.cases import each_case
from tests.support.tables import table

amounts = st.integers(-100, 100)
ratios = st.builds(
    CropRatio, width=st.integers(1, 100), height=st.integers(1, 100), across=st.floats(0, 1), down=st.floats(0, 1)
)
halves = st.integers(0, 50)
boxes = st.builds(
    lambda left, top, right, bottom: CropBox(
        left=left / 100, top=top / 100, right=(51 + right) / 101, bottom=(51 + bottom) / 101
    ),
    *(halves,) * 4,
)
adjustments = st.builds(
    Adjustment,
    brightness=amounts,
    contrast=amounts,
    saturation=amounts,
    warmth=amounts,
    sharpness=amounts,
    crop=st.none() | ratios | boxes,
    rotate=st.floats(-720, 720),
    flip=st.none() | st.sampled_from(Flip),
)


@settings(deadline=None)
@given(adjustments)
def test_it_survives_json_exactly(adjustment: Adjustment) -> None:
    assert Adjustment.model_validate_json(adjustment.model_dump_json()) == adjustment
    assert Adjustment.model_validate(json.loads(adjustment.model_dump_json())) == adjustment


def test_crops_within_crops_survive_json() -> None:
    both = Adjustment(crop=CropBox(right=0.5)).combine(Adjustment.model_validate({"crop": "4:5"}))
    assert both.crop == CropRatio(width=4, height=5, within=CropBox(right=0.5))
    assert Adjustment.model_validate_json(both.model_dump_json()) == both


def test_nothing_said_is_nothing_done() -> None:
    assert Adjustment().is_identity
    assert Adjustment(rotate=360).is_identity
    assert not any(
        Adjustment.model_validate(one).is_identity
        for one in ({"brightness": 1}, {"sharpness": -1}, {"crop": "1:1"}, {"rotate": 0.5}, {"flip": "vertical"})
    )


@each_case(
    "wrong",
    table("adjustments")["without_meaning"],
)
def test_what_has_no_meaning_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Adjustment.model_validate(wrong)


@pytest.mark.parametrize("written", ["16:9", " 16 : 9 ", "16x9", "16×9", "16：9"])
def test_a_ratio_may_be_written_as_people_write_it(written: str) -> None:
    crop = Adjustment.model_validate({"crop": written}).crop
    assert crop == CropRatio(width=16, height=9)
    assert isinstance(crop, CropRatio)
    assert crop.text == "16:9"


@each_case(("said", "kept"), [(0, 0), (180, 180), (-180, 180), (270, -90), (450, 90), (-450, -90)])
def test_a_turn_is_kept_between_half_a_turn_each_way(said: float, kept: float) -> None:
    assert Adjustment(rotate=said).rotate == kept


def test_amounts_add_up_within_their_limits() -> None:
    both = Adjustment(brightness=70, contrast=-20, warmth=-90).combine(
        Adjustment(brightness=60, contrast=20, warmth=-20, sharpness=5)
    )
    assert both == Adjustment(brightness=100, warmth=-100, sharpness=5)


@settings(deadline=None)
@given(adjustments)
def test_nothing_before_or_after_changes_nothing(adjustment: Adjustment) -> None:
    assert Adjustment().combine(adjustment) == adjustment
    turnless = adjustment.model_copy(update={"rotate": 0.0})
    assert turnless.combine(Adjustment()) == turnless


def test_a_mirror_turns_a_later_turn_about() -> None:
    both = Adjustment(flip=Flip.HORIZONTAL).combine(Adjustment(rotate=90))
    assert both == Adjustment(rotate=-90, flip=Flip.HORIZONTAL)


def test_two_mirrors_are_half_a_turn_and_twice_the_same_is_none() -> None:
    horizontal, vertical = Adjustment(flip=Flip.HORIZONTAL), Adjustment(flip=Flip.VERTICAL)
    assert horizontal.combine(vertical) == Adjustment(rotate=180)
    assert horizontal.combine(horizontal).is_identity


def test_a_crop_goes_along_with_a_turn() -> None:
    turned = Adjustment(crop=CropBox(right=0.25, bottom=0.5)).combine(Adjustment(rotate=90))
    assert turned.crop == CropBox(left=0.5, top=0, right=1, bottom=0.25)
    assert Adjustment.model_validate({"crop": "16:9"}).combine(Adjustment(rotate=-90)).crop == CropRatio(
        width=9, height=16
    )


def test_the_same_ratio_once_more_cuts_nothing() -> None:
    square = Adjustment.model_validate({"crop": "1:1"})
    assert square.combine(square) == square


def test_crops_without_end_are_refused() -> None:
    adjustment = Adjustment()
    for _ in range(16):
        adjustment = adjustment.combine(Adjustment(crop=CropBox(right=0.9)))
    with pytest.raises(ValueError, match="at most 16 crops"):
        adjustment.combine(Adjustment(crop=CropBox(right=0.9)))
