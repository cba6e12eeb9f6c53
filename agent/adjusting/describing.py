"""An adjustment as a list of plain changes, from which a page makes words in any language."""

from __future__ import annotations

from enum import StrEnum

from agent.adjusting.adjustment import LIMIT, Adjustment, CropBox, CropRatio, Flip
from agent.messages import Value


class ChangeKind(StrEnum):
    """Every change that a page has words for."""

    BRIGHTER = "brighter"
    DARKER = "darker"
    MORE_CONTRAST = "more_contrast"
    LESS_CONTRAST = "less_contrast"
    MORE_SATURATION = "more_saturation"
    LESS_SATURATION = "less_saturation"
    BLACK_AND_WHITE = "black_and_white"
    WARMER = "warmer"
    COOLER = "cooler"
    SHARPER = "sharper"
    SOFTER = "softer"
    TURNED_RIGHT = "turned_right"
    TURNED_LEFT = "turned_left"
    FLIPPED_HORIZONTALLY = "flipped_horizontally"
    FLIPPED_VERTICALLY = "flipped_vertically"
    CROPPED_TO_RATIO = "cropped_to_ratio"
    CROPPED = "cropped"


class AdjustmentChange(Value):
    """One change. `amount` is never negative: 1 to 100, degrees for a turn, 0 where there is nothing to count.

    `ratio` is the shape that is left, such as `1:1`, for CROPPED_TO_RATIO alone.
    """

    kind: ChangeKind
    amount: float = 0
    ratio: str = ""


_TONES: tuple[tuple[str, ChangeKind, ChangeKind], ...] = (
    ("brightness", ChangeKind.BRIGHTER, ChangeKind.DARKER),
    ("contrast", ChangeKind.MORE_CONTRAST, ChangeKind.LESS_CONTRAST),
    ("saturation", ChangeKind.MORE_SATURATION, ChangeKind.LESS_SATURATION),
    ("warmth", ChangeKind.WARMER, ChangeKind.COOLER),
    ("sharpness", ChangeKind.SHARPER, ChangeKind.SOFTER),
)


def describe(adjustment: Adjustment) -> tuple[AdjustmentChange, ...]:
    """Return the changes in a fixed order, light and colour first and the frame last; none for no adjustment.

    Of crops that follow one another the last is told, because its shape is the one that is seen.
    """
    return (*_tones(adjustment), *_frame(adjustment))


def _tones(adjustment: Adjustment) -> list[AdjustmentChange]:
    found = []
    for name, more, less in _TONES:
        amount = getattr(adjustment, name)
        if name == "saturation" and amount == -LIMIT:
            found.append(AdjustmentChange(kind=ChangeKind.BLACK_AND_WHITE))
        elif amount:
            found.append(AdjustmentChange(kind=more if amount > 0 else less, amount=abs(amount)))
    return found


def _frame(adjustment: Adjustment) -> list[AdjustmentChange]:
    found = []
    if adjustment.rotate:
        kind = ChangeKind.TURNED_RIGHT if adjustment.rotate > 0 else ChangeKind.TURNED_LEFT
        found.append(AdjustmentChange(kind=kind, amount=abs(adjustment.rotate)))
    match adjustment.flip:
        case Flip.HORIZONTAL:
            found.append(AdjustmentChange(kind=ChangeKind.FLIPPED_HORIZONTALLY))
        case Flip.VERTICAL:
            found.append(AdjustmentChange(kind=ChangeKind.FLIPPED_VERTICALLY))
    match adjustment.crop:
        case CropRatio(text=ratio):
            found.append(AdjustmentChange(kind=ChangeKind.CROPPED_TO_RATIO, ratio=ratio))
        case CropBox():
            found.append(AdjustmentChange(kind=ChangeKind.CROPPED))
    return found
