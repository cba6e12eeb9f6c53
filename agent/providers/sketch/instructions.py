"""Reads the pixel operations out of a sentence, clause by clause, in the order in which they are asked for.

Light, colour and turns are read as the studio reads them everywhere, wherever they stand in a clause; what only the
sketch model does with pixels stands in a table beside them. Words to be written into the picture are read first, and
where they shall stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent.adjusting import Adjustment, CropRatio, find_adjustments, read_adjustment
from agent.providers.sketch.operations import AddText, Effect, EffectKind, Operation, Position, ResizeBy, ResizeTo
from agent.providers.sketch.phrases import (
    blank_quoted,
    find_amount,
    find_percent,
    find_quoted,
    find_ratio,
    fold,
    without_handles,
)

# Stands for lettering without its words.
MISSING = "missing"

_Maker: TypeAlias = Callable[[str], Operation | None]


def _effect(kind: EffectKind) -> _Maker:
    return lambda words: Effect(kind, find_amount(words))


def _crop(words: str) -> Operation | None:
    ratio = find_ratio(words)
    if ratio is None and re.search(r"\bportrait|vertical\b", words):
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


def _resize(words: str) -> Operation | None:
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


# What an operation is called, how it is made of its clause, and what is asked for when that says too little.
_RULES: tuple[tuple[re.Pattern[str], _Maker, str], ...] = (
    (
        re.compile(
            r"\b(?:resiz\w+|scal\w+|shrink\w*|enlarge\w*|upscal\w+|downscal\w+|(?:half|double|twice) (?:the "
            r"|its )?size|(?:half|twice|\w+ times) as (?:large|big|wide|small|high))\b[^§]*"
            r"|\b\d{2,5}\s*x\s*\d{2,5}\b|\b(?:smaller|bigger|larger)\b|缩小\S*|缩放\S*|放大\S*|尺寸\S*|(?:改"
            r"|调整?)大小\S*|大小(?:改|调)\S*|\d+\s*像素"
        ),
        _resize,
        "size",
    ),
    (re.compile(r"\bcrop\w*[^§]*|\btrim\w*[^§]*|裁[剪切成为到]?\S*|剪裁\S*"), _crop, "shape"),
    (re.compile(r"\bblur\w*\b|\bsoften\w*\b|模糊|虚化|柔化|朦胧"), _effect(EffectKind.BLUR), ""),
    (
        re.compile(
            r"\bpixel(?:at\w+|i[sz]e\w*)\b|\bcensor\w*\b|(?:打|加|上|做)(?:上|个|点)?马赛克|马赛克(?:处理|化)|打码|像素化"
        ),
        _effect(EffectKind.PIXELATE),
        "",
    ),
    (
        re.compile(r"\b(?:sepia|vintage|old[- ]photo(?:graph)?)\b|复古|怀旧|老照片|泛黄|棕褐色"),
        _effect(EffectKind.SEPIA),
        "",
    ),
    (
        re.compile(r"\binvert\w*\b|\b(?:photo |colou?r |a )negative\b|反色|反相|负片|反转颜色|颜色反转"),
        _effect(EffectKind.INVERT),
        "",
    ),
)


# ---- words to be written

_LETTERING = re.compile(
    r"^\s*(?:text|caption|title|文字|标题|字幕)\s*:|"
    r"\b(?:add|write|put|place|insert|include|overlay|type|print|append)\b[^§]*?\b(?:text|words?|caption|title|letters?"
    r"|lettering|heading|headline|slogan|label|watermark|line|quote)\b|\b(?:add|write|put|caption|title|label"
    r"|overlay|type)\b[^§]{0,30}§"
    r"|\bwith the (?:text|words?|caption|title)\s*§"
    r"|(?:加上?|添加|写上?|放上?|配上?|印上?|标上?|打上|题上?)[^§]{0,12}?(?:文字|字样|标题|字幕|几个字|大字|字"
    r"|标语|水印|§)|(?:文字|标题|字幕)\s*[:为是]?\s*§"
)
_BARE_TEXT = re.compile(
    r"(?:\b(?:text|words?|caption|title|headline|slogan)\b|文字|字样|标题|字幕|标语|[一两几][行句排]大?字"
    r"|写上?)\s*(?:that (?:says"
    r"|reads))?\s*[:：]?\s*([^§]+)$",
    re.IGNORECASE,
)
_PLACE_WORDS = (
    (Position.TOP, re.compile(r"\b(?:top|above|upper|header)\b|顶部|上方|上面|顶端|顶上|上部")),
    (Position.CENTER, re.compile(r"\b(?:cent(?:er|re)|middle|central)\b|中间|中央|正中|居中|中部")),
    (Position.BOTTOM, re.compile(r"\b(?:bottom|below|lower|footer)\b|底部|下方|下面|底端|底下|下部")),
)
_PLACE_TAIL = re.compile(
    r"\s*(?:,\s*)?(?:\b(?:at|in|on|to|near)\s+(?:the\s+)?(?:very\s+)?(?:top|bottom|cent(?:er|re)|middle)\b.*"
    r"|(?:在|到)?(?:顶部|底部|中间|上方|下方).*)$",
    re.IGNORECASE,
)


def read_inscription(text: str) -> tuple[AddText | str, str]:
    """Return the words to add (or MISSING, or nothing) and the folded rest, where a lone `§` stands for them."""
    quoted = find_quoted(text)
    marked = fold(blank_quoted(text))
    match = _LETTERING.search(marked)
    if not match:
        return "", marked.replace("§", " ")
    if quoted:
        clause = _clause_around(marked, match)
        rest = marked.replace(clause, ",§,", 1)
        return AddText(quoted[0], _position(_opening(marked, match) + clause)), rest
    return _bare_lettering(text, marked, match)


def _bare_lettering(text: str, marked: str, match: re.Match[str]) -> tuple[AddText | str, str]:
    """Return lettering that stands without quotation marks: everything after the word for it."""
    bare = _BARE_TEXT.search(text)
    before = marked[: match.start()]
    if not bare:
        return MISSING, before
    words = _PLACE_TAIL.sub("", bare.group(1)).strip(" :：,，。.")
    if not words or words in {"字", "to it", "on it", "here", "to the picture", "to this"}:
        return MISSING, before
    return AddText(words, _position(fold(text[bare.start() :]))), before + ",§,"


def _opening(marked: str, match: re.Match[str]) -> str:
    """Return what stands before the verb in its own clause ("在顶部" of "在顶部加上…")."""
    return re.split(r"[,;。!?\n]|\b(?:and|then)\b|然后|并", marked[: match.start()])[-1]


def _clause_around(marked: str, match: re.Match[str]) -> str:
    """Return the clause of the lettering, from its verb to the next break after the quoted words."""
    start = match.start()
    quote = marked.find("§", start)
    quote = match.end() if quote < 0 else quote
    stop = re.search(r"[,;。!?\n]|\b(?:and|then)\b|然后|并|再", marked[quote:])
    after = marked[quote + stop.end() :] if stop else ""
    end = quote + stop.start() if stop else len(marked)
    tail = (
        re.match(r"\s*(?:at|in|on|to|near|在|放在|位置|居)[^,;。]*", after) if stop and stop.group(0) in ",;" else None
    )
    return marked[start : end + 1 + tail.end()] if tail and _named_position(tail.group(0)) else marked[start:end]


def _named_position(words: str) -> Position | None:
    return next((position for position, pattern in _PLACE_WORDS if pattern.search(words)), None)


def _position(words: str) -> Position:
    return _named_position(words) or Position.BOTTOM


# ---- clauses

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

    `missing` is `shape`, `size` or `text` when an operation was named without what it needs, `unclear` when it cannot
    be; `unread` counts the clauses that name something and ask for nothing.
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
    missing, unread = "", 0
    for words in clauses(rest):
        if words.strip() == "§":
            operations += [lettering] if isinstance(lettering, AddText) else []
            continue
        clause = read_clause(words)
        found = clause.operations or ([] if clause.missing else _shape_only(words))
        names_something = _names_something(clause.rest)
        is_about_a_thing = names_something and any(
            isinstance(one, Adjustment) and (one.has_tones or one.flip) for one in found
        )
        is_beyond = bool(_BEYOND.search(words)) and not found and not clause.missing
        if is_about_a_thing or is_beyond or (found and _REGION.search(words)):
            left_out.append(words.strip())
            continue
        unread += names_something and not found and not clause.missing
        operations += found
        missing = missing or clause.missing
    if lettering == MISSING:
        missing = missing or "text"
    return Instructions(tuple(dict.fromkeys(operations)), tuple(left_out), missing, unread)


def exact_adjustment(words: str) -> Adjustment | None:
    """Return the adjustment that the words ask for and nothing beyond; a blur is none: it is an effect of its own."""
    adjustment = read_adjustment(words)
    return None if adjustment is not None and _is_blur(adjustment, words) else adjustment


def _is_blur(adjustment: Adjustment, words: str) -> bool:
    return adjustment.sharpness < 0 and _BLUR.search(words) is not None


def clauses(text: str) -> list[str]:
    """Return the clauses of a folded text, without what it says shall not be done."""
    folded = _SPARED.sub(" ", without_handles(text))
    for pattern, word in _SAME_THING:
        folded = pattern.sub(word, folded)
    return [part for part in _BREAK.split(folded) if part and part.strip()]


@dataclass(frozen=True)
class Clause:
    """The operations of a clause in their order, what one of them lacks, and the words that are no part of any."""

    operations: list[Operation]
    missing: str
    rest: str


def read_clause(words: str) -> Clause:
    """Return what a folded clause asks for."""
    exact = exact_adjustment(words)
    if exact is not None:
        return Clause([exact], "", "")
    adjustments = find_adjustments(words)
    found: list[tuple[int, Operation]] = []
    others, rest, missing = words, adjustments.rest, "unclear" if adjustments.is_unclear else ""
    for start, end, adjustment in adjustments.phrases:
        if _is_blur(adjustment, words[start:end]):
            continue
        found.append((start, adjustment))
        others = _blanked(others, start, end)
    for pattern, make, needed in _RULES:
        match = pattern.search(others)
        if match is None:
            continue
        operation = make(words)
        if operation is not None:
            found.append((match.start(), operation))
        missing = needed if operation is None else missing
        others, rest = _blanked(others, *match.span()), _blanked(rest, *match.span())
    found.sort(key=lambda item: item[0])
    return Clause([operation for _, operation in found], "" if found else missing, rest)


def _blanked(words: str, start: int, end: int) -> str:
    return words[:start] + " " * (end - start) + words[end:]


def _names_something(words: str) -> bool:
    return _CONTENT.search(_NEUTRAL.sub(" ", words)) is not None


def _shape_only(words: str) -> list[Operation]:
    """Return a crop for a clause that only names a shape ("make it square", "改成 16:9")."""
    ratio = find_ratio(words)
    return [cropped_to(*ratio)] if ratio else []
