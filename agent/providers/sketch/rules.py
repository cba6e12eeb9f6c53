"""The table of phrases: which words of a clause ask for which pixel operation, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent.adjusting import Adjustment, CropRatio, Flip
from agent.providers.sketch.operations import Effect, EffectKind, Operation, ResizeBy, ResizeTo
from agent.providers.sketch.phrases import find_amount, find_percent, find_ratio, find_signed

_FLIPPED = r"(?:\b(?:too|less|not so|not as|not that)\s+)|太|过于|过(?=[亮暗])|(?:没那么|别那么|不要那么|不那么)"


@dataclass
class Clause:
    """A clause being read: its words with what is understood blanked out, and the direction it goes."""

    words: str
    original: str
    direction: int


Maker: TypeAlias = Callable[[Clause, re.Match[str]], Operation | None]


def _zh(word: str) -> str:
    changes = r"(?:变|调|提|更|再|加|弄|改|搞|太|过于|过|那么)(?:得|成|更)?"
    by_how_much = r"(?:一[点些下]|[点些]|多了|很多|起来)"
    return rf"{changes}{word}|{word}{by_how_much}|{word}(?=\s*(?:\d|百分之))"


def _adjective(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<flip>{_FLIPPED})?(?:\b(?:{english})\b|{_zh(chinese)})")


def _comparative(tone: str, sign: int) -> Maker:
    def make(clause: Clause, match: re.Match[str]) -> Operation:
        is_flipped = bool(match.group("flip")) or match.group(0).startswith(("太", "过", "那么"))
        return _toned(tone, (-sign if is_flipped else sign) * find_amount(clause.original))

    return make


_OPEN = re.compile(r"\b(?:adjust|change|set|edit|modify|tweak)\b|[调改]")
_SAYS_HOW = re.compile(
    r"\b(?:more|less|increase|decrease|reduce|raise|boost|lower|higher|up|down|add|enhance|extra|pump|crank|stronger|weaker"
    r"|drop|cut|lessen|too|not enough|high|low|strong|bump|improve)\b|\d"
    r"|[高升增加强大降减低弱小太更]|提"
)


def _noun(tone: str) -> Maker:
    def make(clause: Clause, match: re.Match[str]) -> Operation | None:
        signed = find_signed(clause.original[match.end() :])
        # "Adjust the brightness": nobody can tell which way.
        if signed is None and _OPEN.search(clause.original) and not _SAYS_HOW.search(clause.original):
            return None
        too_much = bool(re.search(r"\btoo\b|太", clause.original))
        sign = -1 if (clause.direction < 0) is not too_much else 1
        return _toned(tone, signed or sign * find_amount(clause.original))

    return make


def _tone(tone: str, sign: int) -> Maker:
    return lambda clause, match: _toned(tone, sign * find_amount(clause.original))


def _effect(kind: EffectKind) -> Maker:
    return lambda clause, match: Effect(kind, find_amount(clause.original))


def _toned(tone: str, amount: int) -> Adjustment:
    return Adjustment.model_validate({tone: amount})


def _grey(clause: Clause, match: re.Match[str]) -> Operation:
    return Adjustment(saturation=-100)


def _desaturate(clause: Clause, match: re.Match[str]) -> Operation:
    is_partly = re.search(r"slight|bit|little|some|partly|\d", clause.original)
    return Adjustment(saturation=-find_amount(clause.original) if is_partly else -100)


def _rotate(clause: Clause, match: re.Match[str]) -> Operation | None:
    words = clause.original
    angle = re.search(r"(-?\d{1,3}(?:\.\d+)?)\s*(?:°|degrees?\b|deg\b|度)|\bby\s+(-?\d{1,3})\b", words)
    degrees = float(angle.group(1) or angle.group(2)) if angle else 90.0
    if not angle and re.search(r"\b(?:flip|mirror)", words):
        # "Flip it upside down" is one thing, not two that undo each other.
        return None
    if not angle and re.search(r"upside down|颠倒|倒过来|half a turn|around", words):
        degrees = 180.0
    goes_left = re.search(r"counter-?\s*clockwise|anti-?\s*clockwise|\bleft\b|逆时针|向左|往左|左转|左旋", words)
    turn = Adjustment(rotate=-degrees if goes_left else degrees)
    return None if turn.is_identity else turn


def _flip(clause: Clause, match: re.Match[str]) -> Operation:
    is_vertical = re.search(r"vertical|upside|top to bottom|垂直|上下|竖直|纵向", clause.original)
    return Adjustment(flip=Flip.VERTICAL if is_vertical else Flip.HORIZONTAL)


def _crop(clause: Clause, match: re.Match[str]) -> Operation | None:
    ratio = find_ratio(clause.original)
    if ratio is None and re.search(r"\bportrait|vertical\b", clause.original):
        ratio = (3, 4)
    return cropped_to(*ratio) if ratio else None


def cropped_to(width: int, height: int) -> Adjustment:
    """Return the crop to the largest middle part of the ratio; each side is 1 to 100."""
    return Adjustment(crop=CropRatio(width=width, height=height))


_SIDES = re.compile(r"(\d{2,5})\s*(?:px|像素)?\s*(?:x|\*|乘|by)\s*(\d{2,5})")
_WIDE = re.compile(
    r"(\d{2,5})\s*(?:px|pixels?)?\s*(?:wide|in width|across)\b|(\d{2,5})\s*(?:px|像素)?\s*的?宽"
    r"|width\s*(?:of|to|=)?\s*(\d{2,5})|宽度?(?:为|到|成)?\s*(\d{2,5})"
)
_HIGH = re.compile(
    r"(\d{2,5})\s*(?:px|pixels?)?\s*(?:high|tall|in height)\b|(\d{2,5})\s*(?:px|像素)?\s*的?高"
    r"|height\s*(?:of|to|=)?\s*(\d{2,5})|高度?(?:为|到|成)?\s*(\d{2,5})"
)
_TIMES = re.compile(r"(\d(?:\.\d+)?)\s*(?:x\b|times\b|倍)")


def _resize(clause: Clause, match: re.Match[str]) -> Operation | None:
    words = clause.original
    sides = _SIDES.search(words)
    if sides:
        return ResizeTo(int(sides.group(1)), int(sides.group(2)))
    wide, high = _first_number(_WIDE, words), _first_number(_HIGH, words)
    if wide or high:
        return ResizeTo(wide, high)
    factor = _factor(words)
    return ResizeBy(factor) if factor else None


def _first_number(pattern: re.Pattern[str], words: str) -> int | None:
    match = pattern.search(words)
    return int(next(group for group in match.groups() if group)) if match else None


def _factor(words: str) -> float | None:
    percent = find_percent(words)
    times = _TIMES.search(words)
    if percent:
        goes_by = re.search(r"\bby\b|smaller|larger|bigger|小了|大了", words)
        if not goes_by:
            return percent / 100
        return max(0.01, 1 - percent / 100 if re.search(r"small|shrink|reduce|小", words) else 1 + percent / 100)
    if times:
        return float(times.group(1))
    if re.search(r"\bhalf\b|一半|减半", words):
        return 0.5
    if re.search(r"\b(?:double|twice)\b|两倍|加倍|一倍", words):
        return 2.0
    if re.search(r"\b(?:smaller|shrink)\b|缩小|小一[点些]", words):
        return 0.75
    return 1.5 if re.search(r"\b(?:bigger|larger|enlarge|upscale)\b|放大|大一[点些]", words) else None


_GRAY = r"gr[ae]y-?\s?scale|monochrome|colou?rless|黑白|灰度|去色|单色"
_TURN = (
    r"rotat\w+|turn(?= (?:it |this |that |the \w+ )?"
    r"(?:left|right|around|by|upside|\d+(?:\.\d+)? ?(?:°|deg)|clockwise|counter|anti))"
)
RULES: tuple[tuple[re.Pattern[str], Maker], ...] = (
    (re.compile(rf"(?:{_TURN}|\bupside down\b|旋转|逆时针|顺时针|[左右]转|转(?=\s*\d)|颠倒|倒过来)[^§]*"), _rotate),
    (
        re.compile(r"\b(?:flip\w*|mirror\w*)\b[^§]*|翻转|镜像|(?:左右|上下|水平|垂直)(?:翻转|翻|对调|镜像)|对称翻"),
        _flip,
    ),
    (
        re.compile(
            r"\b(?:resiz\w+|scal\w+|shrink\w*|enlarge\w*|upscal\w+|downscal\w+|(?:half|double|twice) (?:the "
            r"|its )?size|(?:half|twice|\w+ times) as (?:large|big|wide|small|high))\b[^§]*"
            r"|\b\d{2,5}\s*x\s*\d{2,5}\b|\b(?:smaller|bigger|larger)\b|缩小\S*|缩放\S*|放大\S*|尺寸\S*|(?:改"
            r"|调整?)大小\S*|大小(?:改|调)\S*|\d+\s*像素"
        ),
        _resize,
    ),
    (re.compile(r"\bcrop\w*[^§]*|\btrim\w*[^§]*|裁[剪切成为到]?\S*|剪裁\S*"), _crop),
    (
        re.compile(
            r"\b(?:less|not so|too|de-?)\s*(?:blurry|blurred|blur|soft|fuzzy)\b|太模糊|太糊|模糊了|不清楚|不够清晰"
        ),
        _tone("sharpness", 1),
    ),
    (re.compile(r"\b(?:less sharp|softer|too sharp)\b"), _tone("sharpness", -1)),
    (re.compile(r"\bsharp(?:en\w*|er|ness)?\b|\bcrisper\b|锐化|更?清晰|锐利|锐度"), _tone("sharpness", 1)),
    (re.compile(r"\bblur\w*\b|\bsoften\w*\b|模糊|虚化|柔化|朦胧"), _effect(EffectKind.BLUR)),
    (
        re.compile(
            r"\bpixel(?:at\w+|i[sz]e\w*)\b|\bcensor\w*\b|(?:打|加|上|做)(?:上|个|点)?马赛克|马赛克(?:处理|化)|打码|像素化"
        ),
        _effect(EffectKind.PIXELATE),
    ),
    (re.compile(r"\bde-?saturat\w+"), _desaturate),
    (re.compile(rf"\b(?:{_GRAY})\b|黑白|灰度|去色|单色"), _grey),
    (
        re.compile(r"\b(?:sepia|vintage|old[- ]photo(?:graph)?)\b|复古|怀旧|老照片|泛黄|棕褐色"),
        _effect(EffectKind.SEPIA),
    ),
    (
        re.compile(r"\binvert\w*\b|\b(?:photo |colou?r |a )negative\b|反色|反相|负片|反转颜色|颜色反转"),
        _effect(EffectKind.INVERT),
    ),
    (re.compile(r"contrast\w*|对比度?"), _noun("contrast")),
    (re.compile(r"\bsaturation\b|\bcolou?r intensity\b|饱和度?|色彩浓度"), _noun("saturation")),
    (re.compile(r"\bbrightness\b|\bexposure\b|亮度|曝光度?"), _noun("brightness")),
    (re.compile(r"\bwarmth\b|\bcolou?r temperature\b|色温"), _noun("warmth")),
    (
        _adjective(
            r"(?:more )?(?:saturated|saturate|vivid|vibrant|colou?rful)|punchier|richer", r"(?:鲜艳|鲜明|艳|浓郁)"
        ),
        _comparative("saturation", 1),
    ),
    (_adjective(r"(?:more )?(?:muted|faded|pale)|paler|fade", r"(?:淡|素|柔和)"), _comparative("saturation", -1)),
    (_adjective(r"bright(?:er|en\w*)?|light(?:er|en\w*)", r"(?:明亮|(?<![月漂])亮)"), _comparative("brightness", 1)),
    (_adjective(r"dark(?:er|en\w*)?|dim(?:mer)?|moodier", r"(?:昏暗|暗|黑)"), _comparative("brightness", -1)),
    (_adjective(r"warm(?:er)?", r"暖和?"), _comparative("warmth", 1)),
    (re.compile(r"(?P<flip>(?!))?(?:暖(?:色|调)\S?)"), _comparative("warmth", 1)),
    (
        _adjective(
            r"cooler|cool(?: it| this| them| the \w+)? down|cool(?=er| tones?| colou?rs?)|cold(?:er)?|bluer",
            r"(?<!寒)冷",
        ),
        _comparative("warmth", -1),
    ),
    (re.compile(r"(?P<flip>(?!))?(?:冷(?:色|调)\S?)"), _comparative("warmth", -1)),
)
NEEDS: dict[Maker, str] = {_crop: "shape", _resize: "size"}
