"""Reads the pixel operations out of a sentence, clause by clause, in the order in which they are asked for.

A table says which words of a clause ask for which operation, English and Chinese; words to be written into the picture
are read first, and where they shall stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent.adjusting import Adjustment, CropRatio, Flip, read_adjustment
from agent.providers.sketch.operations import AddText, Effect, EffectKind, Operation, Position, ResizeBy, ResizeTo
from agent.providers.sketch.phrases import (
    blank_quoted,
    find_amount,
    find_percent,
    find_quoted,
    find_ratio,
    find_signed,
    fold,
    without_handles,
)

# Stands for lettering without its words.
MISSING = "missing"
_FLIPPED = r"(?:\b(?:too|less|not so|not as|not that)\s+)|太|过于|过(?=[亮暗])|(?:没那么|别那么|不要那么|不那么)"


@dataclass
class Clause:
    """A clause being read: its words with what is understood blanked out, and the direction it goes."""

    words: str
    original: str
    direction: int


_Maker: TypeAlias = Callable[[Clause, re.Match[str]], Operation | None]


def _zh(word: str) -> str:
    changes = r"(?:变|调|提|更|再|加|弄|改|搞|太|过于|过|那么)(?:得|成|更)?"
    by_how_much = r"(?:一[点些下]|[点些]|多了|很多|起来)"
    return rf"{changes}{word}|{word}{by_how_much}|{word}(?=\s*(?:\d|百分之))"


def _adjective(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<flip>{_FLIPPED})?(?:\b(?:{english})\b|{_zh(chinese)})")


def _comparative(tone: str, sign: int) -> _Maker:
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


def _noun(tone: str) -> _Maker:
    def make(clause: Clause, match: re.Match[str]) -> Operation | None:
        signed = find_signed(clause.original[match.end() :])
        # "Adjust the brightness": nobody can tell which way.
        if signed is None and _OPEN.search(clause.original) and not _SAYS_HOW.search(clause.original):
            return None
        too_much = bool(re.search(r"\btoo\b|太", clause.original))
        sign = -1 if (clause.direction < 0) is not too_much else 1
        return _toned(tone, signed or sign * find_amount(clause.original))

    return make


def _tone(tone: str, sign: int) -> _Maker:
    return lambda clause, match: _toned(tone, sign * find_amount(clause.original))


def _effect(kind: EffectKind) -> _Maker:
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
_RULES: tuple[tuple[re.Pattern[str], _Maker], ...] = (
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
_NEEDS: dict[_Maker, str] = {_crop: "shape", _resize: "size"}


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
    if lettering == MISSING:
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
    for pattern, make in _RULES:
        match = pattern.search(clause.words)
        if not match:
            continue
        operation = make(clause, match)
        if operation is not None:
            found.append((match.start(), operation))
        else:
            missing = missing or _NEEDS.get(make, "")
        clause.words = clause.words[: match.start()] + "¦" * len(match.group(0)) + clause.words[match.end() :]
    found.sort(key=lambda item: item[0])
    return [operation for _, operation in found], missing


def _shape_only(clause: Clause) -> list[Operation]:
    """Return a crop for a clause that only names a shape ("make it square", "改成 16:9")."""
    ratio = find_ratio(clause.original)
    return [cropped_to(*ratio)] if ratio else []
