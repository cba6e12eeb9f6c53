"""What goes in and out of a masked edit: plain values of numbers and bytes, which can be kept, sent and compared.

No pixel library is needed to hold them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.pictures import EditNotice, Judgement, Placement

DEFAULT_FEATHER_PX = 8.0


class MaskProblem(StrEnum):
    """Why nothing can be planned or finished."""

    EMPTY = "empty"
    UNREADABLE = "unreadable"
    WRONG_RATIO = "wrong_ratio"
    PICTURE_UNREADABLE = "picture_unreadable"
    ANSWER_UNREADABLE = "answer_unreadable"
    NO_FRAME = "no_frame"
    # The grown mask leaves the part of the picture that was sent: only a new request can fill it.
    BEYOND_THE_ANSWER = "beyond_the_answer"
    NOTHING_TO_ADD = "nothing_to_add"
    # The wider canvas would be larger than the studio holds.
    TOO_LARGE = "too_large"


class Notice(StrEnum):
    """The code of what to say before the request is paid for, or with its result; parameters in brackets."""

    COVERS_ALL = "covers_all"
    # tiles, needed: textured tiles of 48 pixels that the mask leaves free, and how many are needed
    LITTLE_TO_ALIGN_BY = "little_to_align_by"
    # factor: how many pixels of the picture become one of the answer
    SOFTER = "softer"
    # areas, factor: one request for all would be softer than one for each
    AREAS_FAR_APART = "areas_far_apart"
    # share: of the frame that lies beyond the picture and is thrown away
    BEYOND_THE_PICTURE = "beyond_the_picture"
    # pixels: how far the change continues beyond the mask, in pixels of the picture
    SPILLS = "spills"
    NOTHING_CHANGED = "nothing_changed"


class Reason(StrEnum):
    """Why a verdict was given."""

    SAME_PICTURE = "same_picture"
    COVERS_ALL = "covers_all"
    LITTLE_TO_ALIGN_BY = "little_to_align_by"
    WEAKLY_ALIKE = "weakly_alike"
    ANOTHER_PICTURE = "another_picture"
    ANOTHER_FRAMING = "another_framing"


class MaskRefused(Exception):
    """Nothing can be planned or finished; whoever asked has a sentence for it."""

    def __init__(self, problem: MaskProblem) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class Frame:
    """A legal output of the model: the names the request takes and the pixels that come back."""

    ratio: str
    size: str
    width_px: int
    height_px: int


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture in its pixels; it may reach beyond the picture."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """Return the first column to the right of it."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """Return the first row below it."""
        return self.top + self.height

    def within(self, other: Box) -> Box:
        """Return the part of it that lies in the other; empty (0 by 0) when none does."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        right, bottom = min(self.right, other.right), min(self.bottom, other.bottom)
        if right <= left or bottom <= top:
            return Box(left, top, 0, 0)
        return Box(left, top, right - left, bottom - top)

    def holds(self, other: Box) -> bool:
        """Return whether all of the other lies in it."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )

    def grown(self, across_px: int, down_px: int) -> Box:
        """Return it with so many pixels more on either side."""
        return Box(self.left - across_px, self.top - down_px, self.width + 2 * across_px, self.height + 2 * down_px)


@dataclass(frozen=True)
class Mask:
    """What is to change, at the picture's size: 0 never, 255 wholly, between them a soft brush.

    `data` is a PNG of one channel with 8 bits, so a mask can be kept as a picture.
    """

    width: int
    height: int
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class EditPlan:
    """An edit that is ready to be asked for; the same input always gives the same plan.

    `crop` (PNG, 8-bit RGB) is what to send, `marked` the same with the area tinted in the colour `marker` names.
    `box` is what the crop shows of `original`, which is the PNG or JPEG as it came, or for an expansion the wider
    canvas. `feather_px` is the fade inside the mask, in pixels of a frame of about a megapixel; it is doubled when the
    edit keeps that far away from the border. When it `is_in_place` the painter works on all of `original` itself: its
    answer is neither aligned nor toned, and nothing is cut out or marked.
    """

    original: bytes = field(repr=False)
    mask: Mask
    width: int
    height: int
    box: Box
    frame: Frame
    crop: bytes = field(default=b"", repr=False)
    marked: bytes = field(default=b"", repr=False)
    marker: str = ""
    notices: tuple[EditNotice, ...] = ()
    feather_px: float = DEFAULT_FEATHER_PX
    is_in_place: bool = False


@dataclass(frozen=True)
class EditOutcome:
    """What came of an answer.

    `composite` is a PNG at the picture's size, or None when the answer was refused: then the picture stays as it is
    and the answer is shown beside it. `changed_outside` counts the pixels outside the mask in which the decoded
    composite differs from the original in any channel; `outside` how many there are. `spill_px` says how far the
    change continues beyond the mask (0: it does not) and `grown_mask` would take it in. `before` and `after` (PNG)
    show the box for a person to judge by when the verdict is unsure.
    """

    judgement: Judgement
    composite: bytes | None = field(default=None, repr=False)
    placement: Placement | None = None
    changed_outside: int = 0
    outside: int = 0
    spill_px: int = 0
    grown_mask: Mask | None = None
    before: bytes | None = field(default=None, repr=False)
    after: bytes | None = field(default=None, repr=False)
    notices: tuple[EditNotice, ...] = ()


@dataclass(frozen=True)
class Drift:
    """What an edit without a mask did to a picture.

    `changed` marks what is not the original any more; `shift_px` is in the original's pixels, `scale` the zoom,
    `ratio_change` how much wider (above 1) the edited picture is for its height. When `is_comparable` is false the
    two show different pictures and everything counts as changed.
    """

    changed: Mask
    changed_share: float
    shift_px: tuple[float, float]
    scale: float
    turn_deg: float
    ratio_change: float
    is_comparable: bool
    judgement: Judgement
