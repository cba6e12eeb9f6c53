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
    ("brightness", 1): "(?:明亮|亮)",
    ("brightness", -1): "(?:昏暗|暗)",
    ("saturation", 1): "(?:鲜艳|鲜亮)",
    ("warmth", 1): "暖",
    ("warmth", -1): "冷",
    ("sharpness", 1): "(?:锐利|锐)",
    ("sharpness", -1): "模糊",
}
_OF_COLOUR = {"saturation", "warmth"}
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
_UP = r"(?:提高|提升|增加|增强|增大|加强|加大|加高|调高|调大|调强|升高|拉高|高|大|强|加(?=\d))"
_DOWN = r"(?:降低|减少|减弱|减小|下降|调低|调小|调弱|拉低|低|小|弱|减(?=\d))"
_UP_VERB = "(?:提高|提升|增加|增强|增大|加强|加大|加高|调高|调大|拉高|加)"
_DOWN_VERB = "(?:降低|减少|减弱|减小|调低|调小|拉低|减)"
_COLOURS = "(?:整体)?(?:颜色|色彩|色调)"
_RATIO = (
    rf"(?:(?P<square>正方形|方形|方图)|(?P<width>\d{{1,2}}|{_NUMERAL}) ?[:比x] ?(?P<height>\d{{1,2}}|{_NUMERAL}))"
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
    "(?:不错|很好)(?=[ ,.!]*(?:再|但|不过|请|把|能|可以|麻烦))",
    "然后|接着|并且|而且|同时|以及|并|和|跟",
)


def rules() -> tuple[Rule, ...]:
    """Return the phrases with what each asks for; of those that fit at one place the longest counts."""
    return (
        *(_adjective(tone, sign, words) for (tone, sign), words in _ADJECTIVES.items()),
        *(_verb(tone, sign, words) for (tone, sign), words in _VERBS.items()),
        *(rule for tone, noun in _NOUNS.items() for rule in _noun(tone, noun)),
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
        _rule("去色|去[掉除](?:所有|全部)?(?:的)?(?:颜色|色彩)", lambda match: grey),
        _rule(paler, faded),
    ]


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
        _rule(rf"(?:做(?:个|一个)?)?{_WAY}(?:做)?{_MIRRORED}(?:{TARGET})?", flipped),
        _rule(rf"{_MIRRORED}(?:{TARGET})?{_WAY}", flipped),
        _rule("镜像(?:翻转)?(?=一下|$)", flipped),
    ]
