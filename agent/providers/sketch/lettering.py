"""Text on pictures: find a font with its characters, fit its lines, and make it readable on any background."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from agent import wording
from agent.providers.sketch.operations import Position

Font: TypeAlias = ImageFont.FreeTypeFont
Box: TypeAlias = tuple[int, int, int, int]

_NOTO = "/usr/share/fonts"
# (file, face in the collection): simplified Chinese first, since half of the users write it.
_CHINESE_FONTS: tuple[tuple[str, int], ...] = (
    (f"{_NOTO}/opentype/noto/NotoSansCJK-Regular.ttc", 2),
    (f"{_NOTO}/opentype/noto/NotoSansCJKsc-Regular.otf", 0),
    (f"{_NOTO}/truetype/noto/NotoSansCJK-Regular.ttc", 2),
    (f"{_NOTO}/noto-cjk/NotoSansCJK-Regular.ttc", 2),
    (f"{_NOTO}/google-noto-cjk/NotoSansCJK-Regular.ttc", 2),
    (f"{_NOTO}/opentype/source-han-sans/SourceHanSansSC-Regular.otf", 0),
    (f"{_NOTO}/truetype/wqy/wqy-microhei.ttc", 0),
    (f"{_NOTO}/truetype/wqy/wqy-zenhei.ttc", 0),
    (f"{_NOTO}/wenquanyi/wqy-microhei/wqy-microhei.ttc", 0),
    (f"{_NOTO}/truetype/arphic/uming.ttc", 0),
    (f"{_NOTO}/truetype/droid/DroidSansFallbackFull.ttf", 0),
    ("/System/Library/Fonts/PingFang.ttc", 2),
    ("/System/Library/Fonts/STHeiti Light.ttc", 1),
    ("/System/Library/Fonts/Hiragino Sans GB.ttc", 0),
    ("/Library/Fonts/Arial Unicode.ttf", 0),
    ("C:/Windows/Fonts/msyh.ttc", 0),
    ("C:/Windows/Fonts/Deng.ttf", 0),
    ("C:/Windows/Fonts/simhei.ttf", 0),
    ("C:/Windows/Fonts/simsun.ttc", 0),
)
_WIDE_FONTS: tuple[tuple[str, int], ...] = (
    (f"{_NOTO}/truetype/liberation/LiberationSans-Regular.ttf", 0),
    (f"{_NOTO}/truetype/noto/NotoSans-Regular.ttf", 0),
    (f"{_NOTO}/truetype/dejavu/DejaVuSans.ttf", 0),
    (f"{_NOTO}/dejavu/DejaVuSans.ttf", 0),
    ("/System/Library/Fonts/Supplemental/Arial Unicode.ttf", 0),
    ("C:/Windows/Fonts/segoeui.ttf", 0),
)
_LINE_STEP = 1.28
_LEAST_SIZE = 8.0
_NO_SUCH_CHARACTER = "\U0010fffe"
_CLOSING = "，。、！？；：）」』》”’,.!?;:)"


def find_font(text: str, size: float) -> Font | None:
    """Return the font of this machine that has most of the text's characters, or None when none has any."""
    best: Font | None = None
    best_count = 0
    wanted = {char for char in text if not char.isspace()}
    built_in = ("", 0)
    chinese = [source for source in _CHINESE_FONTS if Path(source[0]).is_file()][:2]
    wide = [source for source in _WIDE_FONTS if Path(source[0]).is_file()][:2]
    sources = [*chinese, built_in, *wide] if wording.is_chinese(text) else [built_in, *wide, *chinese]
    for source in sources:
        font = _load(source, round(size))
        if font is None:
            continue
        count = sum(_can_draw(source, char) for char in wanted)
        if count > best_count:
            best, best_count = font, count
        if best_count == len(wanted):
            break
    return best


def drawable(text: str, font: Font) -> str:
    """Return the text without the characters that the font would show as empty boxes."""
    missing = _signature(font, _NO_SUCH_CHARACTER)
    signatures = {char: _signature(font, char) for char in set(text) if not char.isspace()}
    undrawn = {char for char, found in signatures.items() if found == missing or 0 in found[0]}
    return re.sub(r"\s+", " ", "".join(char for char in text if char not in undrawn)).strip()


@lru_cache(maxsize=8192)
def _can_draw(source: tuple[str, int], char: str) -> bool:
    """Whether the font file (or the built-in one, when the name is empty) has a glyph for the character."""
    font = _load(source, 24)
    return font is not None and bool(drawable(char, font))


def wrap(text: str, font: Font, width: float) -> list[str]:
    """Return the text in lines that fit the width; Chinese breaks anywhere but before closing punctuation."""
    lines: list[str] = []
    line = ""
    for token in re.findall(
        r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+|\s+", text
    ):
        if line and not token.isspace() and token not in _CLOSING and font.getlength(line + token) > width:
            lines.append(line.rstrip())
            line = ""
        line += token if line or not token.isspace() else ""
    return [*lines, line.rstrip()] if line.strip() else lines


def fit(text: str, width: float, size: float, max_lines: int) -> tuple[Font, list[str]] | None:
    """Return a font of at most `size` pixels and the lines that fit; text that is too long ends in an ellipsis.

    None when this machine has no font for the text.
    """
    found = None
    for shrink in (1.0, 0.88, 0.77, 0.68, 0.6, 0.52):
        found = _lines_of(text, width, size * shrink)
        if found is None or (found[2] and len(found[1]) <= max_lines):
            return found and found[:2]
    if found is None:
        return None
    font, lines, _ = found
    if len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], lines[max_lines - 1] + "…"]
    return font, [_shortened(line, font, width) for line in lines]


def _lines_of(text: str, width: float, size: float) -> tuple[Font, list[str], bool] | None:
    """Return a font of this size, the lines of the text, and whether all fit the width; None without a font."""
    font = find_font(text, size)
    words = drawable(text, font) if font is not None else ""
    if font is None or not words:
        return None
    lines = wrap(words, font, width)
    return font, lines, all(font.getlength(line) <= width for line in lines)


def write_into(image: Image.Image, text: str, position: Position) -> Image.Image:
    """Return the picture with the text in white over a soft shade, at the top, in the middle or at the bottom."""
    drawn = letters_for(image.size, text, position)
    if drawn is None:
        return image
    letters, shade = drawn
    result = image.copy()
    if result.mode == "RGBA":
        result.putalpha(ImageChops.lighter(ImageChops.lighter(result.getchannel("A"), letters), shade))
    bands = len(result.getbands())
    result.paste((0, 0, 0, 255)[:bands], (0, 0), ImageChops.subtract(shade, letters))
    result.paste((255,) * bands, (0, 0), letters)
    return result


def letters_for(size: tuple[int, int], text: str, place: Position | Box) -> tuple[Image.Image, Image.Image] | None:
    """Return the text and its soft shade as two masks of the picture's size, in mode L; the shade is wider.

    None when this machine has no font for the text. The place is a side of the picture, or a box (left, top, right,
    bottom) whose middle the text fills.
    """
    if isinstance(place, Position):
        box, position = (0, 0, *size), place
        most = max(12.0, min(size[0] / 11, size[1] / 6))
        fitted = fit(text, size[0] * 0.88, most, max_lines=max(1, int(size[1] * 0.8 / (most * 1.3))))
    else:
        box, position = place, Position.CENTER
        fitted = _largest(text, max(1, box[2] - box[0]), max(1, box[3] - box[1]))
    if fitted is None:
        return None
    font, lines = fitted
    letters = Image.new("L", size, 0)
    part = max(1, box[2] - box[0]), max(1, box[3] - box[1])
    letters.paste(_letter_mask(part, font, lines, position), box[:2])
    soft = letters.filter(ImageFilter.MaxFilter(3)).filter(ImageFilter.GaussianBlur(max(1.5, font.size / 7)))
    return letters, soft.point([min(215, round(value * 1.5)) for value in range(256)])


def _largest(text: str, width: float, height: float) -> tuple[Font, list[str]] | None:
    """Return the largest font, and the lines, with which no text is cut off; None without a font."""
    size = max(_LEAST_SIZE, height * 0.8)
    while size > _LEAST_SIZE:
        found = _lines_of(text, width, size)
        if found is None or (found[2] and len(found[1]) * size * _LINE_STEP <= height * 1.1):
            return found and found[:2]
        size *= 0.9
    return fit(text, width, _LEAST_SIZE, max_lines=max(1, int(height / (_LEAST_SIZE * _LINE_STEP))))


def _letter_mask(size: tuple[int, int], font: Font, lines: list[str], position: Position) -> Image.Image:
    mask = Image.new("L", size, 0)
    draw = ImageDraw.Draw(mask)
    step = font.size * _LINE_STEP
    height = step * len(lines)
    margin = max(size[1] * 0.05, font.size * 0.3)
    tops = {Position.TOP: margin, Position.CENTER: (size[1] - height) / 2, Position.BOTTOM: size[1] - margin - height}
    for row, line in enumerate(lines):
        draw.text((size[0] / 2, tops[position] + step * (row + 0.5)), line, fill=255, font=font, anchor="mm")
    return mask


def _shortened(line: str, font: Font, width: float) -> str:
    while len(line) > 2 and font.getlength(line) > width:
        line = line.rstrip("…")[:-1] + "…"
    return line


@lru_cache(maxsize=64)
def _load(source: tuple[str, int], size: int) -> Font | None:
    name, face = source
    if not name:
        font = ImageFont.load_default(size)
        return font if isinstance(font, ImageFont.FreeTypeFont) else None
    for index in (face, 0):
        try:
            return ImageFont.truetype(name, size, index=index)
        except OSError:
            continue
    return None


def _signature(font: Font, char: str) -> tuple[tuple[int, int], bytes]:
    mask = font.getmask(char)
    return mask.size, bytes(mask)  # pyrefly: ignore[bad-argument-type]  # as Pillow's own code does
