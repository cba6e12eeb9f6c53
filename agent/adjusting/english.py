"""The phrases of English that ask for an adjustment of the whole picture, and the words that may stand around them."""

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

_PICTURE = r"(?:image|picture|photo|pic|photograph|shot)"
TARGET = (
    rf"(?:(?:the |this |that |my )?(?:whole |entire |full )?{_PICTURE}(?: ?{HANDLE})?|{HANDLE}|this one|that one"
    r"|the (?:whole|entire) thing|everything|it|this|that)"
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
_WORDS_AFTER = rf"(?: by)? (?P<after>{_LITTLE}|{_LOT})"
# How much, said after the change: "by 20", "20%", "a bit", "by a lot". A bare number may be another thing's.
_AFTER = rf"(?:(?: by (?=\d)| (?={_COUNTED}))(?P<after_number>{_NUMBER})|{_WORDS_AFTER})?"
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
    ("saturation", 1): r"(?:more (?:colou?r )?saturat(?:ed|ion)|more vivid|more vibrant|higher saturation)",
    ("saturation", -1): r"(?:less (?:colou?r )?saturat(?:ed|ion)|less vivid|less vibrant|lower saturation)",
    ("contrast", 1): r"(?:(?:more|higher|stronger) contrast|more contrasty)",
    ("contrast", -1): r"(?:(?:less|lower|weaker) contrast|less contrasty)",
    ("warmth", 1): r"(?:warmer|more warm|more warmth|less cold|less cool)",
    ("warmth", -1): r"(?:colder|less warm|less warmth)",
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
_RATIO = r"(?P<width>\d{1,2}) ?(?::|x|by|/) ?(?P<height>\d{1,2})|(?P<square>square)"
_SHAPE = rf"(?:an? )?(?:cent(?:ered|red|er|re) )?(?:{_RATIO})(?: (?:aspect ratio|ratio|format|shape|aspect|crop))?"
_SIDE = (
    r"(?P<side>(?:to(?: the| your)? )?(?:left|right)|(?:counter|anti)[ -]?clockwise|clockwise|ccw|cw)"
    r"(?: direction)?"
)
_ANGLE = r"(?P<angle>[+-]?\d{1,3}(?:\.\d+)?|ninety) ?(?:°|degrees?|deg)?"
_FLIP = r"(?P<way>horizontal(?:ly)?|vertical(?:ly)?|left[ -]to[ -]right|left[ -]right)"

FILLERS = (
    r"please|pls|plz|kindly|now|ok|okay|and|then|also|just|hey|hi|hello|maybe|perhaps|yes|yeah",
    r"(?:thanks|thank you|thx)(?=[ .!]*$)",
    # Only before a wish: "great, much brighter!" is praise, and the picture is done.
    r"(?:nice|great|good|perfect|lovely)(?=[ ,.!]+(?:but|now|please|can|could|make)\b)",
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
    words = group(match, "before", "after", "part")
    if re.fullmatch(_LITTLE, words):
        return A_BIT
    if re.fullmatch(_LOT, words):
        return MUCH
    return PLAIN if words else lacking


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
        body = rf"{verb}(?: {TARGET} {particle}| {particle} {TARGET}| {particle})"
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
        _rule(rf"(?:{_MOVE} )?{the_noun} (?P<direction>up|down){_AFTER_NOUN}", moved),
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
    cooler = rf"(?P<before>{_LITTLE}) cooler(?: {_COLOURS})?|cooler {_COLOURS}|(?:the |its )?{_COLOURS} cooler"
    return [
        _rule(
            rf"(?:(?:convert|turn|change|switch|render)(?: {TARGET})? )?(?:(?:in|to|into|as) )?{_BLACK_AND_WHITE}",
            lambda match: grey,
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
        is_vertical = group(match, "way").startswith("vertical")
        return Read(Adjustment(flip=Flip.VERTICAL if is_vertical else Flip.HORIZONTAL))

    middle = r"(?: (?:in|from|at|around) the (?:cent(?:er|re)|middle))?"
    return [
        _rule(rf"(?:crop|trim|cut)(?: {TARGET})?(?: down)?(?: (?:to|into|as|in))? {_SHAPE}{middle}", cropped),
        _rule(rf"(?:an? )?(?:{_RATIO}) crop{middle}", cropped),
        _rule(rf"(?:rotate|turn)(?: {TARGET})?(?: by)? {_ANGLE}(?: {_SIDE})?", turned),
        _rule(rf"(?:rotate|turn)(?: {TARGET})? {_SIDE}(?: by)? {_ANGLE}", turned),
        _rule(rf"rotate(?: {TARGET})? {_SIDE}", turned),
        _rule(rf"(?:rotate(?: {TARGET})? (?:by )?)?a quarter turn {_SIDE}", turned),
        _rule(rf"(?:rotate|turn) (?:{TARGET} )?upside[ -]down", lambda match: turn_read(180, is_left=False)),
        _rule(rf"(?:flip|mirror|reflect)(?: {TARGET})? {_FLIP}", flipped),
        _rule(r"(?P<way>horizontal|vertical) (?:flip|mirror)", flipped),
        _rule(rf"mirror {TARGET}", flipped),
    ]
