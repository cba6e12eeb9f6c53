"""Whether words ask for more around a picture: "outpaint to 16:9", "show more on the left", 扩展画面到16:9.

The whole message has to be such a request, or begin with one and say with "with" or a comma what shall be there.
"crop to 16:9" and "extend the fence" are other requests, and left alone.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from agent import wording

_MOST_CHARACTERS = 2000
# How much a side grows when nobody says how much.
_SHARE = 0.25
_SIDES = ("left", "top", "right", "bottom")


@dataclass(frozen=True)
class ExpansionWish:
    """To which ratio (width to height) a picture shall grow, or on which sides; on all when neither is said.

    `rest` is what the words say besides.
    """

    ratio: float | None = None
    sides: frozenset[str] = frozenset(_SIDES)
    rest: str = ""

    def shares(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Return how far a picture of this size grows (left, top, right, bottom), in parts of its width and height.

        All are 0 when it has the ratio already.
        """
        if self.ratio is not None:
            wider = max(0.0, self.ratio * height / width - 1) / 2
            higher = max(0.0, width / self.ratio / height - 1) / 2
            # Less than a pixel in two hundred is the ratio already.
            wider, higher = (share if share >= 0.0025 else 0.0 for share in (wider, higher))
            return wider, higher, wider, higher
        left, top, right, bottom = (_SHARE if side in self.sides else 0.0 for side in _SIDES)
        return left, top, right, bottom


def read_expansion(text: str) -> ExpansionWish | None:
    """Return what the words want to have around a picture; None when they ask for anything else."""
    words = unicodedata.normalize("NFKC", text).strip()
    if not words or len(words) > _MOST_CHARACTERS:
        return None
    for language in wording.LANGUAGES:
        found = wording.pattern("expand.request", language, flags=re.IGNORECASE).match(words)
        end = wording.pattern("expand.end", language, flags=re.DOTALL)
        rest = end.match(words, found.end()) if found and found.end() else None
        if found and rest:
            return _wish(found, rest["rest"] or "")
    return None


def _wish(found: re.Match[str], rest: str) -> ExpansionWish | None:
    said = {name: caught for name, caught in found.groupdict().items() if caught}
    if "wide" in said:
        wide, high = float(said["wide"]), float(said["high"])
        return ExpansionWish(ratio=wide / high, rest=rest) if wide and high else None
    if wording.pattern("expand.all_sides", flags=re.IGNORECASE).search(found.group()):
        return ExpansionWish(rest=rest)
    word = next((said[name] for name in ("side", "place", "around") if name in said), "").lower()
    meant = [wording.section(language, "expand")["sides"] for language in wording.LANGUAGES]
    sides = frozenset(side for side in _SIDES if any(word in words[side] for words in meant))
    return ExpansionWish(sides=sides or frozenset(_SIDES), rest=rest)
