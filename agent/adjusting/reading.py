"""Whether a sentence asks for an adjustment of the whole picture and for nothing else, and for which one.

The whole sentence has to be made of known phrases and of the words that may stand around them. One word that is
neither (a part of the picture, a thing, a comparison, a negation) and nothing is read at all: a wish that is taken
for less than it is costs more than one that is left to a model.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from agent.adjusting import chinese, english
from agent.adjusting.adjustment import Adjustment
from agent.adjusting.phrases import HANDLE, Read, Rule

MAX_CHARACTERS = 200

_HANDLE = re.compile(r"#\d{1,6}[a-z]{0,2}(?![0-9a-z_])")
_PUNCTUATION = re.compile(r"[\s,.;:!?。、…~]+")
_LINK = re.compile(r"(?:[\s,]|and\b)*")
_SIGNS = str.maketrans(
    {"−": "-", "–": "-", "’": "'", "‘": "'", "，": ",", "。": ".", "；": ";", "：": ":", "∶": ":", "×": "x"}
)
_REQUESTS = re.compile(r"(?:can|could|would|will)\b|[你您]?(?:能|可)")
_TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness")


def read_adjustment(words: str) -> Adjustment | None:
    """Return what the words ask for, in English or Chinese, when that is an adjustment of the whole picture alone.

    "A bit" and 一点 are 15, a plain "brighter" or 亮一些 is 30, "much" and 很多 are 60; a number or percentage wins. A
    handle and words of politeness may stand around it. Several wishes are read together, in their order. None for
    anything beyond, for two pictures, for the same quality twice, for a number out of range, and where a word has a
    second meaning ("cooler", "make it square", 清晰一点).
    """
    text = _folded(words)
    if len(text) > MAX_CHARACTERS or len(set(_HANDLE.findall(text))) > 1:
        return None
    text = _HANDLE.sub(HANDLE, text)
    found = _phrases(text)
    # "Reduce contrast and saturation 20": nobody can tell which way the second is meant.
    is_unclear = any(read.is_moved for read in found or ()) and any(read.is_unsigned for read in found or ())
    if not found or is_unclear or _names_two(text) or _only_asks(text, found):
        return None
    return _together(_without_answered(found))


def _folded(words: str) -> str:
    """Return the words in one width, case, script and kind of space."""
    folded = unicodedata.normalize("NFKC", words[: MAX_CHARACTERS * 2]).lower().translate(_SIGNS)
    return " ".join(folded.translate(chinese.SIMPLIFIED).split())


def _only_asks(text: str, found: list[Read]) -> bool:
    """Return whether it is a question about the picture: "too dark?"."""
    is_question = re.search(r"(?:\?|吗)[ ?!.]*$", text) is not None
    return is_question and all(read.is_complaint for read in found) and not _REQUESTS.match(text)


def _without_answered(found: list[Read]) -> list[Read]:
    """Return what is asked for: a complaint counts only where no amount is said for the same quality."""
    wished = [_signs(read) for read in found if not read.is_complaint]
    taken: list[dict[str, bool]] = []
    kept = []
    for read in found:
        if read.is_complaint:
            if _signs(read) in wished or _signs(read) in taken:
                continue
            taken.append(_signs(read))
        elif read in kept and read.adjustment.saturation == -100:
            continue
        kept.append(read)
    return kept


def _signs(read: Read) -> dict[str, bool]:
    return {tone: value > 0 for tone in _TONES if (value := getattr(read.adjustment, tone))}


def _names_two(text: str) -> bool:
    """Return whether two pictures may be meant: "this one darker and that one warmer"."""
    return re.search(r"\bthis\b", text) is not None and re.search(r"\bthat\b", text) is not None


@functools.cache
def _rules() -> tuple[Rule, ...]:
    return (*english.rules(), *chinese.rules())


@functools.cache
def _fillers() -> tuple[re.Pattern[str], ...]:
    return (
        _PUNCTUATION,
        *(re.compile(rf"(?:{words})(?![\w'-])") for words in english.FILLERS),
        *(re.compile(words) for words in chinese.FILLERS),
    )


def _phrases(text: str) -> list[Read] | None:
    """Return the phrases in order; None when anything else is said."""
    found: list[Read] = []
    place, end_of_last, degree = 0, 0, None
    while place < len(text):
        best = _longest_phrase(text, place)
        if best is None:
            end = max((match.end() for one in _fillers() if (match := one.match(text, place))), default=place)
            if end == place:
                return None
            place = end
            continue
        read, end = best
        link = text[end_of_last:place]
        # "Make it brighter and #3 warmer" speaks of two pictures.
        if found and HANDLE in text[end_of_last:end]:
            return None
        if read.borrows and degree is not None and _LINK.fullmatch(link):
            read = _scaled(read, degree)
        else:
            degree = read.degree
        found.append(read)
        place = end_of_last = end
    return found


def _longest_phrase(text: str, place: int) -> tuple[Read, int] | None:
    """Return the phrase that reaches furthest, and where it ends; None when that one asks for what cannot be."""
    matches = [(match, read) for pattern, read in _rules() if (match := pattern.match(text, place))]
    if not matches:
        return None
    furthest = max(match.end() for match, _ in matches)
    reads = [read(match) for match, read in matches if match.end() == furthest]
    understood = next((one for one in reads if one is not None), None)
    return None if understood is None else (understood, furthest)


def _scaled(read: Read, amount: int) -> Read:
    """Return the same change by another amount."""
    tones = {tone: value for tone in _TONES if (value := getattr(read.adjustment, tone))}
    changed = {tone: amount if value > 0 else -amount for tone, value in tones.items()}
    return Read(read.adjustment.model_copy(update=changed), amount)


def _together(found: list[Read]) -> Adjustment | None:
    """Return all of it as one adjustment; None when one thing is asked for twice, or nothing is left to do."""
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
