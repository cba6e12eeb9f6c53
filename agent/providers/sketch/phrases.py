"""Reads single values out of a sentence, English or Chinese: language, amounts, ratios, counts, handles, quotes."""

from __future__ import annotations

import re
import unicodedata
from math import log

from agent.adjusting import A_BIT, MUCH, PLAIN

_CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_HANDLE = re.compile(r"#(\d{1,4}[a-z]?)(?![0-9a-z])")
_QUOTED = re.compile(
    r"“([^”]{1,400})”|\"([^\"]{1,400})\"|「([^」]{1,400})」|『([^』]{1,400})』|《([^》]{1,400})》"
    r"|‘([^’]{1,400})’|«([^»]{1,400})»|(?<![\w])'([^']{1,400})'(?![\w])|`([^`]{1,400})`"
)

_LITTLE = re.compile(
    r"\b(?:a (?:(?:tiny|little|wee) )?(?:bit|little|touch|tad)|slight(?:ly)?|subtly|gently|somewhat|a hint)\b"
    r"|一点|稍|略|轻微|微微|少许"
)
_LOT = re.compile(
    r"\b(?:much|a lot|lots|very|far|way|really|strongly|heavily|significantly|dramatically|extremely|super)\b"
    r"|很多|许多|大幅|非常|多了|得多|特别|极|大大|强烈|狠狠"
)
_PERCENT = re.compile(r"(\d{1,3})(?:\.\d+)?\s*(?:%|percent|per cent)|百分之(\d{1,3})")

_SIGNED = re.compile(r"([+\-−–])\s?(\d{1,3})(?![\d.])")

_RATIO = re.compile(r"(?<![\d.:])(\d{1,2})\s*[:：/]\s*(\d{1,2})(?![\d.:])|(\d{1,2})\s*比\s*(\d{1,2})")
_SHAPES = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "9:21", "21:9")
# Sizes in pixels, and formats with a sign for "times": "3x4" is one, "3x3" a grid, "20*30*40" a box.
_SIZE = re.compile(
    r"(?<![\d.:x×*])(?:(\d{3,5})\s*(?:px)?\s*[x×*]\s*(\d{3,5})\s*(?:px|pixels?|像素)?"
    r"|(9|16|21)\s?[x×*]\s?(9|16|21)|([2345])\s?[x×*]\s?([2345]))"
    r"(?!\s*(?:[\d.:x×*]|(?:[cm]?m|in|ft|inch(?:es)?|feet|met(?:er|re)s?|grid|matrix|collage|block|brick|lego|truck)s?\b"
    r"|厘米|毫米|公分|米|寸|网格|宫格|拼图))",
    re.IGNORECASE,
)
_RATIO_WORDS: tuple[tuple[re.Pattern[str], tuple[int, int]], ...] = (
    (re.compile(r"正方形?|方形|方图|方的?(?=构图|画幅|图)", re.IGNORECASE), (1, 1)),
    (
        re.compile(
            r"\b(?:in |as |to |into )?(?:a )?square(?= (?:format|picture|image|photo|crop|version|canvas|poster|logo"
            r"|frame|shape|ratio|aspect|one)\b|[\s]*(?:[,.;!?]|$|and\b|then\b|with\b|please\b|(?:for"
            r"|on) (?:instagram|insta|facebook|social|the web)\b))",
            re.IGNORECASE,
        ),
        (1, 1),
    ),
    (re.compile(r"\b(?:phone wallpaper|story format)\b|手机壁纸|手机屏", re.IGNORECASE), (9, 16)),
    (
        re.compile(
            r"\b(?:cinematic|ultra-?wide|panorama(?: format)?)\b(?: format)?|电影画幅|全景画幅|超宽", re.IGNORECASE
        ),
        (21, 9),
    ),
    (re.compile(r"\b(?:wide-?screen)\b(?: format)?|宽屏", re.IGNORECASE), (16, 9)),
    (
        re.compile(
            r"\b(?:in )?(?:landscape|horizontal)[ -](?:format|orientation|mode|layout|image|ratio)\b"
            r"|横版|横幅|横构图|的?横图",
            re.IGNORECASE,
        ),
        (16, 9),
    ),
    (
        re.compile(
            r"(?:(?<=\bit )|(?<=\bthis )|(?<=\bimage )|(?<=\bpicture )|(?<=\bphoto ))(?:portrait|vertical|upright)"
            r"(?=\s*(?:$|[,.;!]))|"
            r"\b(?:in )?(?:portrait|vertical|upright)[ -](?:format|orientation|mode|layout|ratio)\b"
            r"|\b(?:to|in|as)(?: a)? (?:portrait|vertical)\b(?! of)|,\s*(?:portrait|vertical)(?=\s*(?:$|[,.;!]))"
            r"|竖版|竖幅|竖构图|竖屏|的?竖图",
            re.IGNORECASE,
        ),
        (3, 4),
    ),
    (re.compile(r"\b(?:to|in|as)(?: a)? (?:landscape|horizontal)\b(?=\s*(?:$|[,.;!]))", re.IGNORECASE), (16, 9)),
)
_NOT_A_FORMAT = re.compile(
    r"\b(?:times|town|city|market|red|blue|green|yellow|black|white|trafalgar|village|main|public|draw|paint"
    r"|sketch)\s+(?:in )?(?:a )?$",
    re.IGNORECASE,
)

_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "a couple of": 2, "a few": 3, "several": 3, "both": 2}
_NUMBERS |= {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "几": 3}
_NUMBER = r"(?:\d{1,2}|one|two|three|four|a couple of|a few|several)"
_COUNT = re.compile(
    rf"\b({_NUMBER})\s+(?:different |more |nice |new )?(?:pictures?|images?|versions?|variations?|variants?|options?"
    r"|drawings?|sketch(?:es)?|paintings?|illustrations?|posters?|photos?|wallpapers?|logos?|takes)(?: of| for)?\b"
    r"|(\d{1,2}|[一两二三四几])\s*(?:张|幅|个版本|个方案|款|副)",
    re.IGNORECASE,
)
MAX_COUNT = 4


def fold(text: str) -> str:
    """Return the text in lower case with full-width letters, digits and punctuation made plain; length may change."""
    return unicodedata.normalize("NFKC", text).lower().replace("’", "'").replace("×", "x")


def is_chinese(text: str) -> bool:
    """Whether the text holds any Chinese character."""
    return _CJK.search(text) is not None


def has_words(text: str) -> bool:
    """Whether the text holds any letter or digit, of any script."""
    return any(unicodedata.category(char)[0] in "LN" for char in text)


def find_handles(text: str) -> tuple[str, ...]:
    """Return the handles named in the text, such as `#3`, in order and once each."""
    return tuple(dict.fromkeys("#" + match for match in _HANDLE.findall(fold(text))))


def without_handles(text: str, instead: str = " ") -> str:
    """Return the folded text with handles taken out, and what shall stand there instead."""
    return _HANDLE.sub(instead, text)


def find_quoted(text: str) -> tuple[str, ...]:
    """Return what stands in quotation marks of any kind, in order."""
    found = (next((group for group in match.groups() if group), "") for match in _QUOTED.finditer(text))
    return tuple(words.strip() for words in found if words.strip())


def blank_quoted(text: str) -> str:
    """Return the text with what stands in quotation marks, and the marks, replaced by one `§` each."""
    return _QUOTED.sub(" § ", text)


def find_amount(text: str) -> int:
    """Return how much of a change the folded text asks for, 1 to 100; the amount of a plain wish when it is silent."""
    percent = find_percent(text)
    if percent is not None:
        return min(100, max(1, percent))
    if _LITTLE.search(text):
        return A_BIT
    return MUCH if _LOT.search(text) else PLAIN


def find_signed(text: str) -> int | None:
    """Return the number with a plus or minus in the folded text, held to -100 to 100, or None when there is none."""
    match = _SIGNED.search(text)
    if match is None:
        return None
    return max(-100, min(100, int(match[2]) * (1 if match[1] == "+" else -1)))


def find_percent(text: str) -> int | None:
    """Return the percentage named in the folded text."""
    match = _PERCENT.search(text)
    return int(match.group(1) or match.group(2)) if match else None


def _is_format(text: str, word: re.Match[str]) -> bool:
    """Whether the word is a shape for the picture and not a thing ("Times Square", "a square in red")."""
    before = text[: word.start()]
    return not _NOT_A_FORMAT.search(before) and not (not before.strip() and word.group(0).lower().startswith("a "))


def find_ratio(text: str) -> tuple[int, int] | None:
    """Return the ratio of width to height that the folded text asks for, in figures or in words."""
    match = _RATIO.search(text)
    if match:
        width, height = (int(group) for group in match.groups() if group)
        return (width, height) if width and height else None
    for pattern, ratio in _RATIO_WORDS:
        word = pattern.search(text)
        if word and _is_format(text, word):
            return ratio
    return None


def find_shape(text: str) -> tuple[int, int] | None:
    """Return the ratio that the folded text asks a new picture to have: as `find_ratio`, or the nearest format of a
    size in pixels."""
    if ratio := find_ratio(text):
        return ratio
    for size in _SIZE.finditer(text):
        width, height = (int(side) for side in size.groups() if side)
        is_format = f"{width}:{height}" in _SHAPES
        if is_format or (size[1] and 0.2 < width / max(height, 1) < 5):
            return nearest_shape(width, height)
    return None


def nearest_shape(width: int, height: int) -> tuple[int, int]:
    """Return the common ratio that is nearest to these sides."""
    sides = [tuple(map(int, shape.split(":"))) for shape in _SHAPES]
    across, down = min(sides, key=lambda one: abs(log(one[0] / one[1]) - log(width / height)))
    return across, down


def without_ratio(text: str) -> str:
    """Return the text without the words that name a ratio."""
    text = re.sub(
        r"\b(?:in|at|with)?\s*(?:an? )?(?:aspect ratio|ratio)(?: of)?\b|的?(?:宽高比|画幅|比例)(?:为|是)?", " ", text
    )
    text = re.sub(r"(?:\b(?:in|at|as)\s+)?" + f"(?:{_RATIO.pattern})(?:\\s*的)?", " ", text)
    if find_ratio(text) is None and find_shape(text) is not None:
        text = re.sub(r"(?:\b(?:in|at|as)\s+)?" + f"(?:{_SIZE.pattern})(?:\\s*的)?", " ", text, flags=re.IGNORECASE)
    for pattern, _ in _RATIO_WORDS:
        word = pattern.search(text)
        if word and _is_format(text, word):
            text = text[: word.start()] + " " + re.sub(r"^\s*(?:format|picture|image|的)", "", text[word.end() :])
    return text


def find_count(text: str) -> int | None:
    """Return how many pictures the folded text asks for, 1 to 4, or None when it does not say."""
    match = _COUNT.search(text)
    if not match:
        return None
    word = (match.group(1) or match.group(2)).lower()
    count = int(word) if word.isdigit() else _NUMBERS[word]
    return None if word in {"一", "one"} else max(1, min(MAX_COUNT, count))


def without_count(text: str) -> str:
    """Return the text without the words that say how many pictures."""
    return _COUNT.sub(" ", text)
