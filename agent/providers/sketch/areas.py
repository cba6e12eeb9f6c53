"""What a person wants inside a mask, understood by rules: light and colour as anywhere, and what only an area can have.

A clause is done when all of its words are understood. One that asks for a thing to be painted is left out and named.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agent.adjusting import Adjustment
from agent.providers.sketch.instructions import MISSING, clauses, exact_adjustment, read_clause, read_inscription
from agent.providers.sketch.operations import (
    AddText,
    Erase,
    Fill,
    Operation,
    PatternKind,
    Position,
    Recolour,
    moves_pixels,
)
from agent.providers.sketch.palette import Colour, colour_words, find_colours
from agent.providers.sketch.phrases import blank_quoted, find_quoted, fold, has_words, without_handles
from agent.providers.sketch.wishes import MAX_CHARACTERS, AskBack, Edit, Reason, Talk, Topic, understand

_MAX_WORDS = 120
# One colour in folded words.
COLOUR = colour_words()

_LETTERING = re.compile(
    r"^\s*(?:write|print|letter|type|(?:add|put) the (?:words?|text|letters|name))\s+"
    r"(?:the (?:words?|text|letters)\s+)?"
    r"(?P<words>[^,;\n]+?)\s*$",
    re.IGNORECASE,
)
_LETTERING_ZH = re.compile(
    r"^\s*(?:在(?:这里|这儿|此处|里面|蒙版[里内中]|上面)?)?(?:[写题印](?:上|个|下|着)?)(?:文字|字样|几个字|大字)?\s*[:：]?\s*"
    r"(?P<words>[^,，;；。\n]+?)(?:[这几两三四]+个(?:大)?字)?\s*$"
)
_LETTERING_TAIL = re.compile(
    r"\s+(?:(?:in|inside|into|on|over|within|right)\s+)?"
    r"(?:here|there|it|this|the (?:mask|area|middle|cent(?:er|re)))\s*$"
    rf"|\s+in\s+{COLOUR}(?:\s+(?:letters|text|ink|colou?r))?\s*$",
    re.IGNORECASE,
)
_NO_WORDS = re.compile(
    r"(?:an?|some\w*|me|about|down|it|this|that|text|words?|letters?|here)\b|一[首段篇些点]|点|些|字$|诗|故事|文章"
)
_INKED = re.compile(rf"\bin ({COLOUR})|用?({COLOUR})的?[^,。]{{0,3}}[字写]|({COLOUR})\s+(?:letters|text|words|ink)")
_POLITE = re.compile(
    r"^(?:\s*(?:(?:please|now|just|ok|okay|kindly|let's|(?:can|could|would|will) (?:you|we)|(?:how|what) about"
    r"|i (?:want|would like|need)(?: you)? to|i'd like(?: you)? to|i (?:want|need))\b"
    r"|请|麻烦|帮我|帮忙|能不能|能否|可以|给我|我想要?|你能|能)[\s,，]*)+"
)
_POLITE_END = re.compile(r"(?:[\s?!.~,？！。，～…]|\b(?:please|thanks|thank you)\b|谢谢|好吗|行吗|可以吗|[吗吧呗啊])+$")
_TWO_COLOURS = re.compile(rf"({COLOUR})\s*(?:\band\b|&|\+|和|与|跟|、)\s*(?={COLOUR})")
_PATTERNED = re.compile(
    r"\bstrip(?:es?|ed|y)\b|\b(?:polka[- ]?)?dots?\b|\bdotted\b|\bspot(?:s|ted)\b|\bchequer\w*"
    r"|\bcheck(?:s|ed|ered|ers|erboard)\b|\bchess ?board\b|条纹|斑马纹|斜纹|横纹|竖纹|波点|圆点|波尔卡点|点点|斑点"
    r"|棋盘格?|格子|方格|格纹"
)
_KINDS: tuple[tuple[PatternKind, re.Pattern[str]], ...] = (
    (PatternKind.DOTS, re.compile(r"\bpolka\b|\bdot|\bspot|点")),
    (PatternKind.CHECKS, re.compile(r"che(?:ck|quer|ss)|棋盘|格")),
    (PatternKind.ACROSS, re.compile(r"\bhorizontal|水平|横")),
    (PatternKind.UPRIGHT, re.compile(r"\bvertical|\bupright|垂直|竖|纵")),
    (PatternKind.STRIPES, re.compile(r"")),
)
_PLAIN_FILL = re.compile(r"\bfill\w*\b|\bsolid\b|填|涂满|纯")
_ERASE = re.compile(
    r"\b(?:erase|remove|delete|wipe|rub out|get rid of|clean (?:up|away)|clear(?: (?:away|up|out))?(?= (?:it|this|that"
    r"|the)\b|$)|take (?:(?:it|this|that|the \w+) )?(?:away|out|off)|inpaint|heal)\b|\b(?:disappear|vanish)\b"
    r"|\bcontent[- ]aware\b|\bfill\b.*\b(?:background|surroundings?)\b"
    r"|擦[掉除去了]|去掉|去除|删[掉除去]|移[除走]|抹[掉除去]|消[除失去]|清[除掉]|[pP]掉|弄掉|拿掉|去水印"
    r"|(?:背景|周围|四周)(?:来)?填|智能填充|修补"
)
_NO_ERASING = re.compile(r"\b(?:background|blur\w*|noise|grain|glare|haze|reflections?|tint)\b|背景|模糊|噪点|反光")
_COLOUR_ALONE = re.compile(r"\b(?:the |all )?colou?rs?$|(?:颜色|色彩)$|^(?:把|将)?(?:颜色|色彩)")
_CONTINUE = re.compile(
    r"\b(?:extend|expand|continue|outpaint|uncrop|enlarge|grow|go on|larger|bigger|wider|more of)\b"
    r"|扩展|延伸|扩图|延展|补全|续画|扩大|继续|外扩"
)
_INVERSE = re.compile(
    r"\b(?:except|everything (?:else|but)|all but|outside|the rest|surrounding area)\b|除了|以外|之外|其余|其他|外面"
)
_ADDS = re.compile(
    r"\b(?:add|put|place|insert|draw|wear\w*|hang|show)\b|^(?:an?|two|three|some)\b|[加放添画戴穿摆]"
    r"|一[只个座片朵棵辆位条]"
)
_CHANGES = re.compile(
    r"\b(?:make|turn|paint|dye|colou?r|recolou?r|tint|change|want|should|be|give)\b|[改变换涂染刷调弄上填]"
)
_THING = re.compile(rf"\b(?:an?|some)\s+{COLOUR}\s*$")
_AREA_END = rf"(?=\s+(?:with|in|into|to|as|from|be|look|{COLOUR})|\s+(?:{_PATTERNED.pattern})|\s*$)"
_OF_IT = re.compile(
    r"\b(?:make|fill|cover|paint|turn|change|give|dye|colou?r|tint|recolou?r|want|extend|expand|continue)\s+"
    rf"(?:the colou?r of\s+)?(?:the|this|that|my|his|her|their|its|these)\s+[a-z'-]+(?:\s+[a-z'-]+)??{_AREA_END}"
    r"|^(?:the|this|that|my|his|her|their|its)\s+[a-z'-]+(?:\s+[a-z'-]+)??(?=\s+(?:should|must|shall)\b)"
    r"|(?:把|将|给|让)[^,]{1,8}?(?=的颜色|[填涂改变换染画铺加弄上刷调延扩]|覆盖)"
)
_FILLER = re.compile(
    r"\b(?:make|fill|filled|cover|covered|paint|turn|change|give|dye|colou?r(?:s|ed|ing)?|tint|recolou?r|add|put|draw|want|it"
    r"|its|it's|this|that|these|those|the|an?|some|all|whole|with|in|into|to|of|on|onto|over|as|be|should|is|here|there|up"
    r"|area|part|place|region|selection|spot|mask|masked|inside|within|pattern|patterns|texture|effect|look|nice|small"
    r"|large|big|little|tiny|bit|touch|horizontal|vertical|diagonal|upright|polka|please|background|ground|base|solid"
    r"|plain|me|and|one|shade|tone|completely|totally|entirely|fully|instead|now|only|just|more|less|much|lot|very|at|by"
    r"|from|for|out|picture|image|photo|scene|view|canvas|edges?|beyond|sides?|what|around|seamlessly|naturally|landscape)\b"
    r"|[用把将给让它这那个里的面儿处此在内中成为到上下满好一些种块请地底色大小斜横竖纵纯]|区域|部分|地方|蒙版|遮罩|选区|填充|填满"
    r"|填|涂|染|刷|改|变|换|调|弄|画|加|铺|覆盖|颜色|色彩|图案|花纹|纹理|图片|画面|照片|背景|水平|垂直|出去|向外|外|边缘|四周|周围|自然|整"
)
_CONTENT = re.compile(r"[a-z]+|[\u3400-\u9fff]|\d")
_BLUE = (36, 92, 204)
_WHITE = (248, 248, 246)
_DARK = (44, 48, 64)
_LIGHT_SUM = 560


def _read_lettering(text: str) -> tuple[AddText | str, str]:
    """Return the words to write (or MISSING, or nothing) and the rest of the text.

    Where they stand does not count: the mask says it.
    """
    match = None if find_quoted(text) else _LETTERING.match(text) or _LETTERING_ZH.match(text)
    if match is None:
        lettering, rest = read_inscription(text)
        if isinstance(lettering, AddText):
            ink = _ink(fold(blank_quoted(text)))
            return replace(lettering, position=Position.CENTER, ink=ink), rest.replace("§", " ")
        return lettering, rest
    words = match["words"]
    while (shorter := _LETTERING_TAIL.sub("", words)) != words:
        words = shorter
    if not words.strip() or _NO_WORDS.match(words):
        return MISSING, ""
    return AddText(words.strip()[:_MAX_WORDS], Position.CENTER, _ink(fold(text))), ""


def _ink(folded: str) -> Colour | None:
    match = _INKED.search(folded)
    colours = find_colours(next(group for group in match.groups() if group)) if match else ()
    return colours[0] if colours else None


def read_area_wish(text: str) -> Edit | AskBack | Talk:
    """Return what the person wants inside their mask; Talk(MASK) when none of it can be done there."""
    text = text[:MAX_CHARACTERS]
    if not has_words(text):
        return AskBack(Reason.PICTURE_ONLY)
    plain = _plainly(text)
    if _is_talk(plain):
        wish = understand(text, has_pictures=True)
        return wish if isinstance(wish, Talk) else Talk(Topic.MASK)
    lettering, rest = _read_lettering(plain)
    operations: list[Operation] = [lettering] if isinstance(lettering, AddText) else []
    left_out: list[str] = []
    if lettering == MISSING:
        return AskBack(Reason.TEXT)
    for words in () if _INVERSE.search(fold(plain)) else _clauses(rest):
        clause = words.strip()
        operation = _area_operation(clause)
        found = [operation] if operation is not None else _whole_operations(clause)
        operations += found
        left_out += [] if found else [clause]
    if not operations:
        return Talk(Topic.MASK)
    return Edit(tuple(dict.fromkeys(operations)), tuple(left_out))


def _is_talk(plain: str) -> bool:
    """Whether the words, without their politeness, are a question, a greeting or the like."""
    wish = understand(plain, has_pictures=True)
    topics = {Topic.GREETING, Topic.THANKS, Topic.ABILITIES, Topic.QUESTION, Topic.SEARCH}
    return isinstance(wish, Talk) and wish.topic in topics


def _plainly(text: str) -> str:
    """Return the text, its case kept, without what only makes it polite."""
    stripped = text.strip()
    opening = _POLITE.match(stripped.lower().replace("’", "'"))
    return _POLITE_END.sub("", stripped[opening.end() if opening else 0 :]) or stripped


def _clauses(text: str) -> list[str]:
    folded = without_handles(fold(text))
    if _PATTERNED.search(folded):
        folded = _TWO_COLOURS.sub(r"\1 ", folded)
    return [clause for clause in clauses(folded) if has_words(clause)]


def _area_operation(clause: str) -> Operation | None:
    """Return what only an area can have, when the clause asks for that and nothing more."""
    if _ERASE.search(clause):
        if _COLOUR_ALONE.search(clause):
            return Adjustment(saturation=-100)
        return Erase() if _PLAIN_FILL.search(clause) or not _NO_ERASING.search(clause) else None
    if _CONTINUE.search(clause) and _is_understood(_CONTINUE.sub(" ", _OF_IT.sub(" ", clause))):
        return Erase()
    patterned = _PATTERNED.search(clause)
    rest = re.sub(COLOUR, " ", _PATTERNED.sub(" ", _OF_IT.sub(" ", clause)))
    colours = find_colours(clause)
    if patterned:
        return _fill(clause, patterned[0], colours) if _is_understood(rest) else None
    if len(colours) != 1 or exact_adjustment(clause) or _THING.search(clause) or not _is_understood(rest):
        return None
    if _PLAIN_FILL.search(clause):
        return Fill(PatternKind.PLAIN, colours[0], colours[0])
    is_bare = re.fullmatch(rf"\s*(?:in |to |into |用)?{COLOUR}\s*(?:colou?r|的)?\s*", clause)
    return Recolour(colours[0]) if is_bare or _CHANGES.search(clause) else None


def _is_understood(rest: str) -> bool:
    return _CONTENT.search(_FILLER.sub(" ", rest)) is None


def _fill(clause: str, named: str, colours: tuple[Colour, ...]) -> Fill:
    kind = next(kind for kind, pattern in _KINDS[:2] + _KINDS[4:] if pattern.search(named))
    if kind is PatternKind.STRIPES:
        kind = next(kind for kind, pattern in _KINDS[2:] if pattern.search(clause))
    first = colours[0] if colours else _BLUE
    second = colours[1] if len(colours) > 1 else _DARK if sum(first) > _LIGHT_SUM else _WHITE
    return Fill(kind, first, second)


def _whole_operations(clause: str) -> list[Operation]:
    """Return what can be asked of a whole picture as well; nothing when a thing is to be painted or pixels to move."""
    read = read_clause(clause)
    if any(moves_pixels(operation) for operation in read.operations):
        return []
    return read.operations if not _ADDS.search(clause) or _is_understood(read.rest) else []
