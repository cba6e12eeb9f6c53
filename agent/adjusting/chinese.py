"""The phrases of Chinese that ask for an adjustment of the whole picture, and the words that may stand around them."""

from __future__ import annotations

import re

from agent.adjusting.adjustment import Adjustment, Flip
from agent.adjusting.phrases import (
    A_BIT,
    HANDLE,
    MUCH,
    PLAIN,
    Read,
    Reader,
    Rule,
    complaint_read,
    group,
    ratio_read,
    tone_read,
    turn_read,
)

# Characters of traditional script that the phrases below are made of.
SIMPLIFIED = str.maketrans(
    "對飽銳轉變點調幫圖張這順時針鏡個麼請給讓將顏鮮豔艷體畫淺濃剪減強度邊為來謝還後並圓橫縱豎",
    "对饱锐转变点调帮图张这顺时针镜个么请给让将颜鲜艳艳体画浅浓剪减强度边为来谢还后并圆横纵竖",
)

_PICTURE = "(?:图片|图像|照片|相片|画面|原图|图)"
TARGET = (
    rf"(?:(?:这|那|此|该)(?:一)?[张幅个]?{_PICTURE}|{_PICTURE}?{HANDLE}(?:这[张幅]{_PICTURE}?|{_PICTURE})?|{_PICTURE}"
    rf"|整[张幅个]{_PICTURE}|整体|全图|它|这[张幅])"
)
_LITTLE_BEFORE = "(?:稍微|稍稍|稍|略微|略|微微|轻微)(?:地)?"
_LOT_BEFORE = "(?:大幅度?|大大|明显|显著|非常|特别)(?:地)?"
_BEFORE = rf"(?:(?P<before>{_LITTLE_BEFORE}|{_LOT_BEFORE})(?:再)?)?"
_LITTLE_AFTER = "(?:那么)?(?:一点点|一丁点|一丢丢|一点儿?|点儿?)"
_LOT_AFTER = "(?:很多|许多|好多|不少|得多)"
_SOME_AFTER = "(?:一些|些)"
_NUMERAL = "(?:[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_NUMBER = rf"(?:(?P<digits>\d{{1,3}}(?:\.\d+)?) ?(?P<percent>%)?|百分之(?P<hundredths>\d{{1,2}}|{_NUMERAL}))"
_AFTER = rf"(?: ?{_NUMBER}|(?P<after>{_LITTLE_AFTER}|{_LOT_AFTER}|{_SOME_AFTER}))?"

_ADJECTIVES: dict[tuple[str, int], str] = {
    ("brightness", 1): "(?:明亮|亮堂|亮)",
    ("brightness", -1): "(?:昏暗|暗)",
    ("saturation", 1): "(?:鲜艳|鲜亮|饱满|艳丽)",
    ("warmth", 1): "暖",
    ("warmth", -1): "冷",
    ("sharpness", 1): "(?:锐利|锐)",
    ("sharpness", -1): "模糊",
}
_OF_COLOUR = {"saturation", "warmth"}
# What a picture is said to be too much of, or not enough.
_COMPLAINED: dict[tuple[str, int], str] = {
    ("brightness", 1): "(?:明亮|亮)",
    ("brightness", -1): "(?:昏暗|暗|黑)",
    ("contrast", -1): "灰",
    ("saturation", 1): "(?:鲜艳|艳丽|艳|浓)",
    ("saturation", -1): "(?:寡淡|淡|素)",
    ("warmth", 1): "(?:暖|黄|橙)",
    ("warmth", -1): "(?:冷|蓝)",
    ("sharpness", 1): "(?:锐利|锐)",
    ("sharpness", -1): "(?:模糊|糊)",
}
_NOT_SO = "(?:不要|不用|不必|没必要|不需要|不想要|不|没有|没|别)(?:再)?(?:那么|这么|那样|这样)"
_VERBS: dict[tuple[str, int], str] = {
    ("brightness", 1): "(?:[提加增]亮)",
    ("brightness", -1): "(?:[压降]暗)",
    ("sharpness", 1): "(?:锐化)",
    ("sharpness", -1): r"模糊(?=一下|\d)",
}
_NOUNS = {
    "brightness": "(?:明亮度|亮度|明度)",
    "contrast": "(?:对比度?|反差)",
    "saturation": "(?:(?:色彩|颜色)?饱和度|鲜艳度)",
    "warmth": "(?:暖度)",
    "sharpness": "(?:锐利度|锐度)",
}
# Said of light, more of it is colder; as a slider with its number it is what photo programs call warmth.
_SLIDERS = {"warmth": "色温"}
_UP = r"(?:提高|提升|增加|增强|增大|加强|加大|加高|调高|调大|调强|升高|拉高|高|大|强烈|强|加(?=\d))"
_DOWN = r"(?:降低|减少|减弱|减小|下降|调低|调小|调弱|拉低|低|小|弱|减(?=\d))"
_UP_VERB = "(?:提高|提升|增加|增强|增大|加强|加大|加高|调高|调大|拉高|加)"
_DOWN_VERB = "(?:降低|减少|减弱|减小|调低|调小|拉低|减)"
_COLOURS = "(?:整体)?(?:颜色|色彩|色调)"
_RATIO = (
    r"(?:竖版|横版|竖屏|横屏)?"
    rf"(?:(?P<square>正方形|方形|方图|方的)|(?P<width>\d{{1,2}}|{_NUMERAL}) ?[:比x] ?(?P<height>\d{{1,2}}|{_NUMERAL}))"
    "(?:的?(?:比例|画幅|长宽比))?"
)
_CUT = "(?:裁剪|裁切|剪裁|剪切|裁)"
_SIDE = "(?:[向往朝]?(?P<side>左|右|顺时针|逆时针)(?:方向)?)"
_ANGLE = rf"(?P<angle>\d{{1,3}}(?:\.\d+)?|一百八十|{_NUMERAL})[度°]"
_TURN = "(?:旋转|转动|转|旋)"
_MIRRORED = "(?:翻转|镜像|反转|翻)"
_WAY = "(?P<way>水平|左右|横向|垂直|上下|纵向|竖直)"

FILLERS = (
    "请|麻烦你?|帮我|帮忙|给我|能不能|可不可以|可以|能否|能|我想要?|我要|我希望|希望|想要?|你|您|再|还要|还|就|只要?|也",
    "(?:把|将|让|使|给)?" + TARGET + "的?",
    "一下|吧|吗|呢|啊|呀|哦|好吗|好不好|行吗|可以吗|好的|好|嗯|但是?|不过",
    "(?:谢谢你?|多谢|谢啦)(?=[ 。.!]*$)",
    # Only before a wish: 不错，亮很多 is praise, and the picture is done.
    "(?:不错|很好|挺好|挺好的|很棒)(?=[ ,.!]*就是)|就是|(?:我)?(?:觉得|感觉|看起来|看着)|比(?:现在|原来|之前"
    "|刚才)|有点?歪了?(?=[ ,.])|歪了",
    "要(?=[变调更]?[一亮暗暖冷])",
    "(?:不错|很好)(?=[ ,.!]*(?:再|但|不过|请|把|能|可以|麻烦))",
    "然后|接着|并且|而且|同时|以及|并|和|跟",
)


def rules() -> tuple[Rule, ...]:
    """Return the phrases with what each asks for; of those that fit at one place the longest counts."""
    return (
        *(_adjective(tone, sign, words) for (tone, sign), words in _ADJECTIVES.items()),
        *(_verb(tone, sign, words) for (tone, sign), words in _VERBS.items()),
        *(rule for tone, noun in _NOUNS.items() for rule in _noun(tone, noun)),
        *(_complaint(tone, sign, words) for (tone, sign), words in _COMPLAINED.items()),
        *_complaints(),
        *_light(),
        *_colour(),
        *_frame(),
    )


def _rule(words: str, read: Reader) -> Rule:
    # The particles that close a request; "了" would make it a report of what has happened.
    return re.compile(rf"(?:{words})(?:一下)?(?![0-9%了])"), read


def _amount(match: re.Match[str]) -> int:
    """Return how much is meant, above 0: a number wins over words, and words over nothing said."""
    written = group(match, "digits", "hundredths")
    if written:
        return round(_counted(written))
    before, after = group(match, "before"), group(match, "after", "part")
    if re.fullmatch(_LITTLE_BEFORE, before) or re.fullmatch(_LITTLE_AFTER, after):
        return A_BIT
    return MUCH if before or re.fullmatch(_LOT_AFTER, after) else PLAIN


def _counted(written: str) -> float:
    """Return a number in digits, or in numerals up to ninety-nine, or one hundred and eighty."""
    if written[0].isdigit():
        return float(written)
    if written == "一百八十":
        return 180
    tens, has_tens, ones = written.rpartition("十")
    digits = "〇一二三四五六七八九"
    return (digits.index(tens) if tens else 1) * 10 * bool(has_tens) + (digits.index(ones) if ones else 0)


def _adjective(tone: str, sign: int, adjective: str) -> Rule:
    """Return the rule for a quality that is compared."""

    def read(match: re.Match[str]) -> Read | None:
        # An adjective alone only describes, and 亮点 alone is a highlight.
        is_said = group(match, "before", "made", "more", "digits", "hundredths")
        if not is_said and group(match, "after") in ({""} if group(match, "again") else {"", "点"}):
            return None
        return tone_read(tone, sign * _amount(match))

    colours = rf"(?:[把将让]?{_COLOURS}再?)?" if tone in _OF_COLOUR else ""
    compared = rf"{_BEFORE}(?P<made>[调变弄改]得?)?(?P<again>再)?(?P<more>更加?|偏)?{adjective}色?{_AFTER}"
    return _rule(colours + compared, read)


def _complaint(tone: str, sign: int, adjective: str) -> Rule:
    """Return the rule for what is wrong: too much of it, so much of it, or not enough."""

    def read(match: re.Match[str]) -> Read:
        amount = A_BIT if group(match, "bit") else PLAIN
        return complaint_read(tone, amount if (sign > 0) == bool(group(match, "enough")) else -amount)

    subject = rf"(?:(?:{TARGET}|整体|{_COLOURS})(?:的)?(?:看起来|还是|都|也)?)?"
    return re.compile(
        rf"{subject}(?:(?:太|过于|还是太){adjective}(?:了)?(?:点儿?|一点儿?|些|一些)?(?:了)?"
        rf"|(?P<bit>有一?点儿?|有些|稍微有点|略|略微)(?:太|偏)?{adjective}(?:了)?"
        rf"|(?:偏|过){adjective}(?:了)|(?<![一-龥])偏{adjective}$"
        rf"|(?P<enough>不够|没有?足够){adjective}|{_NOT_SO}{adjective}(?:的(?:色调|颜色|画面))?)"
    ), read


def _complaints() -> list[Rule]:
    """Return the rules for too much or too little of a quality called by its name, with how to mend it or without."""
    mended = "(?: ?, ?(?:请|再|要)?(?:调)?(?:弱|低|小|强|高|大|减|加)(?P<after>一点点|一点儿?|点|一些|些))?"

    def reader(tone: str) -> Reader:
        def read(match: re.Match[str]) -> Read:
            amount = A_BIT if group(match, "bit") or re.fullmatch(_LITTLE_AFTER, group(match, "after")) else PLAIN
            return complaint_read(tone, amount if group(match, "little") else -amount)

        return read

    return [
        _rule(
            rf"(?:{TARGET}的?)?{noun}(?:太|过于|(?P<bit>有点儿?|有些|偏))(?:(?P<little>低|小|弱|不足)|高|大|强)了?{mended}",
            reader(tone),
        )
        for tone, noun in _NOUNS.items()
    ]


def _light() -> list[Rule]:
    """Return the rules for light that is counted in stops, halves and doubles, and for too much or too little of it."""
    stops = r"(?P<stops>半|一|两|1|2|0\.5)[档级]"

    def moved(match: re.Match[str]) -> Read | None:
        amount = {"半": 25, "0.5": 25, "一": 50, "1": 50}.get(match["stops"], 100)
        return tone_read("brightness", amount if group(match, "up") else -amount)

    def exposed(match: re.Match[str]) -> Read:
        return complaint_read(
            "brightness", (A_BIT if group(match, "bit") else PLAIN) * (1 if group(match, "little") else -1)
        )

    def halved(match: re.Match[str]) -> Read | None:
        return tone_read("brightness", 50 if group(match, "up", "doubled") else -50)

    return [
        _rule(rf"曝光(?:度|补偿)?(?:再)?(?:(?P<up>加|增加|提高|提升)|减|减少|降低){stops}", moved),
        (
            re.compile(r"(?:有点儿?|(?P<bit>略|稍微))?(?:曝光过度|过曝|曝光过[头高]|(?P<little>曝光不足|欠曝))了?"),
            exposed,
        ),
        _rule("(?:亮度|光线)(?:减半|降低?一半|(?P<up>加倍|翻倍|提高一倍))|暗一半|(?P<doubled>亮一倍)", halved),
        _rule("柔和一[点些](?=[ ,.]*(?:不要|别|没)[那这]?[么样]?锐)", lambda match: tone_read("sharpness", -A_BIT)),
        _rule("压一压|压一下(?:高光)?", lambda match: tone_read("brightness", -PLAIN)),
    ]


def _verb(tone: str, sign: int, verb: str) -> Rule:
    return _rule(rf"{_BEFORE}{verb}{_AFTER}", lambda match: tone_read(tone, sign * _amount(match)))


def _noun(tone: str, noun: str) -> list[Rule]:
    """Return the rules for a quality called by its name: raised or lowered, or given a number."""

    def moved(match: re.Match[str]) -> Read | None:
        return tone_read(tone, (1 if group(match, "up") else -1) * _amount(match), is_moved=True)

    def stated(match: re.Match[str]) -> Read | None:
        is_unsigned = match["stated"][0].isdigit()
        # "50 %" may mean half of what there is: whoever says neither plus nor minus has to be asked.
        if group(match, "percent") and is_unsigned:
            return None
        return tone_read(tone, round(float(match["stated"].replace(" ", ""))), is_unsigned=is_unsigned)

    way = rf"再?更?(?:(?P<up>{_UP})|{_DOWN})"
    act = rf"(?:(?P<up>{_UP_VERB})|{_DOWN_VERB})"
    slider = rf"(?:{noun}|{_SLIDERS[tone]})" if tone in _SLIDERS else noun
    stated_number = r"(?P<stated>[+-]? ?\d{1,3}(?:\.\d+)?) ?(?P<percent>%)?"
    return [
        _rule(rf"(?:[把将让]?{TARGET}?的?)?{noun}{_BEFORE}{way}{_AFTER}", moved),
        _rule(rf"{_BEFORE}{act}(?:一下|(?P<part>一点点|一点儿?|一些|点))?(?:{TARGET}的?)?{noun}{_AFTER}", moved),
        _rule(rf"[把将让]?{slider} ?[:=]? ?(?:[调设改]?[到为成])? ?{stated_number}", stated),
    ]


def _colour() -> list[Rule]:
    grey = Read(Adjustment(saturation=-100))
    made = "(?:(?:变|改|转|转换|做|弄|调|换|处理)(?:成|为)|[变转改])"
    paler = rf"{_COLOURS}{_BEFORE}再?(?P<more>更)?(?:淡|浅){_AFTER}"

    def faded(match: re.Match[str]) -> Read | None:
        if not group(match, "before", "more", "after", "digits", "hundredths"):
            return None
        return tone_read("saturation", -_amount(match))

    return [
        _rule(rf"{made}(?:黑白|灰度)(?:色|照片?|图片?|版|效果|模式)?的?", lambda match: grey),
        _rule("(?:黑白|灰度)(?![照图相画版])的?", lambda match: grey),
        _rule("去色|去[掉除](?:所有|全部)?(?:的)?(?:颜色|色彩)(?:[, ]*只[留剩]黑白)?", lambda match: grey),
        # Black and white before a thing is how the thing looks.
        _rule("(?:黑白|灰度)(?:照片?|图片?|相片|效果)(?=[ 。.!吧]*$)", lambda match: grey),
        _rule(
            rf"(?:{_COLOURS}{_BEFORE}再?(?:浓|鲜艳|饱满){_AFTER})",
            lambda match: tone_read("saturation", _amount(match)) if group(match, "after", "digits") else None,
        ),
        _rule("(?P<warm>暖|冷)(?:色)?调(?P<after>一点点|一点儿?|一些)", _toned_as),
        _rule(paler, faded),
    ]


def _toned_as(match: re.Match[str]) -> Read | None:
    return tone_read("warmth", _amount(match) * (1 if match["warm"] == "暖" else -1))


def _frame() -> list[Rule]:
    """Return the rules for crops, turns and mirrors."""

    def cropped(match: re.Match[str]) -> Read | None:
        if group(match, "square"):
            return ratio_read(1, 1)
        return ratio_read(round(_counted(match["width"])), round(_counted(match["height"])))

    def turned(match: re.Match[str]) -> Read | None:
        angle = group(match, "angle")
        return turn_read(_counted(angle) if angle else 90, is_left=group(match, "side") in {"左", "逆时针"})

    def flipped(match: re.Match[str]) -> Read:
        is_vertical = group(match, "way") in {"垂直", "上下", "纵向", "竖直"}
        return Read(Adjustment(flip=Flip.VERTICAL if is_vertical else Flip.HORIZONTAL))

    cut = rf"{_CUT}(?:{TARGET})?"
    return [
        _rule(rf"{cut}(?:成|为|到|至|出)?(?:一[个张])?{_RATIO}", cropped),
        _rule(rf"(?:按照?|以|用){_RATIO}{cut}", cropped),
        _rule(rf"{_SIDE}{_TURN}(?:{TARGET})?{_ANGLE}", turned),
        _rule(rf"{_TURN}(?:{TARGET})?{_SIDE}?{_ANGLE}", turned),
        _rule(rf"{_SIDE}{_ANGLE}{_TURN}", turned),
        _rule(rf"{_SIDE}旋转", turned),
        _rule(rf"(?:拉直|扶正|校正|摆正)(?:{TARGET})?{_ANGLE}", turned),
        _rule(rf"(?:把{TARGET})?(?:倒过来|上下颠倒|颠倒过来|颠倒)", lambda match: turn_read(180, is_left=False)),
        _rule(rf"(?:做(?:个|一个)?)?{_WAY}(?:做)?{_MIRRORED}(?:{TARGET})?", flipped),
        _rule(rf"{_MIRRORED}(?:{TARGET})?{_WAY}", flipped),
        _rule("镜像(?:翻转)?(?=一下|$)", flipped),
    ]
