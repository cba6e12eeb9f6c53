"""An adjustment as a value: light, colour, sharpness, effects and frame, without the code that applies it."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agent.messages import Value

LIMIT = 100
MAX_RATIO_SIDE = 100
MAX_NESTED_CROPS = 16
THINNEST_BOX = 1e-6
# The limits of a resized picture: a larger result is scaled down to them.
MAX_SIDE_PIXELS = 8192
MAX_PIXELS = 40_000_000

_RATIO = re.compile(r"\s*(\d{1,3})\s*[:x×/∶：]\s*(\d{1,3})\s*", re.IGNORECASE)
_TURN_DECIMALS = 4


class Flip(StrEnum):
    """The direction of a flip: `horizontal` swaps left and right."""

    HORIZONTAL = "horizontal"
    VERTICAL = "vertical"


class CropRatio(Value):
    """A crop to the largest part with the ratio `width` to `height`.

    `across` and `down` give its position: 0 at the left or top, 0.5 in the middle, 1 at the right or bottom. `within`
    is the crop that it is cut from; when None, it is cut from the whole picture.
    """

    type: Literal["ratio"] = "ratio"
    width: int = Field(ge=1, le=MAX_RATIO_SIDE)
    height: int = Field(ge=1, le=MAX_RATIO_SIDE)
    across: float = Field(default=0.5, ge=0, le=1)
    down: float = Field(default=0.5, ge=0, le=1)
    within: Crop | None = None

    @property
    def text(self) -> str:
        """The ratio in the usual notation, such as `16:9`."""
        return f"{self.width}:{self.height}"


class CropBox(Value):
    """A crop to a box, given as shares (0 to 1) of the width from the left and of the height from the top.

    Every pixel that the box touches is kept. `within` is the crop that it is cut from; when None, it is cut from the
    whole picture.
    """

    type: Literal["box"] = "box"
    left: float = Field(default=0, ge=0, le=1)
    top: float = Field(default=0, ge=0, le=1)
    right: float = Field(default=1, ge=0, le=1)
    bottom: float = Field(default=1, ge=0, le=1)
    within: Crop | None = None

    @model_validator(mode="after")
    def _has_an_inside(self) -> CropBox:
        if min(self.right - self.left, self.bottom - self.top) < THINNEST_BOX:
            raise ValueError("the left of a box must lie before its right, and its top before its bottom")
        return self


Crop: TypeAlias = Annotated[CropRatio | CropBox, Field(discriminator="type")]


class Resize(Value):
    """The target size in pixels, or a `factor` for both sides when no side is given.

    With one side, the other keeps the ratio; with both, the picture is cropped evenly to the new ratio. A side is
    limited to 8192 pixels, the picture to 40 megapixels.
    """

    width: int | None = Field(default=None, ge=1)
    height: int | None = Field(default=None, ge=1)
    factor: float = Field(default=1, gt=0, allow_inf_nan=False)


def _crop(value: object) -> object:
    """Return a ratio given as a string, such as `16:9`, as the fields of a CropRatio."""
    if not isinstance(value, str):
        return value
    match = _RATIO.fullmatch(value)
    if match is None:
        raise ValueError(f"must be a ratio such as 16:9, not {value[:40]!r}")
    return {"type": "ratio", "width": int(match[1]), "height": int(match[2])}


def _turn(degrees: float) -> float:
    """Return the equivalent rotation above -180 and up to 180 degrees."""
    turn = round(degrees % 360, _TURN_DECIMALS) % 360
    return turn - 360 if turn > 180 else turn


Amount: TypeAlias = Annotated[int, Field(ge=-LIMIT, le=LIMIT)]
Strength: TypeAlias = Annotated[int, Field(ge=0, le=LIMIT)]


class Adjustment(Value):
    """A change of a picture that needs no model; amounts are -100 to 100 (blur and pixelate: 0 to 100), 0 is no change.

    `rotate` is in degrees, clockwise when positive, and normalised above -180 and up to 180. The picture is rotated
    first, then flipped, cropped and resized. The module `toning` describes light and colour and their order; `effects`
    come last. A crop may be given as a string ("1:1").
    """

    brightness: Amount = 0
    contrast: Amount = 0
    saturation: Amount = 0
    warmth: Amount = 0
    sharpness: Amount = 0
    invert: bool = False
    sepia: bool = False
    blur: Strength = 0
    pixelate: Strength = 0
    crop: Annotated[Crop | None, BeforeValidator(_crop)] = None
    rotate: Annotated[float, Field(allow_inf_nan=False), AfterValidator(_turn)] = 0
    flip: Flip | None = None
    resize: Resize | None = None

    @model_validator(mode="after")
    def _nests_within_reason(self) -> Adjustment:
        if len(crops_from_the_whole(self.crop)) > MAX_NESTED_CROPS:
            raise ValueError(f"at most {MAX_NESTED_CROPS} crops can follow one another")
        return self

    @property
    def is_identity(self) -> bool:
        """Whether the adjustment changes nothing."""
        return not self.has_tones and not self.has_effects and not self.has_frame

    @property
    def has_tones(self) -> bool:
        """Whether light, colour or sharpness change."""
        return any((self.brightness, self.contrast, self.saturation, self.warmth, self.sharpness))

    @property
    def has_effects(self) -> bool:
        """Whether the picture is inverted, turned sepia, blurred or pixelated."""
        return self.invert or self.sepia or bool(self.blur) or bool(self.pixelate)

    @property
    def has_frame(self) -> bool:
        """Whether the picture is rotated, flipped, cropped or resized."""
        return bool(self.rotate) or any(one is not None for one in (self.flip, self.crop, self.resize))

    @property
    def is_final(self) -> bool:
        """Whether nothing can be added to it, because it ends with an effect or a resize."""
        return self.has_effects or self.resize is not None

    def adds_up_with(self, other: Adjustment) -> bool:
        """Return whether this and then the other can be applied as one adjustment.

        An effect must come after everything else, and a cropped picture cannot then be rotated by an odd angle.
        """
        is_straight = self.crop is None or quarters(other.rotate)[1] == 0
        return is_straight and not self.is_final and not other.has_effects

    def combine(self, other: Adjustment) -> Adjustment:
        """Return one adjustment that replaces this one followed by the other.

        Amounts are added, within -100 to 100. Quarter turns, flips and crops give the same frame as the two in
        sequence, except for a pixel where a middle is rounded. When the other rotates by an odd angle, this one's crop
        is cut from the rotated picture, because a slanted crop cannot be expressed.

        Raises ValueError when there would be more than 16 nested crops.
        """
        # After a flip, a rotation goes the other way.
        rotate = self.rotate + (-other.rotate if self.flip else other.rotate)
        flip = self.flip if other.flip is None else other.flip
        if self.flip is not None and other.flip is not None:
            flip = None
            rotate += 0 if self.flip is other.flip else 180
        # This one's crop selects the same part after the picture is rotated by quarters and flipped.
        crop = self.crop
        for _ in range(quarters(other.rotate)[0]):
            crop = _quarter_turned(crop)
        if other.flip is not None:
            crop = _flipped(crop, other.flip)
        return Adjustment(
            brightness=_limited(self.brightness + other.brightness),
            contrast=_limited(self.contrast + other.contrast),
            saturation=_limited(self.saturation + other.saturation),
            warmth=_limited(self.warmth + other.warmth),
            sharpness=_limited(self.sharpness + other.sharpness),
            invert=self.invert is not other.invert,
            sepia=self.sepia or other.sepia,
            blur=_limited(self.blur + other.blur),
            pixelate=_limited(self.pixelate + other.pixelate),
            crop=_cut_from(other.crop, crop),
            rotate=rotate,
            flip=flip,
            resize=other.resize or self.resize,
        )


def crops_from_the_whole(crop: CropRatio | CropBox | None) -> list[CropRatio | CropBox]:
    """Return the nested crops in the order in which they are applied, the one from the whole picture first."""
    found: list[CropRatio | CropBox] = []
    while crop is not None:
        found.append(crop)
        crop = crop.within
    return found[::-1]


def quarters(degrees: float) -> tuple[int, float]:
    """Return a rotation as clockwise quarter turns (0 to 3) and the rest, -45 to 45 degrees."""
    count = round(degrees / 90)
    return count % 4, degrees - 90 * count


def _limited(amount: int) -> int:
    return max(-LIMIT, min(LIMIT, amount))


def _cut_from(crop: CropRatio | CropBox | None, whole: CropRatio | CropBox | None) -> CropRatio | CropBox | None:
    """Return `crop` applied within `whole`; a repeated crop to the same ratio is dropped."""
    result = whole
    for one in crops_from_the_whole(crop):
        if isinstance(one, CropRatio) and isinstance(result, CropRatio) and one.text == result.text:
            continue
        result = one.model_copy(update={"within": result})
    return result


def _quarter_turned(crop: CropRatio | CropBox | None) -> CropRatio | CropBox | None:
    match crop:
        case CropRatio():
            return CropRatio(
                width=crop.height,
                height=crop.width,
                across=1 - crop.down,
                down=crop.across,
                within=_quarter_turned(crop.within),
            )
        case CropBox():
            return CropBox(
                left=1 - crop.bottom,
                top=crop.left,
                right=1 - crop.top,
                bottom=crop.right,
                within=_quarter_turned(crop.within),
            )
        case None:
            return None


def _flipped(crop: CropRatio | CropBox | None, flip: Flip) -> CropRatio | CropBox | None:
    if crop is None:
        return None
    is_horizontal = flip is Flip.HORIZONTAL
    changed: dict[str, object] = {"within": _flipped(crop.within, flip)}
    match crop:
        case CropRatio() if is_horizontal:
            changed |= {"across": 1 - crop.across}
        case CropRatio():
            changed |= {"down": 1 - crop.down}
        case CropBox() if is_horizontal:
            changed |= {"left": 1 - crop.right, "right": 1 - crop.left}
        case CropBox():
            changed |= {"top": 1 - crop.bottom, "bottom": 1 - crop.top}
    return crop.model_copy(update=changed)


CropRatio.model_rebuild()
CropBox.model_rebuild()


class ChangeKind(StrEnum):
    """The kinds of change that the page can name."""

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
    INVERTED = "inverted"
    SEPIA = "sepia"
    BLURRED = "blurred"
    PIXELATED = "pixelated"
    TURNED_RIGHT = "turned_right"
    TURNED_LEFT = "turned_left"
    FLIPPED_HORIZONTALLY = "flipped_horizontally"
    FLIPPED_VERTICALLY = "flipped_vertically"
    CROPPED_TO_RATIO = "cropped_to_ratio"
    CROPPED = "cropped"
    RESIZED = "resized"
    RESIZED_WIDE = "resized_wide"
    RESIZED_HIGH = "resized_high"
    SCALED = "scaled"


class AdjustmentChange(Value):
    """One change of an adjustment.

    `amount` is never negative: 1 to 100, degrees for a rotation, pixels for a side, percent for SCALED, 0 for a change
    without an amount. `ratio` is the ratio, such as `1:1`, for CROPPED_TO_RATIO, and the size, such as `800×600`, for
    RESIZED.
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
    """Return the changes in a fixed order: light and colour, effects, frame; empty when nothing changes.

    Of nested crops only the last is listed, because its shape is the visible one.
    """
    return (*_tones(adjustment), *_effects(adjustment), *_frame(adjustment))


def _tones(adjustment: Adjustment) -> list[AdjustmentChange]:
    found = []
    for name, more, less in _TONES:
        amount = getattr(adjustment, name)
        if name == "saturation" and amount == -LIMIT:
            found.append(AdjustmentChange(kind=ChangeKind.BLACK_AND_WHITE))
        elif amount:
            found.append(AdjustmentChange(kind=more if amount > 0 else less, amount=abs(amount)))
    return found


def _effects(adjustment: Adjustment) -> list[AdjustmentChange]:
    amounts = {
        ChangeKind.INVERTED: 0 if adjustment.invert else None,
        ChangeKind.SEPIA: 0 if adjustment.sepia else None,
        ChangeKind.BLURRED: adjustment.blur or None,
        ChangeKind.PIXELATED: adjustment.pixelate or None,
    }
    return [AdjustmentChange(kind=kind, amount=amount) for kind, amount in amounts.items() if amount is not None]


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
    return found if adjustment.resize is None else [*found, _size(adjustment.resize)]


def _size(resize: Resize) -> AdjustmentChange:
    match resize.width, resize.height:
        case int(width), int(height):
            return AdjustmentChange(kind=ChangeKind.RESIZED, ratio=f"{width}×{height}")
        case int(width), None:
            return AdjustmentChange(kind=ChangeKind.RESIZED_WIDE, amount=width)
        case None, int(height):
            return AdjustmentChange(kind=ChangeKind.RESIZED_HIGH, amount=height)
    return AdjustmentChange(kind=ChangeKind.SCALED, amount=round(resize.factor * 100, 2))
