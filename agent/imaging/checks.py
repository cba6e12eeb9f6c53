"""Checks of a picture without a model: whether a sketch contains the requested words, and whether a picture is blank.

A model may deliver a picture that is all black, white or transparent.
"""

from __future__ import annotations

import io
from typing import cast

from PIL import Image, ImageChops, ImageFilter

from agent import wording
from agent.pictures import Blank, Caption, EditRecord, Review
from agent.providers.sketch.lettering import write_into
from agent.providers.sketch.operations import Position

# Tolerances for JPEG noise: up to these levels (white: from this level) a picture still counts as blank.
_BLACK, _WHITE, _CLEAR = 16, 243, 6
# A JPEG is decoded at a reduced size, which is faster, but a star in a night sky must not be lost.
_EDGE_PX = 512
# Antialiased edges against a transparent border do not count as transparency.
_OPAQUE, _SEE_THROUGH_SHARE = 250, 0.002
# What Pillow raises for a picture that it cannot read.
_UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)


def blank_of(data: bytes) -> Blank | None:
    """Return how the picture is blank, or None when it shows something or cannot be read.

    A single colour other than black or white is not blank: the user may have asked for red.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.draft("RGB", (_EDGE_PX, _EDGE_PX))
            return _blank(image)
    except _UNREADABLE:
        return None


def _blank(image: Image.Image) -> Blank | None:
    if image.has_transparency_data and _span(image.convert("RGBA").getchannel("A"))[1] <= _CLEAR:
        return Blank.CLEAR
    spans = [_span(band) for band in image.convert("RGB").split()]
    if all(high <= _BLACK for _, high in spans):
        return Blank.BLACK
    return Blank.WHITE if all(low >= _WHITE for low, _ in spans) else None


def _span(band: Image.Image) -> tuple[int, int]:
    """Return the darkest and the brightest value of a picture of one band."""
    # Pillow's type also covers pictures of several bands.
    return cast(tuple[int, int], band.getextrema())


def is_see_through(data: bytes) -> bool:
    """Return whether a noticeable part of the picture is transparent; False when the picture cannot be read."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if not image.has_transparency_data:
                return False
            histogram = image.convert("RGBA").getchannel("A").histogram()
    except _UNREADABLE:
        return False
    return sum(histogram[:_OPAQUE]) > _SEE_THROUGH_SHARE * sum(histogram)


# The sketch painter's frame, as fractions of the shorter side: the paper margin and the strip below the painting.
_MARGIN = 0.04
_STRIP = 0.088
# Letters are white on a dark shade. Without letters, the two means differ only by chance.
_LETTER_CONTRAST = 60


def captions_in(data: bytes, texts: tuple[str, ...]) -> tuple[Caption, ...]:
    """Return for each text whether the sketch contains it; empty for an unreadable picture. Decodes the pixels."""
    if not texts:
        return ()
    try:
        with Image.open(io.BytesIO(data)) as opened:
            image = opened.convert("RGBA")
    except _UNREADABLE:
        return ()
    return tuple(Caption(text=text, is_written=_is_written(image, text)) for text in texts)


def refused_review(edit: EditRecord, words: str = "") -> Review:
    """Return advice for the next attempt after an answer was not pasted; no model reviewed the picture."""
    is_framing = edit.reason == "another_framing"
    if wording.is_chinese(words):
        feedback = "结果换了构图，没有采用。" if is_framing else "结果是另一张图片，没有采用。"
        advice = "完全保持第一张图的构图和内容，只修改标出的部分。"
    else:
        feedback = f"The answer shows another {'framing' if is_framing else 'picture'}, so it was not used."
        advice = "Keep the framing and the content of Image 1 exactly, and change the marked part alone."
    return Review(score=0.0, feedback=feedback, suggestions=(advice,))


def _is_written(image: Image.Image, text: str) -> bool:
    """Return whether the words are where the sketch model writes: on top of its painting, or anywhere on a photo."""
    width, height = image.size
    margin, strip = round(min(image.size) * _MARGIN), round(min(image.size) * _STRIP)
    painting = margin, margin, width - margin, height - margin - strip
    if _stands_in(image.crop(painting), text, Position.TOP):
        return True
    return any(_stands_in(image, text, position) for position in Position)


def _stands_in(image: Image.Image, text: str, position: Position) -> bool:
    """Return whether the pixels of exactly these letters are lighter than the pixels around them."""
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
