"""Read the pixel operations from a sentence, clause by clause, in the order in which they are requested.

Light, colour and turns are read as everywhere in the studio, at any place in a clause; the sketch model's own
operations are in a table here. Text to write into the picture, and its position, is read first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent import wording
from agent.adjusting import Adjustment, CropRatio, Resize, find_adjustments, read_adjustment
from agent.pictures import without_handles
from agent.providers.sketch.operations import AddText, Operation, Position
from agent.providers.sketch.phrases import blank_quoted, find_amount, find_percent, find_quoted, find_ratio, fold

# Marks a request for lettering without its text.
MISSING = "missing"

_Maker: TypeAlias = Callable[[str], Operation | None]


def _effect(name: str) -> _Maker:
    is_graded = name in ("blur", "pixelate")
    return lambda words: Adjustment.model_validate({name: find_amount(words) if is_graded else True})


def _crop(words: str) -> Operation | None:
    ratio = find_ratio(words)
    if ratio is None and wording.pattern("edits.upright").search(words):
        ratio = (3, 4)
    return cropped_to(*ratio) if ratio else None


def cropped_to(width: int, height: int) -> Adjustment:
    """Return the crop to the largest middle part of the ratio; each side is 1 to 100."""
    return Adjustment(crop=CropRatio(width=width, height=height))


def _resize(words: str) -> Operation | None:
    sides = _numbers("sides", words)
    if sides:
        return Adjustment(resize=Resize(width=int(sides[0]), height=int(sides[1])))
    wide, high = (next(map(int, _numbers(name, words)), None) for name in ("wide", "high"))
    if wide or high:
        return Adjustment(resize=Resize(width=wide, height=high))
    factor = _factor(words)
    return Adjustment(resize=Resize(factor=factor)) if factor else None


def _is_vague_size(one: Adjustment) -> bool:
    return one.resize is not None and one.resize.factor in (_FACTORS["smaller"], _FACTORS["bigger"])


def _numbers(name: str, words: str) -> list[str]:
    match = _search(name, words)
    return [group for group in match.groups() if group] if match else []


def _factor(words: str) -> float | None:
    percent = find_percent(words)
    if percent:
        if not _search("by_percent", words):
            return percent / 100
        return max(0.01, 1 - percent / 100) if _search("less", words) else 1 + percent / 100
    if times := _numbers("times", words):
        return float(times[0])
    factors = (factor for name, factor in _FACTORS.items() if _search(name, words))
    return next(factors, None)


def _search(name: str, words: str) -> re.Match[str] | None:
    return wording.pattern(f"edits.{name}").search(words)


_FACTORS = {"half": 0.5, "double": 2.0, "smaller": 0.75, "bigger": 1.5}
# How each operation is made from its clause, and what to ask for when the clause lacks it.
_MAKERS: dict[str, tuple[_Maker, str]] = {
    "resize": (_resize, "size"),
    "crop": (_crop, "shape"),
    **{name: (_effect(name), "") for name in ("sepia", "invert", "blur", "pixelate")},
}


# ---- text to write


def read_inscription(text: str) -> tuple[AddText | str, str]:
    """Return the text to add (or MISSING, or an empty string) and the folded rest, where a lone `§` marks its place."""
    quoted = find_quoted(text)
    marked = fold(blank_quoted(text))
    match = _search("lettering", marked)
    if not match:
        return "", marked.replace("§", " ")
    if quoted:
        clause = _clause_around(marked, match)
        rest = marked.replace(clause, ",§,", 1)
        # The place may be named before the verb too: "在顶部" of "在顶部加上…".
        opening = wording.pattern("edits.lettering_end").split(marked[: match.start()])[-1]
        return AddText(quoted[0], _position(opening + clause)), rest
    return _bare_lettering(text, marked, match)


def _bare_lettering(text: str, marked: str, match: re.Match[str]) -> tuple[AddText | str, str]:
    """Return lettering without quotation marks: everything after the word for it."""
    bare = wording.pattern("edits.bare", flags=re.IGNORECASE).search(text)
    before = marked[: match.start()]
    if not bare:
        return MISSING, before
    caught = "".join(group or "" for group in bare.groups())
    words = wording.pattern("edits.place_tail", flags=re.IGNORECASE).sub("", caught).strip(" :：,，。.")
    if not words or wording.pattern("edits.no_words").fullmatch(words):
        return MISSING, before
    return AddText(words, _position(fold(text[bare.start() :]))), before + ",§,"


def _clause_around(marked: str, match: re.Match[str]) -> str:
    """Return the clause of the lettering, from its verb to the next break after the quoted words."""
    start = match.start()
    quote = marked.find("§", start)
    quote = match.end() if quote < 0 else quote
    stop = _search("lettering_end", marked[quote:])
    after = marked[quote + stop.end() :] if stop else ""
    end = quote + stop.start() if stop else len(marked)
    tail = wording.pattern("edits.place_begins").match(after) if stop and stop.group(0) in ",;" else None
    return marked[start : end + 1 + tail.end()] if tail and _named_position(tail.group(0)) else marked[start:end]


def _named_position(words: str) -> Position | None:
    return next((position for position in Position if _search(position, words)), None)


def _position(words: str) -> Position:
    return _named_position(words) or Position.BOTTOM


# ---- clauses

_CONTENT = re.compile(r"[a-z]{2,}|[一-龥]")


@dataclass(frozen=True)
class Instructions:
    """The result: the operations in order, the clauses left out, and what is missing.

    `missing` is `shape`, `size` or `text` when an operation lacks what it needs, `unclear` when it cannot be
    understood; `unread` counts the clauses that name something but ask for no operation.
    """

    operations: tuple[Operation, ...]
    left_out: tuple[str, ...] = ()
    missing: str = ""
    unread: int = 0


def read_instructions(text: str) -> Instructions:
    """Return the operations that a sentence asks for, in its order; none when it asks for none.

    A sentence or clause that is nothing but an adjustment is read as everywhere in the studio.
    """
    whole = read_adjustment(text)
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
        found, ratio = clause.operations, find_ratio(words)
        if ratio and not found and not clause.missing:
            # The clause only names a shape: "make it square", "改成 16:9".
            found = [cropped_to(*ratio)]
        names_something = _CONTENT.search(wording.pattern("edits.neutral").sub(" ", clause.rest)) is not None
        is_about_a_thing = names_something and any(
            isinstance(one, Adjustment) and (one.has_tones or one.flip or one.rotate or _is_vague_size(one))
            for one in found
        )
        is_beyond = bool(_search("beyond", words)) and not found and not clause.missing
        if is_about_a_thing or is_beyond or (found and _search("region", words)):
            left_out.append(words.strip())
            continue
        unread += names_something and not found and not clause.missing
        operations += found
        missing = missing or clause.missing
    if lettering == MISSING:
        missing = missing or "text"
    return Instructions(tuple(dict.fromkeys(operations)), tuple(left_out), missing, unread)


def clauses(text: str) -> list[str]:
    """Return the clauses of a folded text, without what the text says not to do."""
    folded = wording.pattern("edits.spared").sub(" ", without_handles(text))
    folded = wording.pattern("edits.black_and_white").sub("grayscale", folded)
    return [part for part in wording.pattern("edits.break").split(folded) if part and part.strip()]


@dataclass(frozen=True)
class Clause:
    """The operations of a clause in order, what is missing for one of them, and the remaining words."""

    operations: list[Operation]
    missing: str
    rest: str


def read_clause(words: str) -> Clause:
    """Return what a folded clause asks for."""
    exact = read_adjustment(words)
    if exact is not None:
        return Clause([exact], "", "")
    adjustments = find_adjustments(words)
    found: list[tuple[int, Operation]] = []
    others, rest, missing = words, adjustments.rest, "unclear" if adjustments.is_unclear else ""
    for start, end, adjustment in adjustments.phrases:
        if adjustment.has_effects:
            # The amount may be anywhere in the clause: "blur the face a lot".
            continue
        found.append((start, adjustment))
        others = _blanked(others, start, end)
    for name, (make, needed) in _MAKERS.items():
        match = _search(name, others)
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
