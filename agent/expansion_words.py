"""Whether words ask for more around a picture: "outpaint to 16:9", "show more on the left", 扩展画面到16:9.

The whole message has to be such a request, or begin with one and say with "with" or a comma what shall be there.
"crop to 16:9" and "extend the fence" are other requests, and left alone.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_MOST_CHARACTERS = 2000
# How much a side grows when nobody says how much.
_SHARE = 0.25
_SIDES = ("left", "top", "right", "bottom")


@dataclass(frozen=True)
class ExpansionWish:
    """To which ratio (width to height) a picture shall grow, or on which sides; on all when neither is said.

    `rest` is what the words say besides.
    """

    ratio: float | None = None
    sides: frozenset[str] = frozenset(_SIDES)
    rest: str = ""

    def shares(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Return how far a picture of this size grows (left, top, right, bottom), in parts of its width and height.

        All are 0 when it has the ratio already.
        """
        if self.ratio is not None:
            wider = max(0.0, self.ratio * height / width - 1) / 2
            higher = max(0.0, width / self.ratio / height - 1) / 2
            # Less than a pixel in two hundred is the ratio already.
            wider, higher = (share if share >= 0.0025 else 0.0 for share in (wider, higher))
            return wider, higher, wider, higher
        left, top, right, bottom = (_SHARE if side in self.sides else 0.0 for side in _SIDES)
        return left, top, right, bottom


_RATIO = r"(?P<wide>\d{1,2}(?:\.\d{1,2})?)\s*(?::|/|x|by|比|比例)\s*(?P<high>\d{1,2}(?:\.\d{1,2})?)"
_LEAD = r"(?:(?:please|pls|now|then|and|ok(?:ay)?|just|(?:can|could|would|will) you|i want (?:you )?to|let'?s)[\s,]+)*"
_PICTURE = r"(?:picture|image|photo|pic|canvas|frame|scene|view|background|drawing|painting)"
_OBJECT = rf"(?:it|this|that|(?:the|my|this|that) {_PICTURE}|#\d+[a-z]*)"
_SIDE = (
    r"(?:(?:to|on|at|towards?|beyond) )?(?:(?:the|both|all|its|four) )*"
    r"(?P<side>left|right|top|bottom|above|below|up(?:wards?)?|down(?:wards?)?|sideways|sides|edges|around|"
    r"all around|outwards?)(?: (?:side|edge|sides|edges|and right|of it))?"
)
_A_BIT = r"(?:a (?:little )?(?:bit|little)(?: more)?|some more|further|more|slightly|much)"
_ENGLISH = re.compile(
    rf"{_LEAD}(?:"
    rf"(?:outpaint|out-paint|uncrop|un-crop|extend|expand|widen)(?: {_OBJECT})?(?: {_A_BIT})?"
    rf"(?: (?:in)?to (?:an? )?{_RATIO}(?: (?:ratio|format|aspect ratio))?)?(?: {_SIDE})?(?: {_A_BIT})?"
    rf"|zoom out(?: of {_OBJECT})?(?: {_A_BIT})?"
    r"|(?:show|paint|draw|add|give|make|let me see|i want to see)(?: me| us)? (?:some |a bit |a little )?more"
    rf"(?: (?:room|space|of (?:it|the (?:scene|surroundings?|background|{_PICTURE}))|background|surroundings?))?"
    r" (?P<around>around|on|to|above|below|beyond|at)"
    r"(?: (?:it|them|him|her|that|this|the (?:picture|subject|photo|image|edges?)))?"
    r"(?: ?(?:the )?(?P<place>left|right|top|bottom|sides|edges)(?: (?:side|of it))?)?"
    r")",
    re.IGNORECASE,
)
_ENGLISH_END = re.compile(
    r"[\s.!?]*$|,\s*(?:please|thanks|thank you)[\s.!]*$|(?:,|\s+with\b|\s+and\b)\s*(?P<rest>.+)$", re.DOTALL
)
_SIDE_ZH = r"(?P<side>左右|上下|左|右|上|下|四周|周围|两边|两侧|四面|外|外面)(?:边|侧|方|面|边缘|侧面)?"
_A_BIT_ZH = r"(?:一点儿?|一些|一下|点|些|开|出去|大)?"
_CHINESE = re.compile(
    r"(?:请|帮我|帮忙|麻烦|再|可以|能不能|现在|，|,)*(?:[把将给](?:它|这张图|这幅图|画面|图片|照片|图像|图|画布|背景)的?)?"
    rf"(?:画面|图片|照片|图像|画布)?(?:[往向朝在]?{_SIDE_ZH})?再?(?:多)?"
    r"(?:扩展|扩图|外扩|扩充|扩画|延展|延伸|拓展|扩)"
    rf"{_A_BIT_ZH}(?:画面|图片|照片|图像|图|画布|背景)?{_A_BIT_ZH}"
    rf"(?:[到成为至]?(?:比例)?(?:为)?{_RATIO}(?:的?(?:比例|画幅|尺寸))?)?(?:[吧吗呢了好]|一下)*"
    r"|(?:请|帮我|再)?(?:多)?(?:露出|显示|看到|画出|给我看)(?:更多|多一点|多一些)的?"
    r"(?:周围|四周|背景|环境|外面)的?(?:画面|内容|环境|景物)?"
)
_CHINESE_END = re.compile(r"[\s。！？!?.]*$|[，,]\s*(?P<rest>.+)$", re.DOTALL)
_MEANT: dict[str, frozenset[str]] = {
    **{word: frozenset({"left"}) for word in ("left", "左")},
    **{word: frozenset({"right"}) for word in ("right", "右")},
    **{word: frozenset({"top"}) for word in ("top", "above", "up", "upward", "upwards", "上")},
    **{word: frozenset({"bottom"}) for word in ("bottom", "below", "down", "downward", "downwards", "下")},
    **{word: frozenset({"left", "right"}) for word in ("sides", "sideways", "左右", "两边", "两侧")},
    **{word: frozenset({"top", "bottom"}) for word in ("上下",)},
}
_ALL_SIDES = re.compile(r"\b(?:all|four) sides\b", re.IGNORECASE)


def read_expansion(text: str) -> ExpansionWish | None:
    """Return what the words want to have around a picture; None when they ask for anything else."""
    words = unicodedata.normalize("NFKC", text).strip()
    if not words or len(words) > _MOST_CHARACTERS:
        return None
    for pattern, end in ((_ENGLISH, _ENGLISH_END), (_CHINESE, _CHINESE_END)):
        found = pattern.match(words)
        rest = end.match(words, found.end()) if found and found.end() else None
        if found and rest:
            return _wish(found, rest["rest"] or "")
    return None


def _wish(found: re.Match[str], rest: str) -> ExpansionWish | None:
    said = found.groupdict()
    if said.get("wide") and said.get("high"):
        wide, high = float(said["wide"]), float(said["high"])
        return ExpansionWish(ratio=wide / high, rest=rest) if wide and high else None
    side = (said.get("side") or said.get("place") or said.get("around") or "").lower()
    is_all = bool(_ALL_SIDES.search(found.group()))
    return ExpansionWish(sides=frozenset(_SIDES) if is_all else _MEANT.get(side, frozenset(_SIDES)), rest=rest)
