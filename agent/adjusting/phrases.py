"""What the readers of both languages share: the amounts that words stand for, and what one phrase asks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent.adjusting.adjustment import LIMIT, Adjustment

A_BIT = 15
PLAIN = 30
MUCH = 60
# Stands in a sentence for a handle, which says which picture is meant and nothing more.
HANDLE = "⌗"


@dataclass(frozen=True)
class Read:
    """What a phrase asks for.

    `degree` is the amount when it was said in words before a comparative ("a bit brighter"); `borrows` says that a
    comparative has no amount of its own and may share such a one ("… and warmer"). `is_moved` marks a quality raised or
    lowered by a verb, `is_unsigned` one followed by a bare number. `is_complaint` marks what is said to be wrong with
    the picture ("too dark"): how far to go the other way may be said after it.
    """

    adjustment: Adjustment
    degree: int | None = None
    borrows: bool = False
    is_moved: bool = False
    is_unsigned: bool = False
    is_complaint: bool = False


Reader: TypeAlias = Callable[[re.Match[str]], Read | None]
Rule: TypeAlias = tuple[re.Pattern[str], Reader]


def tone_read(
    tone: str,
    amount: int,
    *,
    degree: int | None = None,
    borrows: bool = False,
    is_moved: bool = False,
    is_unsigned: bool = False,
) -> Read | None:
    """Return a change of light, colour or sharpness; None when the amount is nothing, or more than there is."""
    if not 1 <= abs(amount) <= LIMIT:
        return None
    return Read(Adjustment.model_validate({tone: amount}), degree, borrows, is_moved, is_unsigned)


def complaint_read(tone: str, amount: int) -> Read:
    """Return the change that a complaint asks for."""
    return Read(Adjustment.model_validate({tone: amount}), is_complaint=True)


def turn_read(degrees: float, *, is_left: bool) -> Read | None:
    """Return a turn; None when it turns nothing, or once round and more."""
    return Read(Adjustment(rotate=-degrees if is_left else degrees)) if 0 < degrees < 360 else None


def ratio_read(width: int, height: int) -> Read | None:
    """Return a crop to a ratio from the middle; None when there is no such shape."""
    return Read(Adjustment.model_validate({"crop": f"{width}:{height}"})) if width and height else None


def group(match: re.Match[str], *names: str) -> str:
    """Return what the first of these groups caught; nothing when the pattern lacks them or they caught nothing."""
    found = match.groupdict()
    return next((caught for name in names if (caught := found.get(name))), "")
