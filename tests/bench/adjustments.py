"""How well the studio understands requests for light, colour and frame.

Two ways are measured. "Exactly" is the reader that every turn goes through first, with and without a key: what it
understands is done without any model, what it does not goes to the planner. "Without a key" is the whole way with the
built-in sketch model as the planner. A phrase is understood when the operation, its direction and its amount are those
that the phrase asks for and nothing else is done. Anything done that was not asked for is wrong.
"""

from __future__ import annotations

import functools
import itertools
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.adapters.language import Adjustment, CropRatio, read_adjustment
from tests.adapters.sketch import AddText, Edit, understand
from tests.bench.measuring import Row, command, table

HALVES = ("tuning", "held_out")
LANGUAGES = ("english", "chinese")
_PHRASES = Path(__file__).with_name("adjustment_phrases.toml")
_CLASSES = {"bit": range(1, 21), "some": range(21, 46), "much": range(46, 101)}


@dataclass(frozen=True)
class Outcome:
    """What was done for a phrase, and whether more than that adjustment; `expected` is `none` or `ask` for a trap."""

    text: str
    half: str
    language: str
    expected: str
    done: Adjustment | None
    does_more: bool

    @property
    def is_trap(self) -> bool:
        """Whether nothing may be done."""
        return self.expected in {"none", "ask"}

    @property
    def is_understood(self) -> bool:
        """Whether it is what was asked for; of a trap, whether nothing was done."""
        if self.does_more or self.done is None:
            return self.is_trap and not self.does_more
        return not self.is_trap and _fits(self.expected, self.done)

    @property
    def is_wrong(self) -> bool:
        """Whether something was done that was not asked for. To do nothing is not understood, and not wrong."""
        return (self.done is not None or self.does_more) and not self.is_understood


def _fits(expected: str, adjustment: Adjustment) -> bool:
    """Return whether the adjustment is what the expectation says and nothing beyond."""
    left = adjustment
    for term in expected.split(", "):
        name, _, value = term.partition(" ")
        field = "saturation" if name == "grey" else name
        if not _is_met(name, value, getattr(adjustment, field)):
            return False
        left = left.model_copy(update={field: Adjustment.model_fields[field].default})
    return left.is_identity


def _is_met(name: str, value: str, found: Any) -> bool:
    match name:
        case "grey":
            return bool(found == -100)
        case "crop":
            return isinstance(found, CropRatio) and found.text == value
        case "flip":
            return bool(found == value)
    amount = found * (1 if value[0] == "+" else -1)
    if value[1].isdigit():
        return bool(amount == float(value[1:]))
    return any(amount in _CLASSES[size] for size in value[1:].split("|"))


def _without_key(text: str) -> tuple[Adjustment | None, bool]:
    """Return what is done in sketch mode to the picture in front of the person, and whether more than that."""
    exact = read_adjustment(text)
    wish = understand(text, has_pictures=True)
    if exact is not None or not isinstance(wish, Edit):
        return exact, False
    adjustments = [one for one in wish.operations if isinstance(one, Adjustment)]
    done = functools.reduce(Adjustment.combine, adjustments) if adjustments else None
    # Words to be written are written: that adjusts nothing.
    others = [one for one in wish.operations if not isinstance(one, Adjustment | AddText)]
    return done, bool(others or (wish.left_out and wish.operations))


def measured() -> dict[str, list[Outcome]]:
    """Return what is done for every phrase, by the way it goes."""
    ways = {"exactly": lambda text: (read_adjustment(text), False), "without a key": _without_key}
    phrases: dict[str, dict[str, list[list[str]]]] = tomllib.loads(_PHRASES.read_text(encoding="utf-8"))
    return {
        way: [
            Outcome(text, half, language, expected, *does(text))
            for half, language in itertools.product(HALVES, LANGUAGES)
            for text, expected in (*phrases[half][language], *phrases[half][f"{language}_traps"])
        ]
        for way, does in ways.items()
    }


def _row(way: str, half: str, language: str, outcomes: Sequence[Outcome]) -> Row:
    wishes = [one.is_understood for one in outcomes if not one.is_trap]
    traps = [one.is_understood for one in outcomes if one.is_trap]
    understood = f"{sum(wishes) / len(wishes):.0%} ({sum(wishes)} of {len(wishes)})"
    wrong = f"{sum(one.is_wrong for one in outcomes)} of {len(outcomes)}"
    return way, half.replace("_", "-"), language, understood, f"{sum(traps)} of {len(traps)}", wrong


def _report(_: int) -> str:
    rows = []
    for way, outcomes in measured().items():
        for half, language in itertools.product(HALVES, LANGUAGES):
            chosen = [one for one in outcomes if (one.half, one.language) == (half, language)]
            rows.append(_row(way, half, language.title(), chosen))
        rows.append(_row(way, "both", "both", outcomes))
        for one in outcomes:
            if one.half == "tuning" and not one.is_understood:
                print(
                    f"{'WRONG ' if one.is_wrong else ''}{one.text}: {one.expected}; done: {one.done}", file=sys.stderr
                )
    return table("way | half | language | requests understood | traps left alone | wrong", rows)


if __name__ == "__main__":
    command("Requests for light, colour and frame", _report)
