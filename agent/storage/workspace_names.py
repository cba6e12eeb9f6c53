"""What the files of a workspace may be called. Pure.

Two names that differ only in their case, or in how their accents are written, are one file: it keeps the name that it
was given first, and is found by either. So whatever is taken out of a workspace fits on any disk.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from agent.errors import ErrorCode, RequestRefused

LONGEST_NAME = 120
_SIGNS = frozenset("_.- /")
# Letters, their marks and digits, of any script.
_KINDS = frozenset("LMN")
# Letters and marks that show nothing: a name with one looks like another.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
_SHOWN_CHARACTERS = 60


def checked_file_name(name: str) -> str:
    """Return the name as it is kept: in Unicode's form NFC. Raises RequestRefused(FILE_NAME_INVALID).

    It has 1 to 120 letters and digits of any script, `_`, `.`, `-`, spaces, and `/` between folders. No folder is
    empty, begins or ends with a space, or leads elsewhere.
    """
    plain = unicodedata.normalize("NFC", name[: LONGEST_NAME * 4])
    if not is_name(plain) or len(name) > LONGEST_NAME * 4:
        raise RequestRefused(ErrorCode.FILE_NAME_INVALID, name=shown(name), limit=LONGEST_NAME)
    return plain


def is_name(name: str) -> bool:
    """Return whether this is the name of a file, as it is kept."""
    if not 0 < len(name) <= LONGEST_NAME or not unicodedata.is_normalized("NFC", name):
        return False
    return all(map(_may_stand, name)) and ".." not in name and all(map(_is_segment, name.split("/")))


def key_of(name: str) -> str:
    """Return what two names have in common when they are those of one file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def is_in_the_way(key: str, keys: Iterable[str]) -> bool:
    """Return whether one of the keys is a folder that this key is a file of, or the other way round."""
    return any(key.startswith(f"{other}/") or other.startswith(f"{key}/") for other in keys)


def shown(name: str) -> str:
    """Return a name that nobody has checked, fit for a sentence."""
    plain = "".join(sign if sign.isprintable() else "?" for sign in name[: _SHOWN_CHARACTERS + 1])
    return plain if len(plain) <= _SHOWN_CHARACTERS else plain[: _SHOWN_CHARACTERS - 1] + "…"


def _may_stand(sign: str) -> bool:
    return sign in _SIGNS or (unicodedata.category(sign)[0] in _KINDS and sign not in _INVISIBLE)


def _is_segment(segment: str) -> bool:
    # A mark needs a letter before it: alone it would hang on the slash.
    is_there = segment not in ("", ".") and segment == segment.strip(" ")
    return is_there and unicodedata.category(segment[0])[0] != "M"
