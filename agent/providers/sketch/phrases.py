"""Read single values from a sentence, English or Chinese: amounts, ratios, counts, quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from math import log

from agent import wording
from agent.adjusting import A_BIT, MUCH, PLAIN

_QUOTED = re.compile(
    r"“([^”]{1,400})”|\"([^\"]{1,400})\"|「([^」]{1,400})」|『([^』]{1,400})』|《([^》]{1,400})》"
    r"|‘([^’]{1,400})’|«([^»]{1,400})»|(?<![\w])'([^']{1,400})'(?![\w])|`([^`]{1,400})`"
)

_SHAPES = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "9:21", "21:9")
# By name in the wording's section `shapes`; the first one in the text counts.
_RATIOS = {
    "square": (1, 1),
    "a_square": (1, 1),
    "phone": (9, 16),
    "cinema": (21, 9),
    "widescreen": (16, 9),
    "landscape": (16, 9),
    "portrait": (3, 4),
    "to_landscape": (16, 9),
}
MAX_COUNT = 4


def fold(text: str) -> str:
    """Return the text in lower case, with full-width characters made plain; its length may change."""
    return unicodedata.normalize("NFKC", text).lower().replace("’", "'").replace("×", "x")


def has_words(text: str) -> bool:
    """Whether the text holds any letter or digit, of any script."""
    return any(unicodedata.category(char)[0] in "LN" for char in text)


def find_quoted(text: str) -> tuple[str, ...]:
    """Return the texts in quotation marks of any kind, in order."""
    found = (next((group for group in match.groups() if group), "") for match in _QUOTED.finditer(text))
    return tuple(words.strip() for words in found if words.strip())


def blank_quoted(text: str) -> str:
    """Return the text with each quotation, and its marks, replaced by one `§`."""
    return _QUOTED.sub(" § ", text)


def find_amount(text: str) -> int:
    """Return the amount of change that the folded text asks for, 1 to 100; a default when it gives none."""
    percent = find_percent(text)
    if percent is not None:
        return min(100, max(1, percent))
    if wording.pattern("phrases.little").search(text):
        return A_BIT
    return MUCH if wording.pattern("phrases.lot").search(text) else PLAIN


def find_percent(text: str) -> int | None:
    """Return the percentage named in the folded text."""
    match = wording.pattern("phrases.percent").search(text)
    return int(match.group(1) or match.group(2)) if match else None


def _is_format(text: str, word: re.Match[str]) -> bool:
    """Whether the word is a shape for the picture, not a thing ("Times Square", "a square in red")."""
    before = text[: word.start()]
    is_thing = wording.pattern("phrases.not_a_format", flags=re.IGNORECASE).search(before)
    return not is_thing and not (not before.strip() and word.group(0).lower().startswith("a "))


def find_ratio(text: str) -> tuple[int, int] | None:
    """Return the ratio of width to height that the folded text asks for, in figures or in words."""
    match = wording.pattern("phrases.ratio").search(text)
    if match:
        width, height = (int(group) for group in match.groups() if group)
        return (width, height) if width and height else None
    for name, ratio in _RATIOS.items():
        word = _shape(name).search(text)
        if word and _is_format(text, word):
            return ratio
    return None


def _shape(name: str) -> re.Pattern[str]:
    return wording.pattern(f"shapes.{name}", flags=re.IGNORECASE)


@cache
def _size() -> re.Pattern[str]:
    """Return a pattern for sizes in pixels and formats: "3x4" is a format, "3x3" a grid, "20*30*40" a box."""
    pixels, measured = (wording.pattern(f"phrases.{name}").pattern for name in ("pixels", "measured"))
    return re.compile(
        rf"(?<![\d.:x×*])(?:(\d{{3,5}})\s*(?:px)?\s*[x×*]\s*(\d{{3,5}})\s*(?:{pixels})?"
        r"|(9|16|21)\s?[x×*]\s?(9|16|21)|([2345])\s?[x×*]\s?([2345]))"
        rf"(?!\s*(?:[\d.:x×*]|{measured}))",
        re.IGNORECASE,
    )


def find_shape(text: str) -> tuple[int, int] | None:
    """Return the ratio that the folded text asks for in a new picture.

    It is that of `find_ratio`, or the nearest format of a size in pixels.
    """
    if ratio := find_ratio(text):
        return ratio
    for size in _size().finditer(text):
        width, height = (int(side) for side in size.groups() if side)
        is_format = f"{width}:{height}" in _SHAPES
        if is_format or (size[1] and 0.2 < width / max(height, 1) < 5):
            across, down = nearest_shape(width, height).split(":")
            return int(across), int(down)
    return None


def nearest_shape(width: int, height: int, shapes: Sequence[str] = _SHAPES) -> str:
    """Return the ratio nearest to these sides, by default of the common ones; empty when there are none."""

    def distance(shape: str) -> float:
        across, down = map(int, shape.split(":"))
        return abs(log(across / down) - log(width / height))

    return min(shapes, key=distance, default="")


def without_ratio(text: str) -> str:
    """Return the text without the words for a ratio."""
    text = wording.pattern("phrases.ratio_name").sub(" ", text)
    text = re.sub(_surrounded(wording.pattern("phrases.ratio")), " ", text)
    if find_ratio(text) is None and find_shape(text) is not None:
        text = re.sub(_surrounded(_size()), " ", text, flags=re.IGNORECASE)
    for name in _RATIOS:
        word = _shape(name).search(text)
        if word and _is_format(text, word):
            rest = wording.pattern("phrases.after_shape", form=r"^\s*(?:{})").sub("", text[word.end() :])
            text = text[: word.start()] + " " + rest
    return text


def _surrounded(ratio: re.Pattern[str]) -> str:
    before, after = (wording.pattern(f"phrases.{side}_ratio").pattern for side in ("before", "after"))
    return f"(?:{before})?(?:{ratio.pattern})(?:{after})?"


def find_count(text: str) -> int | None:
    """Return how many pictures the folded text asks for, 1 to 4, or None when it does not say."""
    match = _count().search(text)
    if not match:
        return None
    word = (match.group(1) or match.group(2)).lower()
    if word.isdigit():
        return max(1, min(MAX_COUNT, int(word)))
    count = next(numbers[word] for numbers in map(_numbers, wording.LANGUAGES) if word in numbers)
    return count if count > 1 else None


def without_count(text: str) -> str:
    """Return the text without the words for the number of pictures."""
    return _count().sub(" ", text)


@cache
def _count() -> re.Pattern[str]:
    expressions = [
        wording.expand(
            language, "phrases", wording.section(language, "phrases")["count"], {"number": "|".join(_numbers(language))}
        )
        for language in wording.LANGUAGES
    ]
    return re.compile("|".join(expressions), re.IGNORECASE)


def _numbers(language: str) -> dict[str, int]:
    numbers: dict[str, int] = wording.section(language, "phrases")["numbers"]
    return numbers
