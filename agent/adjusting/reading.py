"""Parses a sentence that asks for an adjustment of a picture, and for nothing else.

The whole sentence must consist of known phrases and filler words. If any other word is present (a part of the picture,
an object, a comparison, a negation), nothing is parsed: a half-understood wish is worse than one left to a model.

The phrases of both languages are rows in `agent/wording`: the kind, the quality, and the words. The kinds: a quality is
`changed`; `compared` with the present state; `said` to be so (counts only with a measure); `moved` by a verb; `stated`
as a number, or in `stops`; the `same` as the previous one; or a `complaint`. A number as the kind is a fixed amount,
and an `effect` is switched on. `cropped`, `resized`, `turned` and `flipped` change the frame.
The named groups of a pattern: `number…` and `much…` give the amount, `up` the direction, `lacking` says that there is
too little of the quality, `said…` that a quality is compared and not only named.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from agent import wording
from agent.adjusting.adjustment import LIMIT, MAX_PIXELS, MAX_SIDE_PIXELS, Adjustment, Flip, Resize

MAX_CHARACTERS = 200
A_BIT = 15
PLAIN = 30
MUCH = 60
_STOP = 50

# Replaces a handle in a sentence: it only says which picture is meant.
_HANDLE_SIGN = "⌗"
_HANDLE = re.compile(r"#\d{1,6}[a-z]{0,3}(?![0-9a-z_])")
_PUNCTUATION = re.compile(r"[\s,.;:!?。、…~]+")
_LINK = re.compile(r"(?:[\s,、]|and\b|[和与及])*")
_WORD = re.compile(r"[a-z0-9'#+%-]+")
_SIGNS = str.maketrans(
    {"−": "-", "–": "-", "’": "'", "‘": "'", "，": ",", "。": ".", "；": ";", "：": ":", "∶": ":", "×": "x"}
)
_REQUESTS = re.compile(r"(?:can|could|would|will)\b|[你您]?(?:能|可)")
# The amounts of these cannot be negative.
_STRENGTHS = ("blur", "pixelate")
_TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness", *_STRENGTHS)
_COUNTS = {"half": 0.5, "半": 0.5, "a": 1, "an": 1, "one": 1, "一": 1, "two": 2, "两": 2, "ninety": 90, "一百八十": 180}
_NUMERALS = "〇一二三四五六七八九"


@dataclass(frozen=True)
class _Read:
    """The meaning of a phrase.

    `degree` is the amount given in words before a comparative ("a bit brighter"); `borrows` says that a comparative has
    no amount of its own and may share such an amount ("… and warmer"). `is_moved` marks a quality raised or lowered by
    a verb, `is_unsigned` one followed by a bare number. `is_complaint` marks a fault of the picture ("too dark"), after
    which the amount of the correction may follow. `is_same` marks a quality that changes like the previous one, which
    must have `is_named` ("less contrast and saturation").
    """

    adjustment: Adjustment
    degree: int | None = None
    borrows: bool = False
    is_moved: bool = False
    is_unsigned: bool = False
    is_complaint: bool = False
    is_named: bool = False
    is_same: bool = False


@dataclass(frozen=True)
class _Rule:
    """A row of the phrases: the kind, the quality with its sign (empty for the frame), and the pattern of the words."""

    kind: str
    tone: str
    sign: int
    words: re.Pattern[str]
    language: str


def read_adjustment(words: str, *, of_part: bool = False) -> Adjustment | None:
    """Return the adjustment that the words request, in English or Chinese, or None when they say anything else.

    With `of_part`, the user marked a part of the picture, and "this area" and similar words mean that part.

    "A bit" and 一点 are 15, a plain "brighter" or 亮一些 is 30, "much" and 很多 are 60; a number or percentage has
    priority. A handle and polite words are allowed. Several wishes are combined, in their order. The result is None
    for two pictures, the same quality twice, a number out of range, and a word with a second meaning ("cooler",
    "make it square", 清晰一点).
    """
    # Width, case, script (simplified Chinese) and spaces are normalised.
    folded = unicodedata.normalize("NFKC", words[: MAX_CHARACTERS * 2]).lower().translate(_SIGNS)
    text = " ".join(folded.translate(_simplified()).split())
    if len(text) > MAX_CHARACTERS or len(set(_HANDLE.findall(text))) > 1:
        return None
    text = _HANDLE.sub(_HANDLE_SIGN, text)
    rules = _rules("rules")
    if of_part:
        text, rules = wording.pattern("adjust.marked_part").sub(_HANDLE_SIGN, text), rules + _rules("part_rules")
    scan = _scanned(text, rules, is_whole=True)
    reads = [phrase.read for phrase in scan.phrases]
    # "Reduce contrast and saturation 20": the direction of the second is ambiguous.
    is_unclear = any(read.is_moved for read in reads) and any(read.is_unsigned for read in reads)
    # "This one darker and that one warmer" and "make it brighter and #3 warmer" may be about two pictures.
    names_two = all(re.search(rf"\b{word}\b", text) for word in ("this", "that"))
    is_of_two = names_two or (bool(reads) and _HANDLE_SIGN in text[scan.phrases[0].end : scan.phrases[-1].end])
    # "Too dark?" only asks a question about the picture.
    is_question = re.search(r"(?:\?|吗)[ ?!.]*$", text) is not None and not _REQUESTS.match(text)
    only_asks = is_question and all(read.is_complaint for read in reads)
    if not reads or scan.rest.strip() or is_unclear or is_of_two or only_asks:
        return None
    return _together(_without_answered(reads))


@dataclass(frozen=True)
class FoundAdjustments:
    """The adjustments in a text: start, end and adjustment of each phrase, and the text with the phrases blanked out.

    `is_unclear` is set when a phrase asks for something impossible: a number out of range, a rotation by 0 degrees.
    """

    phrases: tuple[tuple[int, int, Adjustment], ...]
    rest: str
    is_unclear: bool


def find_adjustments(words: str) -> FoundAdjustments:
    """Return every adjustment in an already folded text, which may say other things too; looser phrases also count."""
    scan = _scanned(words[:MAX_CHARACTERS], _rules("rules") + _rules("loose_rules"))
    kept = _without_answered([phrase.read for phrase in scan.phrases])
    phrases = tuple((one.start, one.end, one.read.adjustment) for one in scan.phrases if one.read in kept)
    return FoundAdjustments(phrases, scan.rest + words[MAX_CHARACTERS:], scan.is_unclear)


@functools.cache
def _simplified() -> dict[int, int]:
    chinese = wording.section("zh", "adjust")
    return str.maketrans(chinese["traditional"], chinese["simplified"])


def _without_answered(found: list[_Read]) -> list[_Read]:
    """Return the readings that count: a complaint counts only if no other phrase changes the same quality that way."""
    taken = [_signs(read) for read in found if not read.is_complaint]
    kept = []
    for read in found:
        if read.is_complaint:
            signs = _signs(read)
            if signs in taken:
                continue
            taken.append(signs)
        elif read in kept and read.adjustment.saturation == -LIMIT:
            continue
        kept.append(read)
    return kept


def _signs(read: _Read) -> dict[str, bool]:
    return {tone: amount > 0 for tone, amount in _amounts(read).items()}


def _amounts(read: _Read) -> dict[str, int]:
    return {tone: amount for tone in _TONES if (amount := getattr(read.adjustment, tone))}


@dataclass(frozen=True)
class _Phrase:
    start: int
    end: int
    read: _Read


@dataclass(frozen=True)
class _Scan:
    """The phrases of a text in order, and the rest: the text with phrases and filler words blanked out."""

    phrases: tuple[_Phrase, ...]
    rest: str
    is_unclear: bool


def _scanned(text: str, rules: Sequence[_Rule], *, is_whole: bool = False) -> _Scan:
    """Return the phrases in the text; with `is_whole`, stop at the first word that is neither phrase nor filler."""
    found: list[_Phrase] = []
    rest, place, degree, is_unclear = "", 0, None, False
    while place < len(text):
        read, end, is_impossible = _longest_phrase(text, place, rules)
        is_unclear |= is_impossible
        link = text[found[-1].end : place] if found else ""
        if read is not None and read.is_same:
            read = _same(read, found[-1].read) if found and _LINK.fullmatch(link) else None
        if read is None:
            end = max((match.end() for one in _fillers() if (match := one.match(text, place))), default=place)
            if is_whole and end == place:
                return _Scan(tuple(found), text[place], is_unclear)
            word = _WORD.match(text, place)
            rest += " " * (end - place) if end > place else word[0] if word else text[place]
            place = len(rest)
            continue
        if read.borrows and degree is not None and _LINK.fullmatch(link):
            read = _scaled(read, degree)
        else:
            degree = read.degree
        found.append(_Phrase(place, end, read))
        rest += " " * (end - place)
        place = end
    return _Scan(tuple(found), rest, is_unclear)


def _longest_phrase(text: str, place: int, rules: Sequence[_Rule]) -> tuple[_Read | None, int, bool]:
    """Return the meaning of the longest phrase at this place, its end, and whether it asks for something impossible."""
    matches = [(match, rule) for rule in rules if (match := rule.words.match(text, place))]
    furthest = max((match.end() for match, _ in matches), default=place)
    longest = [(match, rule) for match, rule in matches if match.end() == furthest]
    read = next((one for match, rule in longest if (one := _read(rule, match)) is not None), None)
    names = [name for match, _ in longest for name, caught in match.groupdict().items() if caught]
    has_number = any(name.startswith(("number", "stated", "angle")) for name in names)
    return read, furthest, read is None and has_number


def _scaled(read: _Read, amount: int) -> _Read:
    """Return the same change with another amount."""
    changed = {tone: amount if is_more else -amount for tone, is_more in _signs(read).items()}
    return replace(read, adjustment=read.adjustment.model_copy(update=changed), degree=amount)


def _same(read: _Read, before: _Read) -> _Read | None:
    """Return the previous change applied to this quality: "less contrast and saturation"; None if it is not named."""
    if not before.is_named:
        return None
    amount = next(iter(_amounts(before).values()))
    return replace(before, adjustment=_scaled(read, amount).adjustment)


def _together(found: list[_Read]) -> Adjustment | None:
    """Return all readings as one adjustment; None when a field is changed twice, or nothing would change."""
    result = Adjustment()
    taken: set[str] = set()
    for read in found:
        names = {
            name for name, field in Adjustment.model_fields.items() if getattr(read.adjustment, name) != field.default
        }
        if names & taken:
            return None
        taken |= names
        result = result.combine(read.adjustment)
    return None if result.is_identity else result


# ---- the rows of phrases


@functools.cache
def _fillers() -> tuple[re.Pattern[str], ...]:
    written = [
        re.compile(f"(?:{wording.expand(language, 'adjust', one)}){words['filler_end']}")
        for language in wording.LANGUAGES
        for words in (wording.section(language, "adjust"),)
        for one in words["fillers"]
    ]
    return (_PUNCTUATION, *written)


@functools.cache
def _rules(name: str) -> tuple[_Rule, ...]:
    return tuple(rule for language in wording.LANGUAGES for rule in _rules_of(language, name))


def _rules_of(language: str, name: str) -> Iterator[_Rule]:
    known = wording.section(language, "adjust")
    for kind, quality, text, *ending in known[name]:
        table = known.get(quality, {quality: ""})
        for tone, words in table.items():
            more = {"words": wording.expand(language, "adjust", words)}
            pattern = wording.expand(language, "adjust", text, more)
            end = ending[0] if ending else known["end"]
            sign = -1 if tone.startswith("-") else 1
            yield _Rule(kind, tone.lstrip("-"), sign, re.compile(f"(?:{pattern}){end}"), language)


def _read(rule: _Rule, match: re.Match[str]) -> _Read | None:
    groups = {name: caught for name, caught in match.groupdict().items() if caught}
    amount = _amount(rule.language, groups)
    match rule.kind:
        case "changed":
            return _toned(rule.tone, rule.sign * amount)
        case "said":
            has_measure = any(name.startswith(("number", "much", "stops", "said")) for name in groups)
            return _toned(rule.tone, rule.sign * amount) if has_measure else None
        case "compared":
            has_number = any(name.startswith("number") for name in groups)
            degree = amount if "much_before" in groups and not has_number else None
            borrows = not has_number and not any(name.startswith("much") for name in groups)
            is_named = wording.pattern("adjust.named", rule.language).search(match[0]) is not None
            return _toned(rule.tone, rule.sign * amount, degree=degree, borrows=borrows, is_named=is_named)
        case "moved":
            return _toned(rule.tone, amount if "up" in groups else -amount, is_moved=True, is_named=True)
        case "same":
            return _Read(Adjustment.model_validate({rule.tone: PLAIN}), is_same=True)
        case "stated" | "stops":
            return _stated(rule, groups)
        case "complaint":
            way = rule.sign if "lacking" in groups else -rule.sign
            return _toned(rule.tone, way * amount, is_complaint=True)
        case "cropped":
            return _cropped(groups)
        case "resized":
            return _resized(groups)
        case "turned":
            return _turned(groups)
        case "turned 180":
            return _Read(Adjustment(rotate=180))
        case "effect":
            return _Read(Adjustment.model_validate({rule.tone: True}))
        case "flipped":
            return _Read(Adjustment(flip=Flip.VERTICAL if "vertical" in groups else Flip.HORIZONTAL))
        case fixed:
            return _toned(rule.tone, rule.sign * int(fixed))


def _toned(
    tone: str,
    amount: int,
    *,
    degree: int | None = None,
    borrows: bool = False,
    is_moved: bool = False,
    is_unsigned: bool = False,
    is_complaint: bool = False,
    is_named: bool = False,
) -> _Read | None:
    """Return a change of a quality by an amount; None when the amount is 0 or out of range."""
    if not 1 <= abs(amount) <= LIMIT or (amount < 0 and tone in _STRENGTHS):
        return None
    adjustment = Adjustment.model_validate({tone: amount})
    return _Read(adjustment, degree, borrows, is_moved, is_unsigned, is_complaint, is_named)


def _amount(language: str, groups: dict[str, str]) -> int:
    """Return the amount, without a sign: a number has priority over words; without either it is PLAIN."""
    if number := next((caught for name, caught in groups.items() if name.startswith("number")), ""):
        return round(_counted(number))
    if "stops" in groups:
        return round(_STOP * _counted(groups["stops"].split(maxsplit=1)[0]))
    words = [caught for name, caught in groups.items() if name.startswith("much")]
    for amount, name in ((A_BIT, "adjust.little"), (MUCH, "adjust.lot")):
        if any(map(wording.pattern(name, language).fullmatch, words)):
            return amount
    return PLAIN


def _counted(written: str) -> float:
    """Return the value of a number in digits, in words, or in Chinese numerals up to ninety-nine."""
    if written in _COUNTS:
        return _COUNTS[written]
    if digits := re.sub(r"[^\d.]", "", written):
        return float(digits)
    tens, has_tens, ones = written.rpartition("十")
    return (_NUMERALS.index(tens) if tens else 1) * 10 * bool(has_tens) + (_NUMERALS.index(ones) if ones else 0)


def _stated(rule: _Rule, groups: dict[str, str]) -> _Read | None:
    """Return a change given as a number, on the scale of 100 or in stops."""
    number = groups["stated"].replace(" ", "")
    is_unsigned = number[0].isdigit()
    # "50 %" without a sign may mean half of the present value, so the user must be asked.
    if "percent" in groups and is_unsigned:
        return None
    amount = float(number) * (_STOP if rule.kind == "stops" else 1)
    return _toned(rule.tone, round(amount), is_unsigned=is_unsigned)


def _cropped(groups: dict[str, str]) -> _Read | None:
    """Return a centred crop to a ratio; None when a side of the ratio is 0."""
    sides = (1, 1) if "square" in groups else (round(_counted(groups["width"])), round(_counted(groups["height"])))
    return _Read(Adjustment.model_validate({"crop": f"{sides[0]}:{sides[1]}"})) if all(sides) else None


def _resized(groups: dict[str, str]) -> _Read | None:
    """Return a resize; None when the size is 0 or exceeds the limits."""
    sides = {name: int(groups[name]) for name in ("width", "height") if name in groups}
    if sides:
        can_be = (
            0 < min(sides.values()) <= max(sides.values()) <= MAX_SIDE_PIXELS and prod(sides.values()) <= MAX_PIXELS
        )
        return _Read(Adjustment(resize=Resize(**sides))) if can_be else None
    factor = 0.5 if "half" in groups else int(groups["share"]) / 100
    return _Read(Adjustment(resize=Resize(factor=factor))) if factor else None


def _turned(groups: dict[str, str]) -> _Read | None:
    """Return a rotation; None for 0 or at least 360 degrees, and for a negative angle with "left" or "right"."""
    angle = groups.get("angle", "")
    degrees = _counted(angle) if angle else 90.0
    is_back = angle.startswith("-")
    if not 0 < degrees < 360 or (is_back and ("left" in groups or "right" in groups)):
        return None
    return _Read(Adjustment(rotate=-degrees if is_back or "left" in groups else degrees))
