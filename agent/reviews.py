"""What a look at a finished picture found: what of the person's own words is in it, and what is not."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from agent.messages import Value

PASS_SCORE = 0.7

# The first records hold checks of the studio's own; the page has a name for each under `check.<name>`.
Check = Literal["aspect_ratio", "size", "caption", "mask"]


class AskedKind(StrEnum):
    """What a part of a request is about. The page has a word for each under `asked.<kind>`."""

    SUBJECT = "subject"
    COUNT = "count"
    ATTRIBUTE = "attribute"
    TEXT = "text"
    STYLE = "style"
    ABSENT = "absent"


class AskedItem(Value):
    """One thing that can be looked for in a picture: the person's own words for it, letter for letter.

    Of `text` the picture must read exactly that; what is `absent` must not be seen.
    """

    quote: str
    kind: AskedKind


class ChecklistItem(Value):
    """One thing the person asked for (`wish`, in their words) and what is seen of it (`why`).

    `is_met` is None for what nobody looked at. `check` names a check of the studio's own, in the first records.
    """

    wish: str
    is_met: bool | None
    why: str = ""
    kind: AskedKind | None = None
    check: Check | None = None


class Review(Value):
    """What was found. A `score` of None means that nobody looked: the picture passes unreviewed.

    `score`, from 0 to 1, is the reviewer's own judgement: attempts are compared by it, and it is shown to nobody.
    `lettering` is what the text in the picture actually reads; `feedback` one sentence; `suggestions` what to change
    in the prompt. `model_label` is who looked; it is empty where no model did.
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

    @property
    def looked_at(self) -> tuple[ChecklistItem, ...]:
        """What was asked for and looked at."""
        return tuple(item for item in self.checklist if item.is_met is not None)

    @property
    def has_shortcomings(self) -> bool:
        """Whether something that was asked for is not there, or the reviewer would send the picture back."""
        return not self.has_passed or any(item.is_met is False for item in self.checklist)
