"""How well the style library finds what wishes name: `python -m tests.bench.styles` prints a table.

Full text only: what an embedding model adds can be measured with that model alone, and a stand-in would tell nothing.
The wishes were written by those who wrote the styles' names and descriptions, and the misses of both halves have been
looked at: no row tells how well strangers are understood. "traps" use the words of styles for things.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent import StyleLibrary

WISHES = Path(__file__).parent / "styles_wishes.toml"
HALVES = ("tuning", "held_out")
# These kinds say a style's name, one way or another.
NAMING = ("english", "chinese", "misspelt", "mixed")


@dataclass(frozen=True)
class Wish:
    """A wish, its kind, and the ids of the styles it names."""

    text: str
    kind: str
    styles: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """What was found for a wish at most three deep, and how long it took."""

    wish: Wish
    found: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Score:
    """Figures of wishes: styles found of those named, wishes that name one and get one of theirs first, wrong ones."""

    named: int
    recalled: int
    naming: int
    first: int
    wishes: int
    wrong: int

    @property
    def recall(self) -> float | None:
        """Recall@3, or None where no style is named."""
        return self.recalled / self.named if self.named else None


def labelled(half: str) -> list[Wish]:
    """Return the wishes of a half."""
    kinds: dict[str, list[list[str]]] = tomllib.loads(WISHES.read_text(encoding="utf-8"))[half]
    return [Wish(text, kind, frozenset(styles)) for kind, rows in kinds.items() for text, *styles in rows]


async def outcomes(library: StyleLibrary, wishes: Sequence[Wish]) -> list[Outcome]:
    """Search for each wish, one after the other."""
    found = []
    for wish in wishes:
        started_s = time.perf_counter()
        matches = await library.search(wish.text)
        ids = tuple(match.style.id for match in matches)
        found.append(Outcome(wish, ids, time.perf_counter() - started_s))
    return found


def score(results: Sequence[Outcome]) -> Score:
    """Return the figures of these wishes."""
    return Score(
        named=sum(len(result.wish.styles) for result in results),
        recalled=sum(len(result.wish.styles & set(result.found)) for result in results),
        naming=sum(bool(result.wish.styles) for result in results),
        first=sum(bool(result.found) and result.found[0] in result.wish.styles for result in results),
        wishes=len(results),
        wrong=sum(bool(set(result.found) - result.wish.styles) for result in results),
    )


def as_markdown(results: dict[str, list[Outcome]]) -> str:
    """Return a row for each kind of wish and half, and one for all that say a name."""
    rows = [
        "| wishes | half | wishes | recall@3 | first | something wrong found |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    kinds = list(dict.fromkeys(result.wish.kind for each in results.values() for result in each))
    groups: list[tuple[str, tuple[str, ...]]] = [
        ("a name said, together", NAMING),
        *((kind.replace("_", " "), (kind,)) for kind in kinds),
    ]
    groups.append(("all", tuple(kinds)))
    for name, members in groups:
        for half, each in results.items():
            members_found = [result for result in each if result.wish.kind in members]
            if members_found:
                rows.append(_row(name, half, score(members_found)))
    return "\n".join(rows)


def _row(name: str, half: str, figures: Score) -> str:
    recall = "" if figures.recall is None else f"{figures.recall:.1%} ({figures.recalled} of {figures.named})"
    first = "" if figures.recall is None else f"{figures.first / figures.naming:.1%}"
    wrong = f"{figures.wrong / figures.wishes:.1%} ({figures.wrong} of {figures.wishes})"
    return f"| {name} | {half.replace('_', '-')} | {figures.wishes} | {recall} | {first} | {wrong} |"


async def measured() -> dict[str, list[Outcome]]:
    """Search for every labelled wish, after one search that loads the library."""
    with tempfile.TemporaryDirectory() as folder:
        library = StyleLibrary(Path(folder))
        try:
            await library.search("warm up")
            return {half: await outcomes(library, labelled(half)) for half in HALVES}
        finally:
            await library.aclose()


def report(results: dict[str, list[Outcome]]) -> str:
    """Return the table with what it was measured by."""
    seconds = [result.seconds for each in results.values() for result in each]
    pace = f"{1000 * statistics.median(seconds):.1f} ms a search (median), {1000 * max(seconds):.1f} ms at most."
    return f"Full text, at most 3 styles, similarity 0.6 and more. {pace}\n\n{as_markdown(results)}"


def _missed(results: Sequence[Outcome]) -> str:
    wrong = [result for result in results if set(result.found) != result.wish.styles]
    return "\n".join(f"- {one.wish.text}: {', '.join(one.wish.styles)}; found {', '.join(one.found)}" for one in wrong)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.styles")
    parser.add_argument("--missed", action="store_true", help="also list what went wrong in the tuning half")
    given = parser.parse_args()
    results = asyncio.run(measured())
    print(report(results))
    if given.missed:
        print(f"\nTuning half:\n{_missed(results['tuning'])}")


if __name__ == "__main__":
    main()
