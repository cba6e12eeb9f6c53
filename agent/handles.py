"""A picture's short name in its conversation: `#7`, and `#7b` … `#7z`, `#7aa` for what was made from it by editing.

Uploads and fresh pictures take the next free number; an edit keeps the family's number and takes the next letters. A
name is never given twice, even when its picture is gone, because the conversation's words may still speak of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from agent.errors import ErrorCode, ToolArgumentError
from agent.pictures import Picture

_WRITTEN = re.compile(r"#?\s*(\d{1,6})([b-z]|[a-z]{2,3})?")
# ASCII neighbours only: in Chinese a handle stands right beside the next word.
_IN_WORDS = re.compile(r"(?<![0-9A-Za-z_&#])#(\d{1,6})([b-z]|[a-z]{2})?(?![0-9A-Za-z_])", re.IGNORECASE)
_SHOWN_CHARACTERS = 40


class Handle(NamedTuple):
    """A handle taken apart; `letters` is empty for the first picture of a family."""

    number: int
    letters: str = ""

    def __str__(self) -> str:
        return f"#{self.number}{self.letters}"


def parse_handle(written: str) -> Handle | None:
    """Return the handle someone wrote, with or without `#`, in any case or width; None when it is none."""
    match = _WRITTEN.fullmatch(unicodedata.normalize("NFKC", written).strip().lower())
    return Handle(int(match[1]), match[2] or "") if match else None


def handles_in(text: str) -> tuple[str, ...]:
    """Return the handles named in words, each once, in order; the pictures need not exist."""
    found = _IN_WORDS.finditer(unicodedata.normalize("NFKC", text))
    return tuple(dict.fromkeys(str(Handle(int(match[1]), (match[2] or "").lower())) for match in found))


def allot_handle(existing: Iterable[str], *, base: str | None) -> str:
    """Return the handle for one more picture: of the family of `base` when it was made by editing that one."""
    return next_number(existing) if base is None else next_letter(base, existing)


def next_number(existing: Iterable[str]) -> str:
    """Return the handle for an upload or a fresh picture."""
    return str(Handle(max((handle.number for handle in _parsed(existing)), default=0) + 1))


def next_letter(base: str, existing: Iterable[str]) -> str:
    """Return the handle for a picture made by editing `base`: the number of its family with the next free letter.

    Raises ToolArgumentError(UNKNOWN_HANDLE) when `base` is no handle.
    """
    names = tuple(existing)
    family = parse_handle(base)
    if family is None:
        raise _unknown(base, names)
    taken = [_rank(handle.letters) for handle in (*_parsed(names), family) if handle.number == family.number]
    return str(Handle(family.number, _letters(max(taken) + 1)))


def resolve(handle: str, pictures: Iterable[Picture]) -> Picture:
    """Return the picture of that name, tolerant of a missing `#`, case and width, and never guessing.

    Raises ToolArgumentError(UNKNOWN_HANDLE) that lists the known ones.
    """
    known = {picture.handle: picture for picture in pictures}
    wanted = parse_handle(handle)
    if wanted is None or str(wanted) not in known:
        raise _unknown(handle, known)
    return known[str(wanted)]


def _unknown(handle: str, known: Iterable[str]) -> ToolArgumentError:
    shown = " ".join(handle.split())[:_SHOWN_CHARACTERS] or "(empty)"
    return ToolArgumentError(ErrorCode.UNKNOWN_HANDLE, handle=shown, known=", ".join(known) or "none yet")


def _parsed(handles: Iterable[str]) -> list[Handle]:
    return [handle for handle in map(parse_handle, handles) if handle is not None]


def _rank(letters: str) -> int:
    # The bare number stands for "a", so the letters count 1 (none), 2 (b), … 26 (z), 27 (aa).
    rank = 0
    for letter in letters or "a":
        rank = rank * 26 + ord(letter) - ord("a") + 1
    return rank


def _letters(rank: int) -> str:
    letters = ""
    while rank > 0:
        rank, index = divmod(rank - 1, 26)
        letters = chr(ord("a") + index) + letters
    return letters
