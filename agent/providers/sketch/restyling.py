"""Which style a wish asks for, and whether it is for a new sketch or for a picture that is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.adjusting import Adjustment
from agent.providers.sketch.operations import Effect, EffectKind, Operation, Restyle
from agent.providers.sketch.phrases import find_handles, fold
from agent.providers.sketch.retakes import Retake
from agent.providers.sketch.wishes import AskBack, Draw, Edit, Reason, Talk, Topic, Wish, speaks_of_a_picture
from agent.style_rendering import StyleLook


@dataclass(frozen=True)
class FoundLook:
    """A style that words ask for: its name in both languages, how it is drawn, and the words that name it.

    `words` are empty when the style was described.
    """

    name: str
    chinese_name: str
    look: StyleLook
    words: str = ""


FindLook: TypeAlias = Callable[[str], FoundLook | None]

_IN_THE_STYLE_OF = re.compile(
    r"\bin (?:the )?(?:style|manner) of (?:an? |the )?([^\n,.;:!?，。；：！？]{2,60})"
    r"|([\u4e00-\u9fffA-Za-z]{2,12})风格",
    re.IGNORECASE,
)
# What is said around a style that is all there is to a wish: "noir please", "make it a watercolour", 换成水彩风格.
_AROUND = re.compile(
    r"\b(?:please|pls|in|as|into|an?|the|like|make|turn|convert|change|paint|draw|render|redo|restyle|it|this|that|to"
    r"|style|styled|look|picture|photo|image|version|now|try|do|more|all|of|my|want|i|painting|drawing|and|can|you"
    r"|could|one|same|but|with|for|me|us)\b"
    r"|把|将|这|那|它|张|幅|个|照片|图片|图|画面|变成|改成|换成|画成|做成|转成|弄成|成|为|风格|风|的|请|吧|来|一|试试|感觉|效果|版|改|换"
    r"|刚才|刚刚|上"
)


def in_style(wish: Wish | Retake, text: str, found: FoundLook | None, *, has_pictures: bool) -> Wish | Retake:
    """Return the wish with the style that its words ask for: of a sketch, or as an operation on a picture."""
    if found is None and isinstance(wish, Draw):
        return replace(wish, style=_asked_in_so_many_words(text) or wish.style)
    if found is None or isinstance(wish, Retake):
        return wish
    is_all = _is_all_there_is(text, found)
    if isinstance(wish, Draw):
        if is_all:
            return _restyle(text, found) if has_pictures else AskBack(Reason.NO_SUBJECT)
        return replace(wish, style=found.name)
    if not has_pictures and not find_handles(text):
        return wish
    if isinstance(wish, Edit):
        # What is carried out exactly needs no approximation beside it: "black and white" is one, too.
        if not wish.left_out and not _only_pixelates(wish.operations):
            return wish
        kept = tuple(one for one in wish.operations if not _is_pixelating(one))
        left_out = tuple(clause for clause in wish.left_out if not found.words or found.words not in fold(clause))
        return replace(wish, operations=(*kept, _operation(found)), left_out=left_out)
    is_of_a_picture = is_all or speaks_of_a_picture(fold(text)) or bool(find_handles(text))
    can_be_one = isinstance(wish, AskBack) or wish == Talk(Topic.BEYOND)
    return _restyle(text, found) if is_of_a_picture and can_be_one else wish


def _asked_in_so_many_words(text: str) -> str:
    """Return the style that a wish asks for by that word, whether or not anybody knows it; else nothing."""
    match = _IN_THE_STYLE_OF.search(text)
    return next((group for group in match.groups() if group), "").strip() if match else ""


def _restyle(text: str, found: FoundLook) -> Edit:
    return Edit((_operation(found),), handles=find_handles(text))


def _operation(found: FoundLook) -> Restyle:
    return Restyle(found.name, found.chinese_name, found.look)


def _is_all_there_is(text: str, found: FoundLook) -> bool:
    """Whether nothing is left of the wish without the style's name and what is said around it."""
    folded = fold(text)
    if not found.words or found.words not in folded:
        return False
    rest = folded.replace(found.words, " ", 1)
    for handle in find_handles(text):
        rest = rest.replace(handle, " ")
    return not re.search(r"\w", _AROUND.sub(" ", rest))


def _only_pixelates(operations: tuple[Operation, ...]) -> bool:
    return bool(operations) and all(map(_is_pixelating, operations))


def _is_pixelating(operation: Operation) -> bool:
    return (
        isinstance(operation, Effect)
        and operation.kind is EffectKind.PIXELATE
        and not isinstance(operation, Adjustment)
    )
