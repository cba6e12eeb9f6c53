"""Masks, and what comes of an answer inside one."""

from __future__ import annotations

from agent import Margins
from agent.imaging.masking import (
    Box,
    Drift,
    EditOutcome,
    EditPlan,
    Frame,
    Mask,
    MaskProblem,
    MaskRefused,
    Notice,
    Reason,
    alignment,
    drift,
    finish_edit,
    grow_mask,
    keep_only,
    overlay,
    plan_edit,
    plan_expansion,
    read_mask,
    regrow,
)
from agent.imaging.masking.crops import chosen_crop, in_frame
from agent.imaging.masking.edits import margins_for
from agent.imaging.masking.masks import packed, unpacked
