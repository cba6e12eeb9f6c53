"""Reads what is to be drawn out of a wish: the subject, the description and the style; or that it is the same once
more, and the mark by which a prompt says which take it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from agent.providers.sketch.phrases import (
    blank_quoted,
    find_count,
    find_handles,
    fold,
    is_chinese,
    without_count,
    without_handles,
    without_ratio,
)

_MAX_SUBJECT_CHARACTERS = 160

_POLITE = re.compile(
    r"^(?:(?:hi|hello|hey|ok(?:ay)?|so|now|well|then|please|pls|kindly|just|sketch|aivista)\b[\s,!.:]*"
    r"|(?:can|could|would|will) you(?: please| kindly)?\s+|(?:i want|i'd like|i would like) you to\s+|let's\s+"
    r"|let us\s+|try to\s+"
    r"|(?:你好|您好|嗨|好的|现在|那么?|麻烦|请|能不能|可不可以|能否|可以|你能|你可以|帮我|帮忙|给我|为我|替我"
    r"|我想让你|我要你)[\s,，!！。]*)+",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^(?:(?:draw|paint|sketch|illustrate|doodle|depict|generate|render|imagine|make|create|design|produce"
    r"|compose|craft)\b"
    r"|i (?:want|need|wish for)|i(?:'d| would) like|(?:how|what) about|give|show|(?:can|could) i (?:have"
    r"|get))(?:\s+(?:me|us"
    r"|to see|to have))*\s*"
    r"|^(?:我)?(?:想要?|要|需要)?(?:画出?|绘制|绘出?|生成|设计|制作|创作|做|来|给我|看)(?:一下|出)?\s*"
    r"|^我?(?:想要|需要|想看|要)\s*",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"^(?:an?|the|some|one|another|new)?\s*(?:(?:nice|new|beautiful|simple|quick|little|good)\s+)*"
    r"(?:picture|image|drawing|sketch|painting|illustration|photo|photograph|artwork|scene)s?\s*(?:of|showing"
    r"|with|about|where|:)\s+",
    re.IGNORECASE,
)
_KIND_ZH = re.compile(r"^(?:[一两二三四几]?[张幅款个副])?(?:关于|有关|以)?(?:[只条朵位座棵辆](?=.))?(?=.)")
_KIND_ZH_TAIL = re.compile(r"(?<=.)(?:的(?:图片?|画|图像|照片|草图|插图|作品))$")
_EMPTY_SUBJECTS = re.compile(
    r"^(?:an?|the|some|any|one|another|new|nice|beautiful|good|of|for|me|us|picture|image|drawing|sketch"
    r"|painting|photo|illustration|something"
    r"|anything|stuff|things?|it|this|that|please|now|art|s|图片?|画|图像|照片|东西|点|什么|些|一|张|幅|个|吧"
    r"|呢|啊|再|又|来|换|点什么|随便|好看|的|下|一下|\s)*$",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,，。.!！?？;；:：、]*(?:\bplease\b|\bpls\b|\bthanks?\b|\bthank you\b|谢谢|可以吗|好吗|行吗|吧"
    r"|吗)?[\s,，。.!！?？;；:：、]*$",
    re.IGNORECASE,
)

_STYLES: tuple[tuple[str, str, str], ...] = (
    ("watercolour", r"\bwater-?colou?rs?\b", "水彩"),
    ("oil painting", r"\boil paint\w*\b|\boils\b", "油画"),
    ("ink wash", r"\bink(?: wash| painting)?\b|\bsumi-?e\b", "水墨|国画|工笔"),
    ("pencil", r"\bpencil\b|\bcharcoal\b", "铅笔|素描|炭笔"),
    ("pastel", r"\bpastels?\b|\bcrayons?\b", "粉彩|蜡笔"),
    ("pixel art", r"\bpixel[- ]art\b|\b8-?bit\b", "像素"),
    ("cartoon", r"\bcartoon(?:ish|y)?\b|\bcomic\b", "卡通|漫画"),
    ("anime", r"\banime\b|\bmanga\b|\bghibli\b", "动漫|日漫|二次元"),
    ("3D render", r"\b3d\b|\bclay\b", "三维|黏土|3d"),
    ("poster", r"\bposter\b", "海报"),
    ("minimal", r"\bminimal(?:ist|istic|ism)?\b|\bflat\b", "极简|简约|扁平"),
    ("photo", r"\bphoto(?:graph|realistic|graphic)?\b|\brealistic\b", "写实|摄影|照片"),
    ("line art", r"\bline[- ]?art\b|\bline drawing\b", "线稿|线描"),
    ("cyberpunk", r"\bcyberpunk\b|\bneon\b", "赛博朋克|霓虹"),
    ("retro", r"\bvintage\b|\bretro\b", "复古|怀旧"),
    ("abstract", r"\babstract\b", "抽象"),
)
_STYLE_TABLE = tuple((name, re.compile(f"{english}|{chinese}")) for name, english, chinese in _STYLES)


def find_subject(text: str) -> tuple[str, str]:
    """Return the subject for a caption and the full description, both empty when nothing is named."""
    description = _without_asking(text)
    if _EMPTY_SUBJECTS.match(description):
        return "", ""
    subject = re.sub(r"\s+", " ", _without_ratio_and_tail(description)) or description
    return _shorten(subject), description


def _without_politeness(text: str) -> str:
    """Return the text without the words of politeness and the punctuation around a wish."""
    return _TAIL.sub("", _POLITE.sub("", text.strip()))


def find_style(folded: str) -> str:
    """Return the style that the folded text names, in English words, or an empty text."""
    return next((name for name, pattern in _STYLE_TABLE if pattern.search(folded)), "")


def _without_ratio_and_tail(text: str) -> str:
    """Return the text without words for shape and count, and without loose punctuation at its ends."""
    kept = without_ratio(text)
    kept = re.sub(r"\s*[,，]\s*(?=[,，。.]|$)", "", kept)
    return _TAIL.sub("", kept).strip(" ,，。.;；:：、")


def _without_asking(text: str) -> str:
    words = re.sub(r"\s+", " ", text).strip()
    words = _POLITE.sub("", words)
    words = _ASKING.sub("", words, count=1)
    words = _POLITE.sub("", words)
    words = without_count(words)
    words = re.sub(
        r"(?:[,\s]*\b(?:and|then)\b|,)\s*(?:then\s+)?(?:make|turn|crop|rotate|flip) (?:it|the)\b.*$", "", words
    )
    words = re.sub(r"^\s*(?:of|for|:|：|,|，)\s*", "", words)
    words = _KIND.sub("", words)
    words = _KIND_ZH.sub("", words)
    words = _KIND_ZH_TAIL.sub("", _TAIL.sub("", words))
    return _without_ratio_and_tail(words)


def _shorten(subject: str) -> str:
    if len(subject) <= _MAX_SUBJECT_CHARACTERS:
        return subject
    return subject[: _MAX_SUBJECT_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(" ,，。") + "…"


# ---- the same wish once more


class RetakeKind(StrEnum):
    """AGAIN paints the wish anew, VARIATION also arranges it otherwise."""

    AGAIN = "again"
    VARIATION = "variation"


@dataclass(frozen=True)
class Retake:
    """A wish that was painted before, to be painted once more. `handles` name a picture of it, the first counts."""

    kind: RetakeKind
    number_of_images: int | None = None
    handles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Take:
    """Which take of its wish a picture is; the first is 1."""

    number: int = 1
    is_variation: bool = False

    @property
    def mark(self) -> str:
        """How a prompt says it: nothing for the first take."""
        if self.number == 1 and not self.is_variation:
            return ""
        return f"[{RetakeKind.VARIATION if self.is_variation else 'take'} {self.number}]"


FIRST_TAKE = Take()
_MARK = re.compile(r"\[(take|variation) ([1-9]\d{0,3})\]", re.IGNORECASE)

_PICTURE = r"(?:picture|image|photo|pic|sketch|drawing|painting|one)"
_TARGET = rf"(?: (?:it|this|that|(?:this|that|the|my)(?: last| same)? {_PICTURE}))?"
_MORE = r"(?:once more|one more time|(?:over )?again|anew|afresh)"
_VERB = r"(?:paint|draw|sketch|make|generate|render|create|do|try)"
_ASK = rf"(?:(?:{_VERB}|give|show)(?: me| us)? )?"
_MANY = r"(?:an?|another|one|two|three|four|some|a few|several|[1-4])"
_PICTURE_ZH = r"(?:[把将给按为]?(?:这|那|此|该)?(?:[张幅个])?(?:图片|图|画|照片|草图)|[把将给]?它)?"
_SAME_ZH = r"(?:按照?)?(?:同样|相同|一样|原来|原先)的(?:愿望|描述|要求|提示词?|文字)"

_AGAIN_SENTENCE = re.compile(
    rf"(?:{_VERB}{_TARGET} {_MORE}|re-?(?:paint|draw|do|generate|make){_TARGET}(?: {_MORE})?|{_MORE}"
    rf"|{_ASK}(?:another|one more)(?: (?:one|take|try))?(?: (?:of|at){_TARGET})?)"
    r"(?:,? (?:from|with) the same (?:wish|words|prompt|description))?"
    rf"|(?:{_SAME_ZH},?)?{_PICTURE_ZH}(?:再|重新?)(?:画|绘制|生成|做|来|试)(?:[一两二三四几1-4]?[次遍张幅下个])?"
)
_VARIATION_SENTENCE = re.compile(
    rf"(?:vary{_TARGET}|{_ASK}(?:{_MANY} )?(?:(?:(?:more|new|other|different) )?(?:variation|variant)s?"
    rf"|(?:(?:other|different) |(?<=another ))versions?)(?: (?:of|on|for){_TARGET})?)"
    r"(?:[:,] ?(?:with )?the same subject(?:,? (?:but )?(?:seen|painted|shown) (?:in )?another way)?)?"
    rf"|{_PICTURE_ZH}再?(?:做|画|生成|来|出|换)?(?:[一两二三四几1-4]?[个种张幅])?(?:新的?|不同的?|别的)?(?:变体|变化版)"
    r"(?:[:,]同样的主体(?:,?但?换一?种(?:画面|构图|样子|方式))?)?"
    rf"|{_PICTURE_ZH}换一?[种个](?:画面|构图|样子|版本)|{_PICTURE_ZH}换一[张幅]"
)


def read_retake(text: str) -> Retake | None:
    """Return what the whole sentence asks to be painted once more; None when it asks for anything else or beyond."""
    in_chinese = is_chinese(text)
    folded = without_handles(fold(blank_quoted(text)), "它" if in_chinese else "it")
    words = _without_politeness(("" if in_chinese else " ").join(folded.split()))
    kinds = ((RetakeKind.AGAIN, _AGAIN_SENTENCE), (RetakeKind.VARIATION, _VARIATION_SENTENCE))
    kind = next((kind for kind, pattern in kinds if pattern.fullmatch(words)), None)
    return Retake(kind, find_count(words), find_handles(text)) if kind and words else None


def read_take(prompt: str) -> Take:
    """Return which take of its wish the prompt asks for."""
    match = _MARK.search(prompt)
    if match is None:
        return FIRST_TAKE
    return Take(int(match[2]), is_variation=match[1].lower() == RetakeKind.VARIATION)


def without_take(prompt: str) -> str:
    """Return the prompt without its mark."""
    return _MARK.sub(" ", prompt).strip()
