"""Whether words ask to change a part of a picture that they only point at: "change this part", 把这里改成红色, or
speak of a mask: "fill the mask", 只改涂抹的地方.

Nothing can be pointed at in words alone, so such a wish needs a mask or a name. An ordinary wish must never be held
up: every clause of the message has to be known as pointing, or as saying nothing of its own, before it counts. What
speaks of a mask counts wherever it stands, because nothing else in the message can take the mask's place.
"""

from __future__ import annotations

import re
import unicodedata

from agent import wording
from agent.pictures import handles_in

_MOST_CHARACTERS = 160

_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|(?<!\w)'[^']*'(?!\w)")
_SPACES = re.compile(r"\s+")


def points_at_a_part(text: str, *, picture_count: int) -> bool:
    """Return whether the words ask to change a part that they only point at, of a picture that they do not name.

    `picture_count` is how many pictures the conversation holds: with exactly one, "this part of the sky" is name
    enough. English and Chinese; long messages never count.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").strip()
    if len(folded) > _MOST_CHARACTERS or names_a_picture(folded):
        return False
    language = "zh" if wording.is_chinese(folded) else "en"
    clauses = [_tidied(clause, language) for clause in wording.pattern("part.clause_end").split(folded)]
    kinds = {_kind(clause, language, picture_count) for clause in clauses if clause}
    if "else" in kinds:
        return False
    return "pointing" in kinds or {"complaint", "any_change"} <= kinds


def refers_to_a_mask(text: str) -> bool:
    """Return whether the words ask for a change of what the person masked, marked or selected, in English or Chinese.

    A question about masks, a new picture with a mask in it and a mask that somebody wears do not count.
    """
    folded = _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold().replace("’", "'")).strip()
    folded = wording.pattern("mask.worn").sub(" ", _QUOTED.sub(" ", folded))
    is_other = wording.pattern("mask.question").search(folded) or wording.pattern("mask.new_picture").match(folded)
    return not is_other and wording.pattern("mask.said").search(folded) is not None


def names_a_picture(text: str) -> bool:
    """Return whether the words say which picture is meant: a handle, "the last picture", 上一张."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return bool(handles_in(folded) or wording.pattern("part.named_picture").search(folded))


def _tidied(clause: str, language: str) -> str:
    # Emoji and marks around the words say nothing here.
    clause = re.sub(r"^[^\w]+|[^\w]+$", "", clause)
    return _SPACES.sub("" if language == "zh" else " ", clause)


def _kind(clause: str, language: str, picture_count: int) -> str:
    """Return what a clause is: `pointing`, `complaint`, `any_change` (of nothing in particular), `nothing`, `else`."""
    if wording.pattern("part.scene", language).search(clause):
        return "else"
    pointing = ("pointing",) if picture_count == 1 else ("pointing", "half_named")
    kinds = (*pointing, "nothing", "complaint", "any_change")
    kind = next((one for one in kinds if wording.pattern(f"part.{one}", language).fullmatch(clause)), "else")
    if kind in pointing:
        return "else" if wording.pattern("part.done").search(clause) else "pointing"
    return kind
