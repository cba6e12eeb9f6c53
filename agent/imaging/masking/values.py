"""The inputs and outputs of a masked edit: plain values of numbers and bytes that can be stored, sent and compared.

They need no pixel library.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.pictures import EditNotice, Judgement, Placement

DEFAULT_FEATHER_PX = 8.0


class MaskProblem(StrEnum):
    """Why an edit cannot be planned or finished."""

    EMPTY = "empty"
    UNREADABLE = "unreadable"
    WRONG_RATIO = "wrong_ratio"
    PICTURE_UNREADABLE = "picture_unreadable"
    ANSWER_UNREADABLE = "answer_unreadable"
    NO_FRAME = "no_frame"
    # The grown mask extends beyond the part of the picture that was sent: only a new request can fill it.
    BEYOND_THE_ANSWER = "beyond_the_answer"
    NOTHING_TO_ADD = "nothing_to_add"
    # The expanded canvas would exceed the size limits.
    TOO_LARGE = "too_large"


class Notice(StrEnum):
    """The code of a notice to show before the request is paid for, or with its result; comments name the parameters."""

    COVERS_ALL = "covers_all"
    # tiles, needed: textured tiles of 48 pixels that the mask leaves free, and how many are needed
    LITTLE_TO_ALIGN_BY = "little_to_align_by"
    # factor: how many pixels of the picture become one pixel of the answer
    SOFTER = "softer"
    # areas, factor: one request for all areas gives a softer result than one request for each
    AREAS_FAR_APART = "areas_far_apart"
    # share: the part of the frame that is outside the picture and is discarded
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
    """The edit cannot be planned or finished; the caller has a message for each problem."""

    def __init__(self, problem: MaskProblem) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class Frame:
    """A legal output of the model: the ratio and size names for the request, and the pixels it delivers."""

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
        """The first column to the right of the box."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The first row below the box."""
        return self.top + self.height

    def within(self, other: Box) -> Box:
        """Return the intersection with the other box; 0 by 0 when they do not overlap."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        right, bottom = min(self.right, other.right), min(self.bottom, other.bottom)
        if right <= left or bottom <= top:
            return Box(left, top, 0, 0)
        return Box(left, top, right - left, bottom - top)

    def holds(self, other: Box) -> bool:
        """Return whether this box contains all of the other."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )

    def grown(self, across_px: int, down_px: int) -> Box:
        """Return the box with this many more pixels on each side."""
        return Box(self.left - across_px, self.top - down_px, self.width + 2 * across_px, self.height + 2 * down_px)


@dataclass(frozen=True)
class Mask:
    """The area to change, at the picture's size: 0 not at all, 255 fully, between them a soft brush.

    `data` is a PNG with one 8-bit channel, so a mask can be stored as a picture.
    """

    width: int
    height: int
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class EditPlan:
    """An edit that is ready to be requested; the same input always gives the same plan.

    `crop` (PNG, 8-bit RGB) is the picture to send, `marked` the same with the area tinted in the colour named `marker`.
    `box` is the part of `original` that the crop shows; `original` is the PNG or JPEG as received, or for an expansion
    the larger canvas. `feather_px` is the feather inside the mask, in pixels of a frame of about a megapixel; it is
    doubled when the edit keeps that far away from the border. If `is_in_place`, the model edits the whole `original`
    itself: the answer is neither aligned nor colour-corrected, and nothing is cropped or marked.
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
    """The outcome of an answer.

    `composite` is a PNG at the picture's size, or None when the answer was refused: then the picture stays as it is
    and the answer is shown beside it. `changed_outside` counts the pixels outside the mask in which the decoded
    composite differs from the original in any channel; `outside` counts all pixels outside. `spill_px` says how far
    the change continues beyond the mask (0: not at all); `grown_mask` would include it. When the verdict is unsure,
    `before` and `after` (PNG) show the box so that the user can decide.
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
    """The changes that an edit without a mask made to a picture.

    `changed` marks the pixels that differ from the original; `shift_px` is in the original's pixels, `scale` is the
    zoom, `ratio_change` is above 1 when the edited picture is wider for its height. When `is_comparable` is false, the
    pictures show different things and everything counts as changed.
    """

    changed: Mask
    changed_share: float
    shift_px: tuple[float, float]
    scale: float
    turn_deg: float
    ratio_change: float
    is_comparable: bool
    judgement: Judgement
