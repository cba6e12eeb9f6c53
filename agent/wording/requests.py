"""Rules that recognise requests in a message before any model is called, in English and Chinese.

They recognise: going back to an earlier picture, or forward again; expanding a picture; pointing at a part without a
mask, or mentioning a mask; a search with verification; the number of pictures.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from agent import wording
from agent.events import TargetMove
from agent.pictures import handles_in, parse_handle

_MOST_CHARACTERS = 2000
_MOST_POINTING_CHARACTERS = 160
_FLAGS = re.IGNORECASE | re.DOTALL
_SIGNS = str.maketrans({"，": ",", "；": ";", "’": "'", "！": "!", "？": "?"})
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|(?<!\w)'[^']*'(?!\w)")
_SPACES = re.compile(r"\s+")
# How much a side grows by default, as a fraction of the picture's width or height.
_SHARE = 0.25
_SIDES = ("left", "top", "right", "bottom")


# Back to an earlier picture, or forward again: "undo that", "back to #1, but warmer", 撤销. The whole message must be
# such a request, or begin with one; "put it back on the shelf" and "redo the sky" are other requests.


@dataclass(frozen=True)
class UndoRequest:
    """A request to move in the history, and the rest of the message (`rest`).

    For `back_to`, the target is `handle` or `place` (from 1); if neither is set, it is the original. `is_doubtful` is
    set when the words mean a redo only if there is something to redo: otherwise "redo it" means to paint again.
    """

    move: TargetMove
    steps: int = 1
    handle: str = ""
    place: int = 0
    rest: str = ""
    is_doubtful: bool = False


def read_undo(text: str) -> UndoRequest | None:
    """Return the request to go back or forward, with the rest of the message; None for any other message."""
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS).strip()
    if not plain or len(plain) > _MOST_CHARACTERS:
        return None
    for move, pattern in _undo_rules():
        match = pattern.fullmatch(plain)
        if match is not None:
            return _undo_request(move, match)
    return None


@functools.cache
def _undo_rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the move of each rule, and its pattern including the words that may come before and after."""
    return tuple(
        (move, re.compile(wording.expand(language, "undo", "{lead}(?:{rule}){tail}{rest}", {"rule": words}), _FLAGS))
        for language in wording.LANGUAGES
        for move, rule in wording.section(language, "undo")["rules"]
        for words in (wording.expand(language, "undo", rule),)
    )


def _undo_request(move: str, match: re.Match[str]) -> UndoRequest | None:
    groups = {name: value for name, value in match.groupdict().items() if value}
    rest = groups.get("rest", "").strip()
    rest = rest if wording.pattern("undo.polite", flags=re.IGNORECASE).sub("", rest) else ""
    steps = max(1, _number(groups["count"], "counts")) if "count" in groups else 1
    if move == "undo":
        return UndoRequest("undo", steps=steps, rest=rest)
    if move == "redo":
        return UndoRequest("redo", steps=steps, rest=rest, is_doubtful="doubtful" in groups)
    if "handle" in groups or "number" in groups:
        handle = parse_handle(groups.get("handle") or groups["number"])
        return UndoRequest("back_to", handle=str(handle), rest=rest) if handle else None
    if "ordinal" in groups:
        return UndoRequest("back_to", place=_number(groups["ordinal"], "ordinals"), rest=rest)
    return UndoRequest("back_to", rest=rest)


def _number(written: str, name: str) -> int:
    """Return the value of a number in digits, or in words by their position in the list of this name."""
    if digits := re.match(r"\d+", written):
        return int(digits[0])
    return wording.place(f"undo.{name}", written)


# Expanding a picture: "outpaint to 16:9", "show more on the left", 扩展画面到16:9. The whole message must be such a
# request, or begin with one and then say after "with" or a comma what to add; "extend the fence" is another request.


@dataclass(frozen=True)
class ExpansionRequest:
    """A request to expand a picture to a ratio (width to height), or on some sides; by default on all sides.

    `rest` is the rest of the message.
    """

    ratio: float | None = None
    sides: frozenset[str] = frozenset(_SIDES)
    rest: str = ""

    def shares(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Return how far a picture of this size grows (left, top, right, bottom), as fractions of its width and height.

        All are 0 when it already has the ratio.
        """
        if self.ratio is not None:
            wider = max(0.0, self.ratio * height / width - 1) / 2
            higher = max(0.0, width / self.ratio / height - 1) / 2
            # A side that would grow by less than 0.25 % counts as already having the ratio.
            wider, higher = (share if share >= 0.0025 else 0.0 for share in (wider, higher))
            return wider, higher, wider, higher
        left, top, right, bottom = (_SHARE if side in self.sides else 0.0 for side in _SIDES)
        return left, top, right, bottom


def read_expansion(text: str) -> ExpansionRequest | None:
    """Return the request to expand a picture; None when the words ask for anything else."""
    words = unicodedata.normalize("NFKC", text).strip()
    if not words or len(words) > _MOST_CHARACTERS:
        return None
    for language in wording.LANGUAGES:
        found = wording.pattern("expand.request", language, flags=re.IGNORECASE).match(words)
        end = wording.pattern("expand.end", language, flags=re.DOTALL)
        rest = end.match(words, found.end()) if found and found.end() else None
        if found and rest:
            return _expansion_request(found, rest["rest"] or "")
    return None


def _expansion_request(found: re.Match[str], rest: str) -> ExpansionRequest | None:
    groups = {name: caught for name, caught in found.groupdict().items() if caught}
    if "wide" in groups:
        wide, high = float(groups["wide"]), float(groups["high"])
        return ExpansionRequest(ratio=wide / high, rest=rest) if wide and high else None
    if wording.pattern("expand.all_sides", flags=re.IGNORECASE).search(found.group()):
        return ExpansionRequest(rest=rest)
    word = next((groups[name] for name in ("side", "place", "around") if name in groups), "").lower()
    meant = [wording.section(language, "expand")["sides"] for language in wording.LANGUAGES]
    sides = frozenset(side for side in _SIDES if any(word in words[side] for words in meant))
    return ExpansionRequest(sides=sides or frozenset(_SIDES), rest=rest)


# Pointing at a part: "change this part", 把这里改成红色. Words alone cannot point at anything, so this needs a mask or
# a name. An ordinary wish must never be blocked: the message counts only if every clause is recognised as pointing, or
# as adding nothing. A mention of a mask counts anywhere in the message, because nothing else can replace the mask.


def points_at_a_part(text: str, *, picture_count: int) -> bool:
    """Return whether the words ask to change a part that they only point at, in a picture that they do not name.

    `picture_count` is the number of pictures in the conversation: if there is exactly one, "this part of the sky" is
    specific enough. English and Chinese; long messages never count.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").strip()
    if len(folded) > _MOST_POINTING_CHARACTERS or names_a_picture(folded):
        return False
    language = "zh" if wording.is_chinese(folded) else "en"
    # Emoji and punctuation around the words have no meaning here.
    clauses = [re.sub(r"^[^\w]+|[^\w]+$", "", one) for one in wording.pattern("part.clause_end").split(folded)]
    clauses = [_SPACES.sub("" if language == "zh" else " ", clause) for clause in clauses]
    kinds = {_kind(clause, language, picture_count) for clause in clauses if clause}
    if "else" in kinds:
        return False
    return "pointing" in kinds or {"complaint", "any_change"} <= kinds


def refers_to_a_mask(text: str) -> bool:
    """Return whether the words ask to change what the user masked, marked or selected, in English or Chinese.

    A question about masks, a new picture that shows a mask and a mask that somebody wears do not count.
    """
    folded = _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold().replace("’", "'")).strip()
    folded = wording.pattern("mask.worn").sub(" ", _QUOTED.sub(" ", folded))
    is_other = wording.pattern("mask.question").search(folded) or wording.pattern("mask.new_picture").match(folded)
    return not is_other and wording.pattern("mask.said").search(folded) is not None


def names_a_picture(text: str) -> bool:
    """Return whether the words say which picture is meant: a handle, "the last picture", 上一张."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return bool(handles_in(folded) or wording.pattern("part.named_picture").search(folded))


def _kind(clause: str, language: str, picture_count: int) -> str:
    """Return the kind of a clause: `pointing`, `complaint`, `any_change` (an unspecific one), `nothing` or `else`."""
    if wording.pattern("part.scene", language).search(clause):
        return "else"
    pointing = ("pointing",) if picture_count == 1 else ("pointing", "half_named")
    kinds = (*pointing, "nothing", "complaint", "any_change")
    kind = next((one for one in kinds if wording.pattern(f"part.{one}", language).fullmatch(clause)), "else")
    if kind in pointing:
        return "else" if wording.pattern("part.done").search(clause) else "pointing"
    return kind


# Other requests in a message


def requested_search_in_words(text: str) -> bool:
    """Return whether the words ask, in English or Chinese, for a search and for its verification.

    This is the only case in which both the agent and the image model search.
    """
    wished = wording.pattern("search.refused", flags=re.IGNORECASE).sub(" ", text)
    names = ("search.searching", "search.verifying")
    return all(wording.pattern(name, flags=re.IGNORECASE).search(wished) for name in names)


def named_number(text: str) -> int:
    """Return the largest number of pictures, 1 to 4, that the user's words mention; 1 when they mention none."""
    numbers = (match[0] for match in wording.pattern("number.said", flags=re.IGNORECASE).finditer(text))
    return max((int(one) if one.isdigit() else wording.place("number.from_two", one) + 1 for one in numbers), default=1)
