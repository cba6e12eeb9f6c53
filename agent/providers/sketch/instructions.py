"""Reads the pixel operations out of a sentence, clause by clause, in the order in which they are asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.adjusting import Adjustment, read_adjustment
from agent.providers.sketch.inscription import read_inscription
from agent.providers.sketch.operations import AddText, Operation
from agent.providers.sketch.phrases import find_ratio, without_handles
from agent.providers.sketch.rules import NEEDS, RULES, Clause, cropped_to

_BREAK = re.compile(
    r"[,;、。!?\n]+|\.(?=\s|$)|\b(?:and|then|also|plus|but|finally|after that)\b"
    r"|然后|接着|并且|而且|同时|最后|并(?!排)|(?<=[^太])再(?=.)|&"
)
_SPARED = re.compile(
    r"\bnot? too \w+|别太.|不要太.|\b(?:don't|do not|without|never)\b[^,;。.]*|(?:不要|别)再?(?=[变调])[^,。]*"
)
_SAME_THING = ((re.compile(r"black\s*(?:and|&|-and-|n)\s*white|\bb\s*&\s*w\b"), "grayscale"),)

_REGION = re.compile(
    r"\b(?:background|foreground|sky|faces?|eyes?|hair|skin|shirt|left half|right half|corner|person|people)\b"
    r"|背景|前景|天空|脸|眼睛|头发|皮肤|衣服|人物|左半|右半"
)
_MORE = re.compile(
    r"\b(?:more|increase|raise|boost|up|higher|stronger|add|enhance|extra|pump)\b|提高|增加|加强|增强|加大|提升"
    r"|更|加|调高|强"
)
_LESS = re.compile(r"\b(?:less|decrease|reduce|lower|down|weaker|drop|cut|lessen)\b|降低|减少|减弱|减小|调低|减|弱|低")

_BEYOND = re.compile(
    r"\b(?:remove|delete|erase|replace|swap|change|turn (?:it|this|that|the|him|her|them)|put|add|insert"
    r"|wear\w*|cut out|combine|merge|blend"
    r"|extend|outpaint|restyle|repaint|transform|convert|retouch|colou?ri[sz]e|make (?:it|this|that|him|her|them"
    r"|the \w+) (?:look|into|a|an|smile|older|younger|taller))\b"
    r"|去掉|去除|删除|删掉|移除|抹掉|换成|换个|替换|换掉|换一|加上|添加|加个|加一|变成|改成|画成|转成|合成|合并"
    r"|抠图|扩图|融合|风格化|上色|修复|p掉"
)
# What may stand around the words for light and colour when they are about the whole picture.
_NEUTRAL = re.compile(
    r"\b(?:an?|the|it|its|it's|this|that|that's|my|these|them|one|ones|picture|photo|image|pic|shot|photograph|drawing"
    r"|whole|entire|overall|everything|please|pls|bit|little|tiny|lot|lots|much|very|way|far|more|less|too|so|not|as|even"
    r"|make|made|be|being|look|looks|looking|is|are|was|get|give|turn|set|put|bring|go|take|keep|have|has|try|do|up|down"
    r"|by|to|of|in|for|on|at|from|and|but|then|now|just|only|slightly|somewhat|subtly|gently|touch|tad|hint|really|super"
    r"|extremely|strongly|heavily|significantly|dramatically|can|could|would|will|should|you|we|i|i'd|want|need|needs|like"
    r"|me|us|some|with|add|increase|raise|boost|decrease|reduce|lower|lessen|drop|cut|pump|crank|dial|push|pull|bump"
    r"|enhance|extra|higher|stronger|weaker|colou?rs?|colou?red|colou?ring|tones?|percent|points?|also|again|still|again"
    r"|all|than|before|version|variant|edit|effect|look|style|mood|feel|levels?|apply|change|adjust|convert|thanks|thank|hey"
    r"|ok|okay|hi|how|do|does|cent|per|quite|rather|kind|level|amount|light|old|please|there|here|over|out|x|px|n|s|d|t)\b"
    r"|(?:这|那)[张幅]画?|整张|整体|全图|图片|照片|画面|图像|颜色|色彩|色调|效果|程度|稍微|稍稍|略微|微微|轻微|少许|一点"
    r"|一些|一下|非常|特别|大幅|明显|可以|能不能|可不可以|帮我|麻烦|谢谢|还是|百分之|感觉|提高|提升|增加|加强|增强|加大"
    r"|降低|减少|减弱|减小|[把将让给使图点些下多很了的地得再更还请我你您能吗吧啊呢呀要想变调弄改搞成为到和并也它比较太过"
    r"高低强弱大小加减提上升整些做有个张幅一二三四五六七八九十]"
)
# What more may stand in a clause that mirrors the whole picture.
_MIRRORING = re.compile(
    r"\b(?:flip\w*|mirror\w*|reflect\w*|horizontal\w*|vertical\w*|sideways|upside|left|right|top|bottom|axis|around|back"
    r"|direction|other|opposite|way|face|faces)\b|翻转|翻|镜像|左右|上下|水平|垂直|对调|对称|方向|过来|一下"
)
_CONTENT = re.compile(r"[a-z]{2,}|[一-龥]")
_BLUR = re.compile(r"blur|模糊", re.IGNORECASE)


@dataclass(frozen=True)
class Instructions:
    """What was read: the operations in order, the clauses left out, and what is missing to do the rest.

    `missing` is `shape`, `size` or `text` when an operation was named without what it needs, and `unread` counts the
    clauses that name something and ask for nothing.
    """

    operations: tuple[Operation, ...]
    left_out: tuple[str, ...] = ()
    missing: str = ""
    unread: int = 0


def read_instructions(text: str) -> Instructions:
    """Return the operations that a sentence asks for, in its order; none when it asks for no operation.

    What is an adjustment and nothing else, the whole sentence or a clause of it, is read as the studio reads it.
    """
    whole = exact_adjustment(text)
    if whole is not None:
        return Instructions((whole,))
    lettering, rest = read_inscription(text)
    operations: list[Operation] = []
    left_out: list[str] = []
    missing, direction, unread = "", 1, 0
    for words in clauses(rest):
        if words.strip() == "§":
            operations += [lettering] if isinstance(lettering, AddText) else []
            continue
        direction = _direction(words, direction)
        exact = exact_adjustment(words)
        if exact is not None:
            operations.append(exact)
            continue
        clause = Clause(words, words, direction)
        found, lacking = read_clause(clause)
        found = found or ([] if lacking else _shape_only(clause))
        if (
            _is_about_a_thing(clause, found)
            or (found and _REGION.search(words))
            or (not found and not lacking and _BEYOND.search(words))
        ):
            left_out.append(words.strip())
            continue
        unread += not found and not lacking and _names_something(words)
        operations += found
        missing = missing or lacking
    if lettering == "missing":
        missing = missing or "text"
    return Instructions(tuple(dict.fromkeys(operations)), tuple(left_out), missing, unread)


def exact_adjustment(words: str) -> Adjustment | None:
    """Return the adjustment that the words ask for and nothing beyond; a blur is none: it is an effect of its own."""
    adjustment = read_adjustment(words)
    if adjustment is not None and adjustment.sharpness < 0 and _BLUR.search(words):
        return None
    return adjustment


def clauses(text: str) -> list[str]:
    """Return the clauses of a folded text, without what it says shall not be done."""
    folded = _SPARED.sub(" ", without_handles(text))
    for pattern, word in _SAME_THING:
        folded = pattern.sub(word, folded)
    return [part for part in _BREAK.split(folded) if part and part.strip()]


def _is_about_a_thing(clause: Clause, found: list[Operation]) -> bool:
    """Whether light, colour or a mirror image is asked for and the rest of the clause names what it is asked of: "the
    red car warmer", "flip the pancake".

    Pixel operations change the whole picture; what is left of the clause once they are taken out has to be about that.
    """
    adjustments = [one for one in found if isinstance(one, Adjustment)]
    if any(one.has_tones for one in adjustments):
        return _names_something(clause.words.replace("¦", " "))
    return any(one.flip for one in adjustments) and _names_something(_MIRRORING.sub(" ", clause.original))


def _names_something(words: str) -> bool:
    return _CONTENT.search(_NEUTRAL.sub(" ", words)) is not None


def _direction(words: str, before: int) -> int:
    if _LESS.search(words):
        return -1
    return 1 if _MORE.search(words) else before


def read_clause(clause: Clause) -> tuple[list[Operation], str]:
    """Return the operations of a clause in their order, and what one lacks; blanks out in it what was understood."""
    found: list[tuple[int, Operation]] = []
    missing = ""
    for pattern, make in RULES:
        match = pattern.search(clause.words)
        if not match:
            continue
        operation = make(clause, match)
        if operation is not None:
            found.append((match.start(), operation))
        else:
            missing = missing or NEEDS.get(make, "")
        clause.words = clause.words[: match.start()] + "¦" * len(match.group(0)) + clause.words[match.end() :]
    found.sort(key=lambda item: item[0])
    return [operation for _, operation in found], missing


def _shape_only(clause: Clause) -> list[Operation]:
    """Return a crop for a clause that only names a shape ("make it square", "改成 16:9")."""
    ratio = find_ratio(clause.original)
    return [cropped_to(*ratio)] if ratio else []
