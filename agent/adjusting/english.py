"""The phrases of English that ask for an adjustment of the whole picture, and the words that may stand around them."""

from __future__ import annotations

import functools
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

_PICTURE = r"(?:image|picture|photo|pic|photograph|shot)"
TARGET = (
    rf"(?:(?:the |this |that |my )?(?:whole |entire |full )?{_PICTURE}(?: ?{HANDLE})?|{HANDLE}|this one|that one"
    r"|the (?:whole|entire) thing|everything|things|it|this|that)"
)
_OF_TARGET = rf"(?: (?:of|for|in|to|on) {TARGET}| overall)?"

_LITTLE = (
    r"(?:just |only )?(?:a (?:tiny |little |wee |small )?bit|a (?:little|touch|tad|hair|smidge|smidgen)"
    r"|(?:very |ever so )?slightly|subtly|somewhat)"
)
_LOT = (
    r"(?:(?:quite )?a (?:whole )?lot|lots|much much|much|way|far|significantly|considerably|dramatically|substantially"
    r"|a great deal|a good deal|strongly|heavily)"
)
_SOME = r"(?:even|some|still)"
_DEGREE = rf"(?:{_LITTLE}|{_LOT}|{_SOME})"
_PERCENT = r"(?:%| ?percent| ?per cent| ?pct)"
_DIGITS = r"\d{1,3}(?:\.\d+)?"
_COUNTED = rf"{_DIGITS}(?:{_PERCENT}| ?points?)"
_NUMBER = rf"{_DIGITS}(?:{_PERCENT}| ?points?)?"
_STOPS = r"(?P<stops>half an?|one|an?|two|\d(?:\.\d+)?)(?: an?)?(?: full)? stops?"
_WORDS_AFTER = rf"(?: by)? (?P<after>{_LITTLE}|{_LOT})"
# How much, said after the change: "by 20", "20%", "a bit", "by a lot". A bare number may be another thing's.
_ABOUT = r"(?:,? (?:about|around|roughly|like|maybe|say))"
_AFTER = (
    rf"(?:(?: by (?=\d)|{_ABOUT}? (?={_COUNTED}))(?P<after_number>{_NUMBER})(?: less| more)?|(?: by)? {_STOPS}"
    rf"|{_WORDS_AFTER})?"
)
_AFTER_NOUN = rf"(?:(?: by)? (?P<after_number>{_NUMBER})|{_WORDS_AFTER})?"
# "Make 2 brighter" speaks of picture 2.
_BEFORE = rf"(?:(?P<before_number>\+{_NUMBER}|{_COUNTED}) |(?P<before>{_DEGREE}) )?"

_NOUNS = {
    "brightness": r"brightness",
    "contrast": r"contrast",
    "saturation": r"(?:colou?r )?saturation",
    "warmth": r"warmth",
    "sharpness": r"sharpness",
}
_COMPARATIVES: dict[tuple[str, int], str] = {
    ("brightness", 1): r"(?:brighter|lighter|more bright(?:ness)?|less dark)",
    ("brightness", -1): r"(?:darker|dimmer|less bright(?:ness)?|more dark)",
    (
        "saturation",
        1,
    ): r"(?:more (?:colou?r )?saturat(?:ed|ion)|more vivid|more vibrant|more colou?rful|higher saturation)",
    (
        "saturation",
        -1,
    ): r"(?:less (?:colou?r )?saturat(?:ed|ion)|less vivid|less vibrant|less colou?rful|lower saturation)",
    ("contrast", 1): r"(?:(?:more|higher|stronger) contrast|more contrasty)",
    ("contrast", -1): r"(?:(?:less|lower|weaker)(?: harsh| strong)? contrast|less contrasty)",
    ("warmth", 1): r"(?:warmer|more warm|more warmth|less cold|less cool|less blue|more yellow|yellower)",
    ("warmth", -1): r"(?:colder|less warm|less yellow|less orange|more blue|bluer|less warmth)",
    ("sharpness", 1): r"(?:sharper|crisper|more sharp|more sharpness|less blurry|less blurred)",
    ("sharpness", -1): r"(?:blurrier|less sharp|less sharpness|more blurry|more blurred)",
}
_COLOURS = r"(?:colou?rs?|tones?|hues?|white balance|colou?r temperature)"
_OF_COLOUR = {"saturation", "warmth"}
_VERBS: dict[tuple[str, int], str] = {
    ("brightness", 1): r"(?:brighten|lighten)",
    ("brightness", -1): r"(?:darken|dim)",
    ("warmth", 1): r"warm",
    ("warmth", -1): r"cool",
    ("sharpness", 1): r"sharpen",
    ("sharpness", -1): r"blur",
}
_RAISE = (
    r"(?:increase|raise|boost|bump up|bump|turn up|crank up|bring up|dial up|push up|pump up|lift|up|enhance|strengthen"
    r"|add)"
)
_REDUCE = (
    r"(?:decrease|reduce|lower|turn down|bring down|dial down|dial back|tone down|pull down|take down|drop|cut|lessen)"
)
_MOVE = r"(?:turn|bring|dial|crank|take|bump|push|pull)"
_BLACK_AND_WHITE = r"(?:black[ -](?:and|&|n|'n')[ -]white|b ?& ?w|b/w|gr[ae]y ?scale)"
# What a picture is said to be too much of, or not enough.
_ADJECTIVES: dict[tuple[str, int], str] = {
    ("brightness", 1): r"(?:bright|light|overexposed|over-exposed)",
    ("brightness", -1): r"(?:dark|dim|underexposed|under-exposed)",
    ("contrast", 1): r"contrasty",
    ("contrast", -1): r"flat",
    ("saturation", 1): r"(?:saturated|oversaturated|vivid|vibrant|colou?rful|strong|intense|gaudy)",
    ("saturation", -1): r"(?:dull|pale|faded|washed[- ]out|muted)",
    ("warmth", 1): r"(?:warm|yellow|orange)",
    ("warmth", -1): r"(?:cold|blue|bluish)",
    ("sharpness", 1): r"(?:sharp|crisp)",
    ("sharpness", -1): r"(?:blurry|blurred|soft|fuzzy|out of focus)",
}
_SUBJECT = (
    rf"(?:(?:{TARGET}|(?:(?:the|its) )?(?:colou?rs?|tones?))(?:'s| is| are| was| looks?| seems?| feels?| came out"
    r"| comes out| turned out)(?: still)? |(?:looks?|seems?|feels?|came out)(?: still)? )"
)
_RATIO = r"(?P<width>\d{1,2}) ?(?::|x|by|/) ?(?P<height>\d{1,2})|(?P<square>square)"
_SHAPE = (
    r"(?:an? )?(?:widescreen |wide |portrait |landscape )?(?:cent(?:ered|red|er"
    rf"|re) )?(?:{_RATIO})(?: (?:aspect ratio|ratio|format|shape|aspect|crop))?"
)
_SIDE = (
    r"(?P<side>(?:to(?: the| your)? )?(?:left|right)|(?:counter|anti)[ -]?clockwise|clockwise|ccw|cw)"
    r"(?: direction)?"
)
_ANGLE = r"(?P<angle>[+-]?\d{1,3}(?:\.\d+)?|ninety) ?(?:°|degrees?|deg)?"
_DEGREES = r"(?P<angle>[+-]?\d{1,3}(?:\.\d+)?|ninety) ?(?:°|degrees?|deg)"
_FLIP = (
    r"(?P<way>horizontal(?:ly)?|vertical(?:ly)?|left[ -]to[ -]right|left[ -]right|top[ -]to[ -]bottom"
    r"|so(?: that)? left is right)"
)

FILLERS = (
    r"please|pls|plz|kindly|now|ok|okay|and|then|also|just|hey|hi|hello|maybe|perhaps|yes|yeah",
    r"(?:thanks|thank you|thx)(?=[ .!]*$)",
    # Only before a wish: "great, much brighter!" is praise, and the picture is done.
    r"(?:nice|great|good|perfect|lovely)(?=[ ,.!]+(?:but|now|please|can|could|make)\b)",
    rf"(?:nice|great|good|perfect|lovely)(?=[ ,.!]+(?:but|though) {_SUBJECT})",
    rf"but(?= {_SUBJECT})",
    r"keep the colou?rs(?: as they are)?(?=[ ,.!]+(?:but|and)\b)",
    r"(?:could|should|must|has to|needs to) be|needs(?= (?:to be|more|less|way|much|a ))|fix (?:that|it|this)",
    r"(?:would|could|can|will) you(?=[ .?!]*$)",
    r"(?:for|on) (?:instagram|insta|facebook|tiktok|youtube|twitter|x|the web|print)(?=[ .!]*$)",
    r"but(?= (?:make|now|please|an?|a bit|slightly|much|with)\b)",
    rf"(?:can|could|would|will) (?:you|we)(?: please)?(?: (?:make|turn|get))?(?: {TARGET})?",
    rf"(?:can|could) {TARGET} be(?: made)?",
    rf"(?:i want|i need|i'd like|i would like|i'd love|i prefer)(?: {TARGET})?(?: to be| to look)?"
    r"(?: you to)?(?: make| turn)?",
    rf"(?:let's |lets |let us )?(?:make|get|have|give)(?: {TARGET})?(?: look)?",
    rf"{TARGET} (?:should|could|must|needs to|has to) (?:be|look|have)",
    rf"{TARGET} (?:needs|could use)",
    rf"(?:to|for|on|in) {TARGET}",
    TARGET,
    r"for me|if possible|if you can|with(?= (?:more|less|higher|lower|a bit|a little|slightly|much|way))",
    r"(?:too|as well)(?=[ .!?]*$)",
)


def rules() -> tuple[Rule, ...]:
    """Return the phrases with what each asks for; of those that fit at one place the longest counts."""
    return (
        *(_comparative(tone, sign, words) for (tone, sign), words in _COMPARATIVES.items()),
        *(_verb(tone, sign, words) for (tone, sign), words in _VERBS.items()),
        *(rule for tone, noun in _NOUNS.items() for rule in _noun(tone, noun)),
        *(_complaint(tone, sign, words) for (tone, sign), words in _ADJECTIVES.items()),
        *_complaints(),
        *_exposure(),
        *_colour(),
        *_frame(),
    )


def _rule(words: str, read: Reader) -> Rule:
    return re.compile(rf"(?:{words})(?![\w%°'+-])"), read


def _amount(match: re.Match[str], *, lacking: int = PLAIN) -> int:
    """Return how much is meant, above 0: a number wins over words, and words over nothing said."""
    written = group(match, "before_number", "after_number", "part_number")
    if written:
        return round(float(re.sub(r"[^\d.]", "", written)))
    if stops := group(match, "stops"):
        return _stops(stops)
    words = group(match, "before", "after", "part")
    if re.fullmatch(_LITTLE, words):
        return A_BIT
    if re.fullmatch(_LOT, words):
        return MUCH
    return PLAIN if words else lacking


def _stops(said: str) -> int:
    """Return the amount for stops of exposure: brightness doubles the light for each 50."""
    named = {"half": 0.5, "a": 1, "an": 1, "one": 1, "two": 2}
    return round(50 * (named.get(said.split(maxsplit=1)[0]) or float(said)))


def _complaint(tone: str, sign: int, adjective: str) -> Rule:
    """Return the rule for what is wrong: too much of it, so much of it, or not enough."""
    measured = r"(?:(?:over|under)-?exposed|washed[- ]out|oversaturated)"

    def read(match: re.Match[str]) -> Read:
        way = sign if group(match, "enough") else -sign
        return complaint_read(tone, way * _amount(match))

    return _rule(
        rf"(?:i (?:think|feel|find)(?: that)? )?(?:{_SUBJECT}(?:just )?)?"
        rf"(?:(?:(?P<before>{_DEGREE}) )?too {adjective}"
        rf"|not (?:so|that|as|quite so|quite as) {adjective}|not (?P<enough>{adjective}) enough"
        rf"|(?=(?:{_DEGREE} )?{measured})(?:(?P<part>{_DEGREE}) )?{adjective}"
        rf"|(?<=[a-z] )(?:(?P<after>{_DEGREE}|rather|quite) ){adjective})",
        read,
    )


def _complaints() -> list[Rule]:
    """Return the rules for too much or too little of a quality called by its name, and for what is not wanted."""
    rules = [
        _rule(
            rf"(?:{_SUBJECT}|(?:there's|there is|it has|has) )?(?:(?P<before>{_DEGREE}) )?"
            rf"(?:too much|(?P<little>too little|not enough)) {noun}",
            functools.partial(_too_much, tone),
        )
        for tone, noun in (_NOUNS | {"saturation": r"(?:saturation|colou?r)"}).items()
    ]
    for (tone, sign), words in _COMPARATIVES.items():
        # Only before what is wanted instead.
        unwanted = (
            rf"(?:i )?(?:don't|do not) (?:want|need)(?: {TARGET})?(?: to be)? {words}(?=[ ,.;]+(?:but |i |make ))"
        )
        rules.append(_rule(unwanted, functools.partial(_unwanted, tone, sign)))
    return rules


def _too_much(tone: str, match: re.Match[str]) -> Read:
    return complaint_read(tone, _amount(match) * (1 if group(match, "little") else -1))


def _unwanted(tone: str, sign: int, match: re.Match[str]) -> Read:
    return complaint_read(tone, -sign * PLAIN)


def _exposure() -> list[Rule]:
    """Return the rules for light that is counted in stops, halves, thirds and doubles."""

    def moved(match: re.Match[str]) -> Read | None:
        return tone_read("brightness", (1 if group(match, "raise") else -1) * _amount(match))

    def stated(match: re.Match[str]) -> Read | None:
        stops = float(match["stated"].replace(" ", ""))
        return tone_read("brightness", round(50 * stops)) if abs(stops) <= 2 else None

    def by_factor(match: re.Match[str]) -> Read | None:
        if group(match, "double"):
            return tone_read("brightness", 50 if group(match, "bright") else -50)
        return tone_read("brightness", -50 if group(match, "bright") else 50)

    def by_part(match: re.Match[str]) -> Read | None:
        amount = {"half": 50, "third": 33, "quarter": 25}[match["share"]]
        return tone_read("brightness", amount if group(match, "bright") else -amount)

    dark = r"(?:(?P<bright>bright)|dark)"
    return [
        _rule(rf"(?:(?P<raise>{_RAISE})|{_REDUCE}) the exposure(?: by)?(?: {_STOPS}|{_WORDS_AFTER})?", moved),
        _rule(r"(?P<stated>[+-] ?\d(?:\.\d+)?) (?:stops? )?(?:of )?exposure", stated),
        _rule(r"exposure (?:by )?(?P<stated>[+-] ?\d(?:\.\d+)?)(?: stops?)?", stated),
        _rule(rf"(?:(?P<double>twice|two times)|half) as {dark}", by_factor),
        _rule(r"(?:an? |one )?(?P<share>half|third|quarter) (?:(?P<bright>brighter|lighter)|darker)", by_part),
    ]


def _comparative(tone: str, sign: int, words: str) -> Rule:
    def read(match: re.Match[str]) -> Read | None:
        has_number = bool(group(match, "before_number", "after_number"))
        degree = _amount(match) if group(match, "before") and not has_number else None
        borrows = not has_number and not group(match, "before", "after")
        return tone_read(tone, sign * _amount(match), degree=degree, borrows=borrows)

    if tone in _OF_COLOUR:
        return _rule(rf"(?:(?:the |its )?{_COLOURS} )?{_BEFORE}{words}(?: {_COLOURS})?{_OF_TARGET}{_AFTER}", read)
    return _rule(rf"{_BEFORE}{words}{_OF_TARGET}{_AFTER}", read)


def _verb(tone: str, sign: int, verb: str) -> Rule:
    # "Warm" and "cool" are verbs only with their particle.
    particle = {"warm": "up", "cool": "down"}.get(verb)
    if particle:
        coloured = rf"(?:{TARGET}|(?:the )?{_COLOURS})"
        body = rf"{verb}(?: {coloured} {particle}| {particle} {coloured}| {particle})"
    else:
        body = rf"{verb}(?: up| down)?(?: {TARGET})?(?: up| down)?"
    return _rule(rf"{_BEFORE}{body}{_AFTER}", lambda match: tone_read(tone, sign * _amount(match)))


def _noun(tone: str, noun: str) -> list[Rule]:
    """Return the rules for a quality called by its name: raised or lowered, or given a number."""
    the_noun = rf"(?:the |its )?(?:overall )?{noun}{_OF_TARGET}"
    part = rf"(?P<part>{_LITTLE}|{_LOT}|some)(?: of)?|(?P<part_number>\+?{_NUMBER})(?: of)?"
    some = rf"(?:(?:{part}) )?(?:more )?"

    def moved(match: re.Match[str]) -> Read | None:
        sign = 1 if group(match, "raise") or group(match, "direction") == "up" else -1
        return tone_read(tone, sign * _amount(match), is_moved=True)

    def stated(match: re.Match[str]) -> Read | None:
        is_unsigned = match["stated"][0].isdigit()
        # "50 %" may mean half of what there is: whoever says neither plus nor minus has to be asked.
        if group(match, "percent") and is_unsigned:
            return None
        return tone_read(tone, round(float(match["stated"].replace(" ", ""))), is_unsigned=is_unsigned)

    stated_number = rf"(?P<stated>[+-]? ?\d{{1,3}}(?:\.\d+)?)(?P<percent>{_PERCENT})?"
    return [
        _rule(rf"{_BEFORE}(?:(?P<raise>{_RAISE})|{_REDUCE}) {the_noun}(?: up| down)?{_AFTER_NOUN}", moved),
        _rule(rf"(?P<raise>add|give) {some}{noun}{_OF_TARGET}", moved),
        _rule(rf"(?:{_MOVE} )?{the_noun} (?P<direction>up|down|back){_AFTER_NOUN}", moved),
        _rule(rf"(?:(?:set|change|adjust|put) )?{the_noun}(?: to| at)? ?[:=]? ?{stated_number}", stated),
        _rule(rf"(?P<stated>[+-] ?\d{{1,3}})(?P<percent>{_PERCENT})? {noun}{_OF_TARGET}", stated),
    ]


def _colour() -> list[Rule]:
    """Return the rules for black and white, for less colour, and for "cooler"."""
    grey = Read(Adjustment(saturation=-100))
    wholly = r"(?:completely|fully|entirely|totally)"

    def faded(match: re.Match[str]) -> Read | None:
        # Alone the word means a little to some and all of it to others.
        return tone_read("saturation", -_amount(match, lacking=0))

    # "Cool" is praise as often as a colour: without a word for colour or a small degree it is not taken for one.
    cooler = (
        rf"(?P<before>{_LITTLE}) cooler(?: {_COLOURS})?|(?:(?P<part>{_DEGREE}) )?cooler in (?:tone|colou?r)"
        rf"|cooler {_COLOURS}|(?:the |its )?{_COLOURS} cooler"
    )
    return [
        _rule(
            rf"(?:(?:convert|turn|change|switch|render)(?: {TARGET})? )?(?:(?:in|to|into|as) )?(?:an? )?"
            rf"(?:{_BLACK_AND_WHITE}|monochrome)(?: (?:photo|picture|image|photograph|version))?(?= |[.!,?]|$)",
            lambda match: grey,
        ),
        _rule(rf"take (?:all )?(?:the |of the )?colou?rs? out(?: of {TARGET})?", lambda match: grey),
        _rule(rf"make the colou?rs pop(?: more)?{_AFTER}", lambda match: tone_read("saturation", _amount(match))),
        _rule(
            rf"(?:tone down|mute|soften) (?:the |its )?colou?rs{_AFTER}",
            lambda match: tone_read("saturation", -_amount(match)),
        ),
        _rule(rf"remove all (?:the )?colou?rs?(?: from {TARGET})?", lambda match: grey),
        _rule(rf"{wholly} desaturate(?: {TARGET})?|desaturate(?: {TARGET})? {wholly}", lambda match: grey),
        _rule(rf"{_BEFORE}desaturate(?: {TARGET})?{_AFTER}", faded),
        _rule(cooler, lambda match: tone_read("warmth", -_amount(match))),
    ]


def _frame() -> list[Rule]:
    """Return the rules for crops, turns and mirrors."""

    def cropped(match: re.Match[str]) -> Read | None:
        if group(match, "square"):
            return ratio_read(1, 1)
        return ratio_read(int(match["width"]), int(match["height"]))

    def turned(match: re.Match[str]) -> Read | None:
        angle, side = group(match, "angle"), group(match, "side")
        degrees = 90 if angle in {"", "ninety"} else float(angle)
        if not side:
            return turn_read(abs(degrees), is_left=degrees < 0)
        return turn_read(degrees, is_left=side.endswith("left") or side.startswith(("counter", "anti", "ccw")))

    def flipped(match: re.Match[str]) -> Read:
        is_vertical = group(match, "way").startswith(("vertical", "top"))
        return Read(Adjustment(flip=Flip.VERTICAL if is_vertical else Flip.HORIZONTAL))

    middle = r"(?: (?:in|from|at|around) the (?:cent(?:er|re)|middle))?"
    return [
        _rule(rf"(?:crop|trim|cut)(?: {TARGET})?(?: down)?(?: (?:to|into|as|in))? {_SHAPE}{middle}", cropped),
        _rule(rf"(?:(?:make|do) )?(?:an? )?(?:{_RATIO}) crop{middle}", cropped),
        # "Turn 7" may be the seventh turn of a talk, or a birthday.
        _rule(rf"rotate(?: {TARGET})?(?: by)? {_ANGLE}(?: {_SIDE})?", turned),
        _rule(rf"turn(?: {TARGET})?(?: by)? {_ANGLE} {_SIDE}", turned),
        _rule(rf"(?:turn|tilt|straighten)(?: {TARGET})?,?(?: by)? {_DEGREES}(?: {_SIDE})?", turned),
        _rule(rf"(?:rotate|turn)(?: {TARGET})? {_SIDE}(?: by)? {_ANGLE}", turned),
        _rule(rf"rotate(?: {TARGET})? {_SIDE}", turned),
        _rule(rf"(?:rotate(?: {TARGET})? (?:by )?)?a quarter turn {_SIDE}", turned),
        _rule(rf"(?:rotate|turn) (?:{TARGET} )?upside[ -]down", lambda match: turn_read(180, is_left=False)),
        _rule(rf"(?:flip|mirror|reflect)(?: {TARGET})? {_FLIP}", flipped),
        _rule(r"(?P<way>horizontal|vertical) (?:flip|mirror)", flipped),
        _rule(rf"mirror {TARGET}", flipped),
    ]
