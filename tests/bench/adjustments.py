"""How well the studio understands requests for light, colour and frame: `python -m tests.bench.adjustments`.

Two ways are measured. "Exactly" is the reader that every turn goes through first, with and without a key: what it
understands is done without any model, what it does not goes to the planner. "Without a key" is the whole way with the
built-in sketch model as the planner. A phrase is understood when the operation, its direction and its amount are those
that the phrase asks for and nothing else is done. Anything done that was not asked for is wrong.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.adapters.language import Adjustment, CropRatio, read_adjustment
from tests.adapters.sketch import AddText, Edit, understand

PHRASES = Path(__file__).parent / "adjustment_phrases.toml"
HALVES = ("tuning", "held_out")
LANGUAGES = ("english", "chinese")

_CLASSES = {"bit": range(1, 21), "some": range(21, 46), "much": range(46, 101)}
_TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness")
_TERM = re.compile(r"(?P<name>\w+) (?P<sign>[+-])(?P<amount>[\w.|]+)")


@dataclass(frozen=True)
class Phrase:
    """What somebody says, the half and language it is in, and what it asks for (`none` or `ask` for a trap)."""

    text: str
    half: str
    language: str
    expected: str

    @property
    def is_trap(self) -> bool:
        """Whether nothing may be done."""
        return self.expected in {"none", "ask"}


@dataclass(frozen=True)
class Outcome:
    """What was done for a phrase: the adjustment, whether anything else was done, and what that comes to."""

    phrase: Phrase
    done: Adjustment | None
    does_more: bool = False

    @property
    def is_understood(self) -> bool:
        """Whether it is what was asked for; of a trap, whether nothing was done."""
        if self.phrase.is_trap:
            return self.done is None and not self.does_more
        return self.done is not None and not self.does_more and fits(self.phrase.expected, self.done)

    @property
    def is_wrong(self) -> bool:
        """Whether something was done that was not asked for. To do nothing is not understood, and not wrong."""
        return (self.done is not None or self.does_more) and not self.is_understood


def fits(expected: str, adjustment: Adjustment) -> bool:
    """Return whether the adjustment is what the expectation says and nothing beyond."""
    left = adjustment
    for term in expected.split(", "):
        if not _term_fits(term, left):
            return False
        left = left.model_copy(update={_field(term): Adjustment.model_fields[_field(term)].default})
    return left.is_identity


def _field(term: str) -> str:
    name = term.split(" ", maxsplit=1)[0]
    return {"grey": "saturation"}.get(name, name)


def _term_fits(term: str, adjustment: Adjustment) -> bool:
    name, _, value = term.partition(" ")
    match name:
        case "grey":
            return adjustment.saturation == -100
        case "crop":
            return isinstance(adjustment.crop, CropRatio) and adjustment.crop.text == value
        case "flip":
            return adjustment.flip == value
    match = _TERM.fullmatch(term)
    assert match is not None, term
    sign = 1 if match["sign"] == "+" else -1
    found = getattr(adjustment, match["name"]) * sign
    if match["name"] == "rotate" or match["amount"][0].isdigit():
        return bool(found == float(match["amount"]))
    return any(found in _CLASSES[name] for name in match["amount"].split("|"))


def phrases() -> list[Phrase]:
    """Return all of them."""
    table: dict[str, dict[str, list[list[str]]]] = tomllib.loads(PHRASES.read_text(encoding="utf-8"))
    return [
        Phrase(text, half, language, expected)
        for half in HALVES
        for language in LANGUAGES
        for kind in (language, f"{language}_traps")
        for text, expected in table[half][kind]
    ]


def exactly(phrase: Phrase) -> Outcome:
    """Return what the studio does by itself, with or without a key."""
    return Outcome(phrase, read_adjustment(phrase.text))


def without_key(phrase: Phrase) -> Outcome:
    """Return what is done in sketch mode to the picture in front of the person."""
    exact = exactly(phrase)
    if exact.done is not None:
        return exact
    wish = understand(phrase.text, has_pictures=True)
    if not isinstance(wish, Edit):
        return Outcome(phrase, None)
    adjustments = [one for one in wish.operations if isinstance(one, Adjustment)]
    done = adjustments[0] if adjustments else None
    for one in adjustments[1:]:
        done = done.combine(one) if done is not None else one
    # Words to be written are written: that adjusts nothing.
    others = [one for one in wish.operations if not isinstance(one, Adjustment | AddText)]
    return Outcome(phrase, done, does_more=bool(others or (wish.left_out and wish.operations)))


WAYS: dict[str, Callable[[Phrase], Outcome]] = {"exactly": exactly, "without a key": without_key}


def measured() -> dict[str, list[Outcome]]:
    """Return what is done for every phrase, by the way it goes."""
    every = phrases()
    return {name: [way(phrase) for phrase in every] for name, way in WAYS.items()}


def report(results: dict[str, list[Outcome]]) -> str:
    """Return the table: a row for each way, half and language."""
    rows = [
        "| way | half | language | requests understood | traps left alone | wrong |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for way, outcomes in results.items():
        for half in HALVES:
            for language in LANGUAGES:
                chosen = [one for one in outcomes if (one.phrase.half, one.phrase.language) == (half, language)]
                rows.append(_row(way, half, language.title(), chosen))
        rows.append(_row(way, "both", "both", outcomes))
    return "\n".join(rows)


def _row(way: str, half: str, language: str, outcomes: Sequence[Outcome]) -> str:
    wishes = [one for one in outcomes if not one.phrase.is_trap]
    traps = [one for one in outcomes if one.phrase.is_trap]
    understood, alone = sum(one.is_understood for one in wishes), sum(one.is_understood for one in traps)
    wrong = sum(one.is_wrong for one in outcomes)
    share = understood / len(wishes)
    return (
        f"| {way} | {half.replace('_', '-')} | {language} | {share:.0%} ({understood} of {len(wishes)}) "
        f"| {alone} of {len(traps)} | {wrong} of {len(outcomes)} |"
    )


def _missed(outcomes: Sequence[Outcome]) -> str:
    missed = [one for one in outcomes if not one.is_understood]
    return "\n".join(
        f"- {'WRONG ' if one.is_wrong else ''}{one.phrase.text}: {one.phrase.expected}; "
        f"done: {one.done.model_dump(exclude_defaults=True) if one.done else None}"
        for one in missed
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.adjustments")
    parser.add_argument("--missed", action="store_true", help="also list what went wrong in the tuning half")
    given = parser.parse_args()
    results = measured()
    print(report(results))
    if given.missed:
        for way, outcomes in results.items():
            print(f"\nTuning half, {way}:\n{_missed([one for one in outcomes if one.phrase.half == 'tuning'])}")


if __name__ == "__main__":
    main()
