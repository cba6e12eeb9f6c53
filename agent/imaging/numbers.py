"""How many pictures the person's own words ask for."""

from __future__ import annotations

import re

_NUMBERS = {
    **dict.fromkeys(("two", "twice", "both", "couple", "pair", "两", "二", "俩"), 2),
    **dict.fromkeys(("three", "thrice", "三", "仨"), 3),
    **dict.fromkeys(("four", "四"), 4),
}
# Neither a ratio, a size, a handle nor a part of a longer number.
_NUMBER = re.compile(
    r"(?<![\w.,:#/×-])(?:([2-4])(?![\d.,:/×%a-z-])|(two|twice|both|couple|pair|three|thrice|four)\b)"
    r"|([二三四两俩仨])(?=[张幅个份种款组版次])",
    re.IGNORECASE,
)


def named_number(text: str) -> int:
    """Return the largest number of pictures, 1 to 4, that the person's own words can have meant."""
    found = (next(filter(None, match.groups())).lower() for match in _NUMBER.finditer(text))
    return max((int(one) if one.isdigit() else _NUMBERS[one] for one in found), default=1)
