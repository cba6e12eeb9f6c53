"""Whether words ask to go back to an earlier picture, or forward again: "undo that", "back to #1, but warmer", 撤销.

The whole message has to be such a request, or begin with one: what is asked for besides it is returned as it was
written. "Put it back on the shelf", "redo the sky" and "back to school" are other requests, and left alone.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from agent import wording
from agent.events import TargetMove
from agent.pictures import parse_handle

_MOST_CHARACTERS = 2000
_FLAGS = re.IGNORECASE | re.DOTALL
_SIGNS = str.maketrans({"，": ",", "；": ";", "’": "'", "！": "!", "？": "?"})


@dataclass(frozen=True)
class UndoWish:
    """What is asked for, and what of the message is left (`rest`).

    Of `back_to` one of `handle`, `place` (from 1) and neither, for the original, says where to. `is_doubtful` when the
    words mean it only where there is something to redo: "redo it" is otherwise a picture painted once more.
    """

    move: TargetMove
    steps: int = 1
    handle: str = ""
    place: int = 0
    rest: str = ""
    is_doubtful: bool = False


def read_undo(text: str) -> UndoWish | None:
    """Return what the words ask to go back or forward to, and what else they ask for; None for any other request."""
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS).strip()
    if not plain or len(plain) > _MOST_CHARACTERS:
        return None
    for move, pattern in _rules():
        match = pattern.fullmatch(plain)
        if match is not None:
            return _wish(move, match)
    return None


@functools.cache
def _rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return which way each rule of the phrases means, and its words with what may stand around them."""
    return tuple(
        (move, re.compile(wording.expand(language, "undo", f"{{lead}}(?:{words}){{tail}}{{rest}}"), _FLAGS))
        for language in wording.LANGUAGES
        for move, rule in wording.section(language, "undo")["rules"]
        for words in (wording.expand(language, "undo", rule),)
    )


def _wish(move: str, match: re.Match[str]) -> UndoWish | None:
    said = {name: value for name, value in match.groupdict().items() if value}
    rest = said.get("rest", "").strip()
    rest = rest if wording.pattern("undo.polite", flags=re.IGNORECASE).sub("", rest) else ""
    steps = max(1, _number(said["count"], "counts")) if "count" in said else 1
    match move:
        case "undo":
            return UndoWish("undo", steps=steps, rest=rest)
        case "redo":
            return UndoWish("redo", steps=steps, rest=rest, is_doubtful="doubtful" in said)
        case _:
            return _back_to(said, rest)


def _back_to(said: dict[str, str], rest: str) -> UndoWish | None:
    if "handle" in said or "number" in said:
        handle = parse_handle(said.get("handle") or said["number"])
        return UndoWish("back_to", handle=str(handle), rest=rest) if handle else None
    if "ordinal" in said:
        return UndoWish("back_to", place=_number(said["ordinal"], "ordinals"), rest=rest)
    return UndoWish("back_to", rest=rest)


def _number(written: str, name: str) -> int:
    """Return a number in digits, or in words: their place in the list of this name."""
    if digits := re.match(r"\d+", written):
        return int(digits[0])
    return wording.place(f"undo.{name}", written)
