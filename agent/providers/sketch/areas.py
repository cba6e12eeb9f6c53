"""Read by rules what the user wants inside a mask: light and colour as anywhere, and operations only for areas.

A clause counts as read when all of its words are understood. One that wants a thing painted is left out and reported.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from agent import wording
from agent.adjusting import Adjustment, read_adjustment
from agent.pictures import without_handles
from agent.providers.sketch.instructions import MISSING, clauses, read_clause, read_inscription
from agent.providers.sketch.intent import MAX_CHARACTERS, AskBack, Edit, Reason, Talk, Topic, understand
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
from agent.providers.sketch.phrases import blank_quoted, find_quoted, fold, has_words

_MAX_WORDS = 120
_POLITE = r"^(?:\s*(?:{})[\s,，]*)+"
_POLITE_END = "(?:{})+$"
_CONTENT = re.compile(r"[a-z]+|[\u3400-\u9fff]|\d")
_BLUE = (36, 92, 204)
_WHITE = (248, 248, 246)
_DARK = (44, 48, 64)
_LIGHT_SUM = 560
_PATTERNS = (PatternKind.DOTS, PatternKind.CHECKS, PatternKind.STRIPES)


@functools.cache
def _words(name: str, form: str = "{}", flags: int = 0) -> re.Pattern[str]:
    """Return the wording entry's pattern; each `¤` in it is replaced by the colour names."""
    written = wording.pattern(f"areas.{name}", form=form).pattern
    return re.compile(written.replace("¤", colour_words()), flags)


def _read_lettering(text: str) -> tuple[AddText | str, str]:
    """Return the words to write (or MISSING, or an empty string) and the rest of the text.

    A position in the text is ignored: the mask gives it.
    """
    match = None if find_quoted(text) else _words("written", flags=re.IGNORECASE).match(text)
    if match is None:
        lettering, rest = read_inscription(text)
        if isinstance(lettering, AddText):
            ink = _ink(fold(blank_quoted(text)))
            return replace(lettering, position=Position.CENTER, ink=ink), rest.replace("§", " ")
        return lettering, rest
    words = next(filter(None, match.groups()))
    while (shorter := _words("written_tail", flags=re.IGNORECASE).sub("", words)) != words:
        words = shorter
    if not words.strip() or _words("no_words").match(words):
        return MISSING, ""
    return AddText(words.strip()[:_MAX_WORDS], Position.CENTER, _ink(fold(text))), ""


def _ink(folded: str) -> Colour | None:
    match = _words("ink").search(folded)
    colours = find_colours(next(group for group in match.groups() if group)) if match else ()
    return colours[0] if colours else None


def read_area_intent(text: str) -> Edit | AskBack | Talk:
    """Return what the user wants inside the mask; Talk(MASK) when none of it is possible there."""
    text = text[:MAX_CHARACTERS]
    if not has_words(text):
        return AskBack(Reason.PICTURE_ONLY)
    plain = _plainly(text)
    # Without its polite words, it may be a question, a greeting or the like.
    topics = {Topic.GREETING, Topic.THANKS, Topic.ABILITIES, Topic.QUESTION, Topic.SEARCH}
    said = understand(plain, has_pictures=True)
    if isinstance(said, Talk) and said.topic in topics:
        intent = understand(text, has_pictures=True)
        return intent if isinstance(intent, Talk) else Talk(Topic.MASK)
    lettering, rest = _read_lettering(plain)
    operations: list[Operation] = [lettering] if isinstance(lettering, AddText) else []
    left_out: list[str] = []
    if lettering == MISSING:
        return AskBack(Reason.TEXT)
    for words in () if _words("inverse").search(fold(plain)) else _clauses(rest):
        clause = words.strip()
        operation = _area_operation(clause)
        found = [operation] if operation is not None else _whole_operations(clause)
        operations += found
        left_out += [] if found else [clause]
    if not operations:
        return Talk(Topic.MASK)
    return Edit(tuple(dict.fromkeys(operations)), tuple(left_out))


def _plainly(text: str) -> str:
    """Return the text, its case kept, without polite words."""
    stripped = text.strip()
    opening = _words("polite", _POLITE).match(stripped.lower().replace("’", "'"))
    return _words("polite_end", _POLITE_END).sub("", stripped[opening.end() if opening else 0 :]) or stripped


def _clauses(text: str) -> list[str]:
    folded = without_handles(fold(text))
    if _patterned(folded):
        folded = _words("two_colours").sub(lambda match: f"{match[match.lastindex or 0]} ", folded)
    return [clause for clause in clauses(folded) if has_words(clause)]


def _says(name: str, clause: str) -> bool:
    return _words(name).search(clause) is not None


def _area_operation(clause: str) -> Operation | None:
    """Return the operation that only an area can have, if the clause asks for that and nothing more."""
    if _says("erase", clause):
        if _says("colour_alone", clause):
            return Adjustment(saturation=-100)
        return Erase() if _says("plain", clause) or not _says("no_erasing", clause) else None
    rest = _words("of_it").sub(" ", clause)
    if _says("continue", clause) and _is_understood(_words("continue").sub(" ", rest)):
        return Erase()
    pattern = _patterned(clause)
    colours = find_colours(clause)
    for kind in _PATTERNS:
        rest = _words(kind).sub(" ", rest)
    rest = re.sub(colour_words(), " ", rest)
    if pattern:
        first = colours[0] if colours else _BLUE
        second = colours[1] if len(colours) > 1 else _DARK if sum(first) > _LIGHT_SUM else _WHITE
        return Fill(pattern, first, second) if _is_understood(rest) else None
    if len(colours) != 1 or read_adjustment(clause) or _says("thing", clause) or not _is_understood(rest):
        return None
    if _says("plain", clause):
        return Fill(PatternKind.PLAIN, colours[0], colours[0])
    return Recolour(colours[0]) if _words("bare").fullmatch(clause) or _says("changes", clause) else None


def _is_understood(rest: str) -> bool:
    return _CONTENT.search(_words("filler").sub(" ", rest)) is None


def _patterned(clause: str) -> PatternKind | None:
    """Return the pattern that the words name; the direction of stripes is a word of its own."""
    kind = next((one for one in _PATTERNS if _says(one, clause)), None)
    if kind is PatternKind.STRIPES:
        return next((one for one in (PatternKind.ACROSS, PatternKind.UPRIGHT) if _says(one, clause)), kind)
    return kind


def _whole_operations(clause: str) -> list[Operation]:
    """Return operations that are also possible on a whole picture; none that paints a thing or moves pixels."""
    read = read_clause(clause)
    if any(moves_pixels(operation) for operation in read.operations):
        return []
    return read.operations if not _says("adds", clause) or _is_understood(read.rest) else []
