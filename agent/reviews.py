"""What a look at a finished picture found: how well it is what the person asked for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agent.messages import Value

PASS_SCORE = 0.7

# What the studio itself can check without a model; the page has a name for each under `check.<name>`.
Check = Literal["aspect_ratio", "size", "caption", "mask"]


class ChecklistItem(Value):
    """One thing the person asked for: met or not, and why. `check` names one of the studio's own."""

    wish: str
    is_met: bool
    why: str = ""
    check: Check | None = None


class Review(Value):
    """What was found. A `score` of None means that nobody could look: the picture passes unreviewed.

    `lettering` is what the text in the picture actually reads; `feedback` one sentence; `suggestions` what to change
    in the prompt. `model_label` is who looked, empty for the studio's own checks.
    """

    score: float | None = Field(default=None, ge=0, le=1)
    checklist: tuple[ChecklistItem, ...] = ()
    lettering: str = ""
    feedback: str = ""
    suggestions: tuple[str, ...] = ()
    model_label: str = ""

    @property
    def has_passed(self) -> bool:
        """Whether the picture is good enough, or nobody could say otherwise."""
        return self.score is None or self.score >= PASS_SCORE

    @property
    def rank(self) -> float:
        """By which attempts are compared: an unreviewed picture counts as one that just passes."""
        return PASS_SCORE if self.score is None else self.score
