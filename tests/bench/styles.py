"""How well the style library finds what wishes name.

Full text only: what an embedding model adds can be measured with that model alone, and a stand-in would tell nothing.
The wishes were written by those who wrote the styles' names and descriptions, and the misses of both halves have been
looked at: no row tells how well strangers are understood. "traps" use the words of styles for things.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent import StyleLibrary
from tests.bench.measuring import Row, command, table

HALVES = ("tuning", "held_out")
# These kinds say a style's name, one way or another.
NAMING = ("english", "chinese", "misspelt", "mixed")
_WISHES = Path(__file__).with_name("styles_wishes.toml")


@dataclass(frozen=True)
class Outcome:
    """What was found at most three deep for a wish of a kind that names these styles."""

    wish: str
    kind: str
    styles: frozenset[str]
    found: tuple[str, ...]


async def outcomes(library: StyleLibrary, half: str) -> list[Outcome]:
    """Search for each wish of a half, one after the other."""
    kinds: dict[str, list[list[str]]] = tomllib.loads(_WISHES.read_text(encoding="utf-8"))[half]
    return [
        Outcome(wish, kind, frozenset(styles), tuple(match.style.id for match in await library.search(wish)))
        for kind, wishes in kinds.items()
        for wish, *styles in wishes
    ]


def recalled(results: Sequence[Outcome]) -> tuple[int, int]:
    """Return how many of the styles named were found, and how many were named."""
    return sum(len(one.styles & set(one.found)) for one in results), sum(len(one.styles) for one in results)


def wrong(results: Sequence[Outcome]) -> int:
    """Return for how many wishes anything was found that they do not name."""
    return sum(not one.styles.issuperset(one.found) for one in results)


def _row(name: str, half: str, results: Sequence[Outcome]) -> Row:
    found, named = recalled(results)
    naming = [one for one in results if one.styles]
    first = sum(len(one.styles & set(one.found[:1])) for one in naming)
    recall = (f"{found / named:.1%} ({found} of {named})", f"{first / len(naming):.1%}") if named else ("", "")
    share = f"{wrong(results) / len(results):.1%} ({wrong(results)} of {len(results)})"
    return name, half.replace("_", "-"), len(results), *recall, share


async def _measured() -> dict[str, list[Outcome]]:
    with tempfile.TemporaryDirectory() as folder:
        async with contextlib.aclosing(StyleLibrary(Path(folder))) as library:
            return {half: await outcomes(library, half) for half in HALVES}


def _report(_: int) -> str:
    results = asyncio.run(_measured())
    kinds = dict.fromkeys(one.kind for each in results.values() for one in each)
    groups = {"a name said, together": NAMING, **{kind.replace("_", " "): (kind,) for kind in kinds}, "all": kinds}
    rows = []
    for name, members in groups.items():
        for half, each in results.items():
            chosen = [one for one in each if one.kind in members]
            rows += [_row(name, half, chosen)] if chosen else []
    for one in results["tuning"]:
        if set(one.found) != one.styles:
            print(f"{one.wish}: {', '.join(one.styles)}; found {', '.join(one.found)}", file=sys.stderr)
    return table("wishes | half | wishes | recall@3 | first | something wrong found", rows)


if __name__ == "__main__":
    command("Finding styles", _report)
