"""Masked editing on a model without a mask: exact outside, aligned and blended inside, refused when it does not fit.

Everything here takes and gives plain values and may be kept or sent; the pixel libraries load with the first call.
Each call computes for up to a few seconds: run it in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.imaging.masking.values import (
    DEFAULT_FEATHER_PX,
    AlignedAnswer,
    Box,
    Drift,
    EditOutcome,
    EditPlan,
    Frame,
    Judgement,
    Margins,
    Mask,
    MaskProblem,
    MaskRefusal,
    Notice,
    Reason,
    Said,
    Verdict,
)

__all__ = [
    "DEFAULT_FEATHER_PX",
    "AlignedAnswer",
    "Box",
    "Drift",
    "EditOutcome",
    "EditPlan",
    "Frame",
    "Judgement",
    "Margins",
    "Mask",
    "MaskProblem",
    "MaskRefusal",
    "Notice",
    "Reason",
    "Said",
    "Verdict",
    "drift",
    "finish_edit",
    "grow_mask",
    "keep_only",
    "plan_edit",
    "plan_expansion",
    "read_mask",
    "regrow",
]


def read_mask(data: bytes, size: tuple[int, int]) -> Mask | MaskRefusal:
    """Return the mask of a picture of this size (width, height); see `masks.read_mask`."""
    from agent.imaging.masking import masks

    return masks.read_mask(data, size)


def grow_mask(mask: Mask, pixels: int) -> Mask:
    """Return the mask with its border so many pixels further out."""
    from agent.imaging.masking import masks

    return masks.grown(mask, pixels)


def plan_edit(
    original: bytes,
    mask: Mask,
    frames: Sequence[Frame],
    feather_px: float = DEFAULT_FEATHER_PX,
    *,
    is_in_place: bool = False,
) -> EditPlan | MaskRefusal:
    """Return what to send for changing what the mask marks; see `edits.plan_edit`."""
    from agent.imaging.masking import edits

    return edits.plan_edit(original, mask, frames, feather_px, is_in_place=is_in_place)


def finish_edit(plan: EditPlan, answer: bytes) -> EditOutcome | MaskRefusal:
    """Return what came of the model's answer; see `edits.finish_edit`."""
    from agent.imaging.masking import edits

    return edits.finish_edit(plan, answer)


def regrow(plan: EditPlan, aligned: AlignedAnswer, mask: Mask) -> EditOutcome | MaskRefusal:
    """Return the same answer under another mask, without a new request; see `edits.regrow`."""
    from agent.imaging.masking import edits

    return edits.regrow(plan, aligned, mask)


def plan_expansion(
    original: bytes, margins: Margins | float, frames: Sequence[Frame], feather_px: float = DEFAULT_FEATHER_PX
) -> EditPlan | MaskRefusal:
    """Return what to send for a wider picture; see `edits.plan_expansion`."""
    from agent.imaging.masking import edits

    return edits.plan_expansion(original, margins, frames, feather_px)


def drift(original: bytes, edited: bytes) -> Drift | MaskRefusal:
    """Return what an edit without a mask did to a picture; see `edits.drift`."""
    from agent.imaging.masking import edits

    return edits.drift(original, edited)


def keep_only(
    original: bytes, edited: bytes, area: Mask, feather_px: float = DEFAULT_FEATHER_PX
) -> EditOutcome | MaskRefusal:
    """Return the original with the edited picture in this area alone; see `edits.keep_only`."""
    from agent.imaging.masking import edits

    return edits.keep_only(original, edited, area, feather_px)
