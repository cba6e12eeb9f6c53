"""The same wish once more: whether a sentence asks for it, and the mark by which a prompt says which take it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from agent.providers.sketch.phrases import blank_quoted, find_count, find_handles, fold, is_chinese, without_handles
from agent.providers.sketch.subjects import without_politeness


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
    words = without_politeness(("" if in_chinese else " ").join(folded.split()))
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
