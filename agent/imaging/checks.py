"""What the studio itself can check of a sketch, on its real pixels and without a model."""

from __future__ import annotations

import io
from functools import reduce

from PIL import Image, ImageChops, ImageFilter

from agent.imaging.contract import NormalizedRequest
from agent.imaging.lettering import asked_lettering
from agent.pictures import EditRecord, Picture
from agent.providers.sketch.lettering import write_into
from agent.providers.sketch.operations import Position
from agent.providers.sketch.phrases import is_chinese
from agent.reviews import Check, ChecklistItem, Review

# As in the receipt: the models' own sizes are up to 1 % off the ratio they are named after.
_RATIO_TOLERANCE = 0.03
_SIZE_TOLERANCE = 0.9
# The sketch painter's frame, in shares of the shorter side: the paper around its painting and the strip below it.
_MARGIN = 0.04
_STRIP = 0.088
# Letters are white on a shade. Pixels of a picture without them differ by chance alone.
_LETTER_CONTRAST = 60
_MAX_WISH_CHARACTERS = 120


def check_sketch(
    picture: Picture,
    data: bytes,
    request: NormalizedRequest,
    words: str = "",
    *,
    original: bytes | None = None,
    mask: bytes | None = None,
) -> Review:
    """Return what of the request the picture's pixels (`data`) show: its score is the share of what is met.

    Only what somebody asked for is an item: a picture made from another keeps that one's shape unless its ratio or
    size was chosen, and lettering counts when its words were quoted in the prompt or else in the person's `words`.
    With the picture it was made from (`original`) and its `mask`, white where it may change, every other pixel must
    be the original's.

    Nothing to check, or a picture that cannot be read, is not reviewed.
    """
    try:
        with Image.open(io.BytesIO(data)) as opened:
            image = opened.convert("RGBA")
    except (OSError, ValueError, Image.DecompressionBombError):
        return Review()
    items = [*_shape(picture, image.size, request), *_captions(image, request, words)]
    if original is not None and mask is not None:
        items.append(_outside_mask(image, original, mask, in_chinese=is_chinese(words)))
    if not items:
        return Review()
    feedback = " · ".join(f"{'✓' if item.is_met else '✗'} {item.wish}" for item in items)
    return Review(score=sum(item.is_met for item in items) / len(items), checklist=tuple(items), feedback=feedback)


def refused_review(edit: EditRecord, words: str = "") -> Review:
    """Return the review of an answer that was not pasted, and what the next attempt should mind."""
    in_chinese = is_chinese(words)
    is_framing = edit.reason == "another_framing"
    if in_chinese:
        feedback = "结果换了构图，没有采用。" if is_framing else "结果是另一张图片，没有采用。"
        advice = "完全保持第一张图的构图和内容，只修改标出的部分。"
    else:
        feedback = f"The answer shows another {'framing' if is_framing else 'picture'}, so it was not used."
        advice = "Keep the framing and the content of Image 1 exactly, and change the marked part alone."
    item = _item("mask", _outside_wish(in_chinese=in_chinese), False, feedback)
    return Review(score=0.0, checklist=(item,), feedback=feedback, suggestions=(advice,))


def _shape(picture: Picture, size: tuple[int, int], request: NormalizedRequest) -> list[ChecklistItem]:
    width, height = size
    across, _, down = request.aspect_ratio.partition(":")
    got = f"{width}×{height}"
    items = []
    if _is_asked(picture, request, "aspect_ratio"):
        is_met = abs(width / height * int(down) / int(across) - 1) <= _RATIO_TOLERANCE
        items.append(_item("aspect_ratio", request.aspect_ratio, is_met, got))
    promised = request.model.pixels(request.aspect_ratio, request.resolution)
    if promised is not None and _is_asked(picture, request, "resolution"):
        # A picture made from another may be larger than promised: nothing of it is thrown away.
        is_enough = bool(picture.parents) and width * height >= promised[0] * promised[1] * _SIZE_TOLERANCE
        items.append(_item("size", f"{promised[0]}×{promised[1]}", is_enough or size == promised, got))
    return items


def _is_asked(picture: Picture, request: NormalizedRequest, setting: str) -> bool:
    return not picture.parents or request.filled.get(setting, "default") != "default"


def _captions(image: Image.Image, request: NormalizedRequest, words: str) -> list[ChecklistItem]:
    asked = asked_lettering(request.prompt) or asked_lettering(words)
    return [_item("caption", f"“{text}”", _is_written(image, text), f"“{text}”") for text in asked]


def _item(check: Check, wish: str, is_met: bool, why: str = "") -> ChecklistItem:
    return ChecklistItem(check=check, wish=" ".join(wish.split())[:_MAX_WISH_CHARACTERS], is_met=is_met, why=why)


def _is_written(image: Image.Image, text: str) -> bool:
    """Whether the words stand where the sketch model writes: at the top of its painting, or anywhere on a photo."""
    width, height = image.size
    margin, strip = round(min(image.size) * _MARGIN), round(min(image.size) * _STRIP)
    painting = margin, margin, width - margin, height - margin - strip
    if _stands_in(image.crop(painting), text, Position.TOP):
        return True
    return any(_stands_in(image, text, position) for position in Position)


def _stands_in(image: Image.Image, text: str, position: Position) -> bool:
    """Whether the pixels of these very letters are lighter than those around them."""
    drawn = write_into(Image.new("RGB", image.size), text, position).convert("L")
    box = drawn.getbbox()
    if box is None:
        return False
    wide = max(0, box[0] - 4), max(0, box[1] - 4), min(image.width, box[2] + 4), min(image.height, box[3] + 4)
    letters = drawn.crop(wide).point([255 * (value >= 200) for value in range(256)])
    near = ImageChops.subtract(letters.filter(ImageFilter.MaxFilter(7)), letters.filter(ImageFilter.MaxFilter(3)))
    gray = image.crop(wide).convert("L")
    return _mean(gray, letters) - _mean(gray, near) >= _LETTER_CONTRAST


def _mean(gray: Image.Image, mask: Image.Image) -> float:
    tones = gray.histogram(mask)
    return sum(value * count for value, count in enumerate(tones)) / max(1, sum(tones))


def _outside_wish(*, in_chinese: bool) -> str:
    return "蒙版之外保持不变" if in_chinese else "Nothing outside the mask changes"


def _outside_mask(image: Image.Image, original: bytes, mask: bytes, *, in_chinese: bool) -> ChecklistItem:
    wish = _outside_wish(in_chinese=in_chinese)
    with Image.open(io.BytesIO(original)) as before, Image.open(io.BytesIO(mask)) as opened:
        source, area = before.convert("RGBA"), opened.convert("L")
    if not source.size == area.size == image.size:
        return _item("mask", wish, False, f"{image.width}×{image.height}")
    most = reduce(ImageChops.lighter, ImageChops.difference(source, image).split())
    kept = area.point([255 * (value == 0) for value in range(256)])
    changed = sum(most.histogram(kept)[1:])
    return _item("mask", wish, changed == 0, f"{changed} px")
