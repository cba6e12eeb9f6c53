"""`python -m tests.bench.keeping`: a long rail beside a short one: the list, opening and searching conversations.

Both homes hold conversations of five turns and ten pictures each, written as rows at once. Before a search what
changed since the last one is put into the full text; here that has been done, once, and its time is told apart: a
home pays it with its first search, and then only for what is new.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent import AgentMessage, PromptMessage, Role, SmartCanvas, TextPart, TokenUsage, Turn, TurnSettings, TurnState
from tests.adapters.records import ConversationStore, ImageStore, turn_row
from tests.bench.growing import Grown, as_markdown, asked_of_both, insert, picture_of
from tests.bench.measuring import timed

FEW, MANY = 100, 10_000
_TURNS, _PICTURES = 5, 2
_RUNS = 60
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_THINGS = (
    *("fox", "heron", "lantern", "harbour", "violin", "meadow", "teapot", "lighthouse"),
    *("狐狸", "灯塔", "茶壶", "草地"),
)
_WAYS = ("in the snow", "at dawn, seen from above", "as a woodcut", "水彩风格", "夜晚的街道", "on black paper")
# Said in ten conversations of either home.
_RARE = "bergamot"
_SEARCHES = {
    "a search for a word of ten conversations": _RARE,
    "a search for two letters of Chinese, in a third of all": "狐狸",
    "a search for a word of nearly all": "snow",
    "a search for the beginning of a word": "ligh",
}
Ask = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Keeping:
    """All that was measured; `indexing_s` is what the first search in the long list took."""

    kept: Sequence[Grown]
    indexing_s: float


def section() -> str:
    """Return the page's section, measured now."""
    keeping = asyncio.run(measured(FEW, MANY, _RUNS))
    return (
        f"## Everything is kept\n\nThe list (fifty of them), opening one and searching, with {FEW} and with {MANY:,} "
        "conversations of five turns and ten pictures each (`python -m tests.bench.keeping`): medians, with the tenth "
        f"and the ninetieth percentile in brackets. Putting the words of {MANY:,} conversations into the full text "
        f"took {keeping.indexing_s:.1f} s; a home does that once.\n\n"
        f"{as_markdown('what', str(FEW), f'{MANY:,}', keeping.kept)}\n"
    )


async def measured(few: int, many: int, runs: int) -> Keeping:
    """Return what every way takes among few conversations and among many, in turn."""
    asked: list[dict[str, Ask]] = []
    indexing_s = 0.0
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for count in (few, many):
            home = folder / str(count)
            store = await stack.enter_async_context(contextlib.aclosing(ConversationStore(home, ImageStore(home))))
            await store.open()
            asked.append(_questions(store, await asyncio.to_thread(seed, home, count)))
            indexing_s = await timed(asked[-1]["a search for a word of ten conversations"])
        kept = [await asked_of_both(name, asked[0][name], asked[1][name], runs) for name in asked[0]]
    return Keeping(kept, indexing_s)


def _questions(store: ConversationStore, ids: Sequence[str]) -> dict[str, Ask]:
    # More than are kept in memory, one after the other: each is read from the database.
    order = iter(random.Random(3).sample(ids, len(ids)) * 10)

    def searching(query: str) -> Ask:
        return lambda: store.search("local", query)

    return {
        "the list": lambda: store.list("local"),
        "opening one that is not in memory": lambda: store.get(next(order), "local"),
        **{name: searching(query) for name, query in _SEARCHES.items()},
    }


def seed(home: Path, count: int) -> Sequence[str]:
    """Write conversations into an open home's database, as rows at once; return the ids of those not deleted."""
    ids = [f"{number:032x}" for number in range(count)]
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        for number, key in enumerate(ids):
            insert(database, "conversations", [_conversation(key, number)])
            turns = list(_turns(number, count))
            insert(database, "turns", [_turn(key, place, turn) for place, turn in enumerate(turns)])
            insert(database, "pictures", [row for turn in turns for row in _pictures(key, turn)])
    return [key for number, key in enumerate(ids) if not _is_deleted(number)]


def _turns(number: int, count: int) -> Iterator[Turn]:
    chance, before = random.Random(number), None
    rare = set(random.Random(7).sample(range(count), 10))
    for place in range(_TURNS):
        ways = f"{chance.choice(_WAYS)} {chance.choice(_WAYS)}"
        wish = f"{chance.choice(_THINGS)} {ways} number {chance.randrange(10_000)}"
        said = f"Please draw {wish}{f', {_RARE}' if number in rare and place == 2 else ''}."
        answer = f"Here it is: {wish}. Shall I change the light, the frame, or what stands behind it?"
        handles = tuple(f"#{place * _PICTURES + one + 1}" for one in range(_PICTURES))
        asked = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=said),))
        yield Turn(
            id=f"{number:024x}{place:08x}",
            parent=before,
            text=said,
            settings=TurnSettings(),
            started_at=_moment(number),
            state=TurnState.DONE,
            messages=(asked, PromptMessage(role=Role.MODEL, parts=(TextPart(text=answer),))),
            components=(AgentMessage(text=answer), SmartCanvas(handles=handles)),
            usage=TokenUsage(prompt_tokens=900, output_tokens=80, image_tokens=1120),
            price_usd=0.04,
        )
        before = f"{number:024x}{place:08x}"


def _pictures(key: str, turn: Turn) -> Iterator[dict[str, Any]]:
    place = int(turn.id[-8:], 16)
    prompt = f"{turn.text} Soft light from the left, fine lines, nothing written in the picture."
    told = {"prompt": prompt, "user_text": turn.text, "width": 1376, "height": 768, "price_usd": 0.04}
    for one in range(_PICTURES):
        handle, digest = f"#{place * _PICTURES + one + 1}", f"{turn.id}{one:032x}"
        yield picture_of(key, handle, turn.id, turn.started_at, digest=digest, **told)


def _conversation(key: str, number: int) -> dict[str, Any]:
    moment = _moment(number)
    return {
        **{"id": key, "owner": "local", "title": f"Conversation {number}", "created_at": moment, "updated_at": moment},
        "head": f"{number:024x}{_TURNS - 1:08x}",
        "is_pinned": number % 997 == 3,
        "deleted_at": moment if _is_deleted(number) else None,
    }


def _is_deleted(number: int) -> bool:
    return number % 50 == 7


def _turn(key: str, place: int, turn: Turn) -> dict[str, Any]:
    own = {"conversation_id": key, "id": turn.id, "position": place, "parent": turn.parent, "runner": ""}
    return own | turn_row(turn, turn.messages, ())


def _moment(number: int) -> datetime:
    return _BEGINNING + timedelta(minutes=number)


if __name__ == "__main__":
    sys.stdout.write(section())
