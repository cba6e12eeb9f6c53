"""What a person wants, understood by rules: draw something, edit a picture, be asked back, or just talk.

Which style a wish asks for, and whether for a new sketch or a picture that is there, is told apart afterwards; a short
wish is made fuller with what the sketch painter obeys.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from agent.adjusting import Adjustment
from agent.providers.sketch.instructions import Instructions, exact_adjustment, read_instructions
from agent.providers.sketch.operations import Effect, EffectKind, Operation, Restyle
from agent.providers.sketch.phrases import (
    blank_quoted,
    find_count,
    find_handles,
    find_ratio,
    find_shape,
    fold,
    has_words,
    is_chinese,
    without_handles,
)
from agent.providers.sketch.sentences import sentences
from agent.providers.sketch.subjects import FIRST_TAKE, Retake, Take, find_style, find_subject, read_retake
from agent.providers.sketch.vocabulary import FIGURES, MOODS, PLACES, find, is_known
from agent.style_rendering import StyleLook

MAX_CHARACTERS = 4000


class Reason(StrEnum):
    """Why the planner asks back."""

    EMPTY = "empty"
    PICTURE_ONLY = "picture_only"
    NO_PICTURE = "no_picture"
    NO_SUBJECT = "no_subject"
    SHAPE = "shape"
    SIZE = "size"
    TEXT = "text"
    UNCLEAR = "unclear"


class Topic(StrEnum):
    """What a talk is about."""

    GREETING = "greeting"
    THANKS = "thanks"
    ABILITIES = "abilities"
    QUESTION = "question"
    SEARCH = "search"
    BEYOND = "beyond"
    NEVER_PAINTED = "never_painted"
    MASK = "mask"
    BEYOND_EDGES = "beyond_edges"


@dataclass(frozen=True)
class Draw:
    """A new picture. `description` is the wish without the asking; ratio and count only when the words say so.

    `retaken` is the picture whose wish is painted once more, as its `take`; `was_changed` says that it had been changed
    since it was painted.
    """

    subject: str
    description: str
    style: str = ""
    aspect_ratio: str | None = None
    number_of_images: int | None = None
    handles: tuple[str, ...] = ()
    take: Take = FIRST_TAKE
    retaken: str = ""
    was_changed: bool = False


@dataclass(frozen=True)
class Edit:
    """Pixel operations on a picture, in order. `left_out` are clauses that need a model with eyes."""

    operations: tuple[Operation, ...]
    left_out: tuple[str, ...] = ()
    aspect_ratio: str | None = None
    number_of_images: int | None = None
    handles: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskBack:
    """Something is missing before anything can be done."""

    reason: Reason


@dataclass(frozen=True)
class Talk:
    """Words are the whole answer."""

    topic: Topic


Wish: TypeAlias = Draw | Edit | AskBack | Talk

_DRAW = re.compile(
    r"\b(?:draw|paint|sketch|illustrate|doodle|depict|generate|render|imagine)\b(?! (?:it|this|that|over)\b)"
    r"|(?<![幅张这那油国图])画(?![面质幅布廊家]|成)|绘制|绘一|绘出|生成|来[一两二三四几]?[张幅款个]|插画一"
)
_MAKE = re.compile(
    r"\b(?:make|create|design|produce|compose|craft)(?: me| us)?\s+(?:an?|some|one|two|three|four|five|several"
    r"|\d+|new)\b"
    r"|\b(?:make|create|design|produce) (?:me|us)\b|\b(?:create|design)\s+(?!it\b|this\b|that\b)\w"
    r"|\b(?:i want|i need|i would like|i'd like|i wish for|give me|show me|can i (?:have|get)|could i (?:have|get))\s+"
    r"(?!(?:it|this|that|them|to(?! (?:see|have)\b))\b)(?!.{0,12}\b(?:brighter|darker)\b)\w"
    r"|\b(?:how|what) about\s+(?!(?:it|this|that|them)\b)(?!(?:a bit |a little |much )?\w+er\b)\w"
    r"|设计|制作|创作|做[一两二三四几]?[张幅款个]|做个|要[一两二三四几][张幅款个只]|给我[一两二三四几]?[张幅]"
    r"|我想要(?!把|它)|想看[一两]?[张幅]?"
)
# What points at a picture that is there.
_TARGET = re.compile(
    r"\b(?:it|this|that(?! (?:says|reads|is|has|was|are|shows|looks|goes))|these|them|the (?:last|previous"
    r"|first|second|same|current|original"
    r"|new)? ?(?:picture|photo|image|pic|one"
    r"|drawing|sketch|painting|result|upload|shot)|my (?:picture|photo|image|pic|upload|selfie|drawing|shot))\b"
    r"|把|将|刚才|刚刚|上一?张|这张|那张|这幅|那幅|它|原图|此图|图片|照片|画面|这个图|上图|前一张"
)
_VERSION = re.compile(r"\b(?:version|variant|copy|edition) of\b|同样|一样|版本")
_SEARCH = re.compile(
    r"\b(?:search (?:the |on |online|for|up|google|web)|web search|look (?:it |this |that )?up|google (?:it|for"
    r"|the)|browse the (?:web|internet)"
    r"|find (?:out )?online|latest news|on the (?:web|internet))\b|搜索|搜一下|搜搜|上网|联网|查一查|查一下"
    r"|百度|谷歌|最新(?:消息|新闻)"
)
_GREETING = re.compile(
    r"^(?:hi|hello|hey|hiya|yo|howdy|good (?:morning|afternoon|evening|day)|greetings|how are you|what's up"
    r"|sup)\b(?: there| sketch| aivista| all)?"
    r"|^(?:你好|您好|嗨|哈喽|哈啰|早上好|下午好|晚上好|早安|在吗|喂)"
)
_THANKS = re.compile(
    r"^(?:thanks?\b|thank you|thx|ty\b|cheers\b|great|nice|perfect|awesome|cool$|wonderful|beautiful|lovely"
    r"|good job|well done|bye|goodbye|see you"
    r"|ok(?:ay)?\b|yes\b|no\b|谢|多谢|感谢|太棒|真棒|很棒|好看|不错|完美|漂亮|厉害|辛苦|再见|拜拜|好的|好吧|嗯"
    r"|可以了|行$)"
)
_ABILITIES = re.compile(
    r"\bwhat (?:can|could|do) (?:you|i|we|this|sketch)\b|\bwho are you\b|\bwhat are you\b|\bhow (?:do|does"
    r"|can) (?:this|you|i use|it work)"
    r"|\b(?:help|instructions|manual)\s*$|^help\b|\byour (?:abilities|capabilities|features)\b"
    r"|\bwhat is (?:this|sketch|aivista)\b"
    r"|(?:你|您)(?:能|会|可以)(?:做|干|帮|些)?(?:我)?(?:做|干)?(?:什么|啥|哪些)|你是谁|有什么功能|功能介绍"
    r"|怎么用|如何使用|使用说明|帮助$|你会什么|能做什么"
)
_QUESTION = re.compile(
    r"^(?:so |and |but |please )?(?:why|what(?! about)|who|whose|whom|when|where|which|how(?! about)|is|are|was|were|do"
    r"|does|did|should|tell me|explain"
    r"|describe|translate|calculate|write (?:a|an|me|some))\b"
    r"|为什么|为何|什么是|是什么|有什么|是谁|谁是|哪里|哪个|哪年|多少钱|怎么(?!样)|如何|几点|何时|解释|翻译"
    r"|描述一下|告诉我|介绍一下|写一?(?:首|篇|段)"
)
_ENDS_AS_QUESTION = re.compile(r"(?:\?|吗|呢)[\s?!。]*$")
_VAGUE = re.compile(
    r"\b(?:better|nicer|prettier|improve\w*|fix|enhance|beautify|again|another|different(?:ly)?|something"
    r"|anything|change|do|edit|adjust|redo|try|retry|make)\b"
    r"|好看|美化|优化|改进|修一下|改一下|调整|处理|再来|重来|换一张|随便|弄一下"
)
_SPEAKER = re.compile(
    r"^(?:i|i'm|i am|you|we|he|she|it|it's|they|my|your|this|that|there|these|those)\b|^(?:我|你|您|他|她|它|这|那)"
)


def understand(text: str, has_pictures: bool) -> Wish | Retake:
    """Return what the person wants. `has_pictures` says whether the message or the history holds any picture."""
    text = text[:MAX_CHARACTERS]
    if not has_words(text):
        return AskBack(Reason.PICTURE_ONLY if has_pictures and not text.strip() else Reason.EMPTY)
    if exact_adjustment(text) is not None:
        return _edit(text, read_instructions(text), has_pictures)
    retake = read_retake(text)
    if retake is not None:
        return retake if has_pictures or retake.handles else AskBack(Reason.NO_SUBJECT)
    folded = fold(blank_quoted(text)).strip()
    if _ABILITIES.search(folded):
        return Talk(Topic.ABILITIES)
    if _SEARCH.search(folded):
        return Talk(Topic.SEARCH)
    if _wants_drawing(folded, read_instructions(text)):
        return read_drawing(text)
    return _edit_or_talk(text, folded, has_pictures)


def _wants_drawing(folded: str, instructions: Instructions) -> bool:
    """Whether the words ask for a new picture rather than a change of one."""
    strong, weak = _DRAW.search(folded), _MAKE.search(folded)
    if not strong and not weak:
        return False
    asks_for_edit = bool(instructions.operations or instructions.missing or instructions.left_out)
    has_target = bool(_TARGET.search(folded) or find_handles(folded))
    if not asks_for_edit or not has_target:
        return not (weak and not strong and asks_for_edit and _is_only_instructions(folded))
    first_target = _TARGET.search(folded)
    is_led_by_target = first_target is not None and strong is not None and first_target.start() < strong.start()
    return bool(strong) and not _VERSION.search(folded) and not is_led_by_target


def _is_only_instructions(folded: str) -> bool:
    """Whether the thing to make is nothing but an operation ("make a sepia version", "create a square crop")."""
    return bool(re.search(r"\b(?:version|copy|crop|variant|edit)\b|版本?$", folded))


def _edit_or_talk(text: str, folded: str, has_pictures: bool) -> Wish:
    instructions = read_instructions(text)
    is_about_picture = bool(_TARGET.search(folded)) or bool(find_handles(text))
    if _is_plain_question(folded, instructions):
        return Talk(Topic.QUESTION)
    if instructions.operations and (is_about_picture or not _describes(folded, instructions)):
        return _edit(text, instructions, has_pictures)
    if instructions.missing:
        return (
            AskBack(Reason(instructions.missing)) if has_pictures or find_handles(text) else AskBack(Reason.NO_PICTURE)
        )
    talk = _small_talk(folded)
    if talk is not None:
        return talk
    if instructions.left_out and not _is_noun_phrase(folded):
        return Talk(Topic.BEYOND) if has_pictures or find_handles(text) else AskBack(Reason.NO_PICTURE)
    return read_drawing(text) if _names_a_thing(folded, is_about_picture) else AskBack(Reason.UNCLEAR)


def _describes(folded: str, instructions: Instructions) -> bool:
    """Whether the words describe a picture, though some of them could adjust one: "warm colours, autumn forest"."""
    is_thing = bool(instructions.left_out and re.match(r"an?\s+\w+er\b", folded))
    return is_thing or instructions.unread > len(instructions.operations) or _is_noun_phrase(folded)


def _is_plain_question(folded: str, instructions: Instructions) -> bool:
    if _QUESTION.search(folded) and not re.search(r"^how (?:do|can) i make|怎么(?:调|变|让)", folded):
        return True
    return bool(_ENDS_AS_QUESTION.search(folded)) and instructions == Instructions(())


def _small_talk(folded: str) -> Talk | None:
    is_short = len(folded) <= (12 if is_chinese(folded) else 40)
    if is_short and _GREETING.search(folded):
        return Talk(Topic.GREETING)
    if is_short and _THANKS.search(folded):
        return Talk(Topic.THANKS)
    return None


def _edit(text: str, instructions: Instructions, has_pictures: bool) -> Wish:
    handles = find_handles(text)
    if not has_pictures and not handles:
        return AskBack(Reason.NO_PICTURE)
    folded = fold(blank_quoted(text))
    turns = any(isinstance(operation, Adjustment) and operation.rotate for operation in instructions.operations)
    return Edit(
        operations=instructions.operations,
        left_out=instructions.left_out,
        # A turn makes another ratio of the one that was named.
        aspect_ratio=None if turns else _named(find_ratio(folded)),
        number_of_images=find_count(folded),
        handles=handles,
    )


def read_drawing(text: str) -> Draw | AskBack:
    """Return the wish for a new picture that the text describes, whatever else it could be taken for."""
    folded = fold(blank_quoted(text))
    subject, description = find_subject(text)
    if not subject:
        return AskBack(Reason.NO_SUBJECT)
    return Draw(
        subject=subject,
        description=description,
        style=find_style(folded),
        aspect_ratio=_named(find_shape(without_handles(folded))),
        number_of_images=find_count(folded),
        handles=find_handles(text),
    )


def _named(ratio: tuple[int, int] | None) -> str | None:
    return f"{ratio[0]}:{ratio[1]}" if ratio else None


def _is_noun_phrase(folded: str) -> bool:
    """Whether the words begin as a thing does ("a black and white cat") and not as a change ("a bit darker")."""
    if re.match(r"(?:an?|the|one|two|three|four|five|some|several)\s+", folded):
        is_change = re.match(
            r"an?\s+(?:(?:tiny|little)\s+)?(?:bit|lot|touch|tad|hint)\b|a little\s+(?:\w+er|more|less)\b", folded
        )
        return not is_change and not re.search(r"\b(?:brighter|darker|warmer|cooler)\b|\bversion\b", folded)
    return bool(re.match(r"(?:一[只个座片朵棵辆位条间栋艘幅]|[^,，]{1,6}的(?!更|再|亮|暗))", folded)) and not re.search(
        r"[再更变调]|一[点些]", folded
    )


def _names_a_thing(folded: str, is_about_picture: bool) -> bool:
    """Whether bare words can be drawn as they stand ("a red fox in the snow", "雪中的红狐")."""
    if _is_noun_phrase(folded) and not _TARGET.match(folded):
        return True
    if is_about_picture or _SPEAKER.match(folded) or _VAGUE.search(folded):
        return False
    words = re.findall(r"[a-zà-ɏ'\-]+", folded)
    if is_known(folded):
        return True
    return len(words) >= 2 or len(re.findall(r"[\u4e00-\u9fff]", folded)) >= 2


# ---- styles


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
    is_of_a_picture = is_all or bool(_TARGET.search(fold(text)) or find_handles(text))
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
    return isinstance(operation, Effect) and operation.kind is EffectKind.PIXELATE


# ---- a wish made fuller

# Where the light of the day does not reach.
_OWN_LIGHT = frozenset({"space", "abstract"})
_END = re.compile(r"[\s.。!！,，;；]*$")


def fuller_wish(text: str) -> str:
    """Return the wish with a place and a light where it names none; unchanged when it is no wish for a drawing, or
    says both already."""
    if not isinstance(understand(text, has_pictures=False), Draw):
        return text
    chinese = is_chinese(text)
    said = sentences("fuller", in_chinese=chinese)
    named, added = find(PLACES, text), list[str]()
    if named is None:
        usual = sentences("usual_places", in_chinese=chinese)
        added.append(usual.get(find(FIGURES, text) or "", said["anywhere"]))
    place = named or find(PLACES, added[0])
    if find(MOODS, text) is None and place not in _OWN_LIGHT:
        added.append(said["light"])
    if not added:
        return text
    return said["comma"].join([_END.sub("", text), *added])
