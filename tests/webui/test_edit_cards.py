"""Under an edit: what did not change outside its mask, whether it was pasted, and what can be done about it."""

from __future__ import annotations

from typing import Any

from agent.pictures import DriftRecord, EditNotice, EditRecord, Picture
from tests.support.page_values import PLAN, VIEW, image, picture
from webui.edit_cards import edit_lines
from webui.plan_cards import open_plan


def edited(**changes: Any) -> Picture:
    """Return a picture of a masked edit that is good, but for the changes."""
    fields = {"kind": "mask", "verdict": "good", "reason": "same_picture", "base": image("#1"), "mask": image("")}
    fields |= {"raw": image(""), "changed_outside": 0, "outside": 9_437_184} | changes
    return picture("#1b").model_copy(update={"edit": EditRecord.model_validate(fields)})


def drifted(**changes: Any) -> Picture:
    fields = {"base": "#1", "is_comparable": True, "changed": image(""), "changed_share": 0.34} | changes
    return picture("#1b").model_copy(update={"drift": DriftRecord.model_validate(fields)})


def test_a_picture_that_is_no_edit_says_nothing() -> None:
    assert edit_lines(VIEW, picture("#1")) == ""


def test_a_masked_edit_counts_the_pixels_that_changed_outside() -> None:
    shown = edit_lines(VIEW, edited())
    assert "0 of 9,437,184 pixels changed outside the mask" in shown
    assert "data-act" not in shown


def test_an_unsure_edit_asks_to_be_kept_or_discarded() -> None:
    shown = edit_lines(VIEW, edited(verdict="unsure"))
    assert 'data-act="keep_edit"' in shown
    assert 'data-act="discard_edit"' in shown
    assert 'data-act="compare" data-arg="#1b"' in shown
    kept = edit_lines(VIEW, edited(verdict="unsure", is_kept=True))
    assert "data-act" not in kept


def test_a_discarded_edit_can_be_kept_after_all() -> None:
    shown = edit_lines(VIEW, edited(verdict="unsure", is_kept=False))
    assert "Discarded" in shown
    assert 'data-act="keep_edit"' in shown


def test_a_refused_answer_says_that_nothing_was_pasted() -> None:
    shown = edit_lines(VIEW, edited(verdict="refused", spill_px=9, grown_mask=image("")))
    assert "nothing was pasted" in shown
    assert "grow_mask" not in shown


def test_a_change_beyond_the_mask_offers_to_grow_it() -> None:
    notices = (EditNotice(code="spills"), EditNotice(code="softer"))
    shown = edit_lines(VIEW, edited(spill_px=9, grown_mask=image(""), notices=notices))
    assert "wanted to change about 9 pixels more, past the mask’s edge. They were left as they were; grow" in shown
    assert 'data-act="grow_mask" data-arg="#1b"' in shown
    assert shown.count("the mask’s edge") == 1
    assert "softer than the rest" in shown


def test_an_edit_without_a_mask_tells_what_changed_and_offers_to_keep_only_that() -> None:
    shown = edit_lines(VIEW, drifted(shift_px=(3.2, -1.0), scale=1.012))
    assert "34% of #1 changed." in shown
    assert "moved by 3.2 pixels, zoom 1.012" in shown
    assert 'data-act="keep_only" data-arg="#1b"' in shown


def test_an_edit_that_stayed_in_place_tells_of_no_drift() -> None:
    assert "moved" not in edit_lines(VIEW, drifted(shift_px=(0.1, 0.0), scale=1.0004))


def test_another_picture_cannot_be_laid_over_the_first() -> None:
    shown = edit_lines(VIEW, drifted(is_comparable=False, changed_share=1.0))
    assert "another picture than #1" in shown
    assert "keep_only" not in shown


def test_a_plan_tells_what_should_be_known_before_it_is_paid_for() -> None:
    shown = open_plan(VIEW, [PLAN.model_copy(update={"notices": ("little_to_align_by",)})], "t1")
    assert "Too little of the picture stays free" in shown
    assert "edit-line" not in open_plan(VIEW, [PLAN], "t1")


def test_what_changed_is_not_counted_over_a_picture_of_another_shape() -> None:
    shown = edit_lines(VIEW, drifted(changed_share=0.05, ratio_change=1.21))
    assert "5%" not in shown
    assert "the shape is another" in shown
    assert "keep_only" not in shown
