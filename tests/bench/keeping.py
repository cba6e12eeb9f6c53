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
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.components import AgentMessage, SmartCanvas
from agent.conversation import Turn, TurnState
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Role, TextPart, TokenUsage
from agent.pictures import Picture, Receipt
from agent.settings import TurnSettings
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.rows import picture_row, turn_row

FEW, MANY = 100, 10_000
_TURNS, _PICTURES = 5, 2
_RUNS = 60
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_THINGS = (
    "fox",
    "heron",
    "lantern",
    "harbour",
    "violin",
    "meadow",
    "teapot",
    "lighthouse",
    "狐狸",
    "灯塔",
    "茶壶",
    "草地",
)
_WAYS = ("in the snow", "at dawn, seen from above", "as a woodcut", "水彩风格", "夜晚的街道", "on black paper")
# Said in ten conversations of either home.
_RARE = "bergamot"


@dataclass(frozen=True)
class Ways:
    """What is done, in a home of any size; each call does it once more."""

    name: str
    once: Callable[[ConversationStore, Sequence[str]], Callable[[], Awaitable[object]]]


@dataclass(frozen=True)
class Kept:
    """What one way took in the short and in the long list, in seconds."""

    name: str
    few: Sequence[float]
    many: Sequence[float]

    @property
    def ratio(self) -> float:
        """How many times as long the long list takes."""
        return statistics.median(self.many) / statistics.median(self.few)


@dataclass(frozen=True)
class Keeping:
    """All that was measured; `indexing_s` is what the first search in the long list took."""

    kept: Sequence[Kept]
    indexing_s: float


def section() -> str:
    """Return the page's section, measured now."""
    return report(asyncio.run(measured(FEW, MANY, _RUNS)))


def report(keeping: Keeping) -> str:
    """Return what was measured as Markdown."""
    rows = [f"| {one.name} | {_told(one.few)} | {_told(one.many)} | {one.ratio:.2f}x | ≤ 3x |" for one in keeping.kept]
    table = "\n".join([f"| what | {FEW} | {MANY:,} | ratio | target |\n| --- | --- | --- | --- | --- |", *rows])
    return (
        f"## Everything is kept\n\nThe list (fifty of them), opening one and searching, with {FEW} and with {MANY:,} "
        "conversations of five turns and ten pictures each (`python -m tests.bench.keeping`): median and ninetieth "
        f"percentile. Putting the words of {MANY:,} conversations into the full text took {keeping.indexing_s:.1f} s; "
        f"a home does that once.\n\n{table}\n"
    )


async def measured(few: int, many: int, runs: int) -> Keeping:
    """Return what every way takes among few conversations and among many, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        async with contextlib.AsyncExitStack() as stack:
            stores, ids, indexing_s = [], [], 0.0
            for count in (few, many):
                store = await _opened(Path(folder) / str(count))
                stack.push_async_callback(store.aclose)
                ids.append(await asyncio.to_thread(seed, Path(folder) / str(count), count))
                started_s = time.perf_counter()
                await store.search("local", _RARE)
                indexing_s = time.perf_counter() - started_s
                stores.append(store)
            kept = [await _compared(way, stores, ids, runs) for way in _ways()]
    return Keeping(kept, indexing_s)


def seed(home: Path, count: int) -> Sequence[str]:
    """Write conversations into an open home's database, as rows at once; return the ids of those not deleted."""
    ids = [f"{number:032x}" for number in range(count)]
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        for number, key in enumerate(ids):
            _insert(database, "conversations", [_conversation(key, number)])
            turns = list(_turns(number, count))
            _insert(database, "turns", [_turn(key, place, turn) for place, turn in enumerate(turns)])
            pictures = [picture for turn in turns for picture in _pictures(turn)]
            _insert(database, "pictures", [_picture(key, picture) for picture in pictures])
    return [key for number, key in enumerate(ids) if not _is_deleted(number)]


def _ways() -> Sequence[Ways]:
    def opening(store: ConversationStore, ids: Sequence[str]) -> Callable[[], Awaitable[object]]:
        # More than are kept in memory, one after the other: each is read from the database.
        order = iter(random.Random(3).sample(ids, len(ids)) * 10)
        return lambda: store.get(next(order), "local")

    def listing(store: ConversationStore, ids: Sequence[str]) -> Callable[[], Awaitable[object]]:
        return lambda: store.list("local")

    def searching(query: str) -> Callable[[ConversationStore, Sequence[str]], Callable[[], Awaitable[object]]]:
        return lambda store, ids: lambda: store.search("local", query)

    return (
        Ways("the list", listing),
        Ways("opening one that is not in memory", opening),
        Ways("a search for a word of ten conversations", searching(_RARE)),
        Ways("a search for two letters of Chinese, in a third of all", searching("狐狸")),
        Ways("a search for a word of nearly all", searching("snow")),
        Ways("a search for the beginning of a word", searching("ligh")),
    )


async def _compared(way: Ways, stores: Sequence[ConversationStore], ids: Sequence[Sequence[str]], runs: int) -> Kept:
    once = [way.once(store, known) for store, known in zip(stores, ids, strict=True)]
    times: list[list[float]] = [[], []]
    for run in range(runs + 5):
        for place, work in enumerate(once):
            started_s = time.perf_counter()
            await work()
            if run >= 5:
                times[place].append(time.perf_counter() - started_s)
    return Kept(way.name, *times)


async def _opened(home: Path) -> ConversationStore:
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    return store


def _turns(number: int, count: int) -> Iterator[Turn]:
    chance, before = random.Random(number), None
    rare = set(random.Random(7).sample(range(count), 10))
    for place in range(_TURNS):
        wish = (
            f"{chance.choice(_THINGS)} {chance.choice(_WAYS)} {chance.choice(_WAYS)} number {chance.randrange(10_000)}"
        )
        said = f"{wish}, {_RARE}" if number in rare and place == 2 else wish
        name = f"{number:024x}{place:08x}"
        answer = f"Here it is: {wish}. Shall I change the light, the frame, or what stands behind it?"
        yield Turn(
            id=name,
            parent=before,
            text=f"Please draw {said}.",
            settings=TurnSettings(),
            started_at=_moment(number),
            state=TurnState.DONE,
            messages=(
                PromptMessage(role=Role.PROMPT, parts=(TextPart(text=f"Please draw {said}."),)),
                PromptMessage(role=Role.MODEL, parts=(TextPart(text=answer),)),
            ),
            components=(
                AgentMessage(text=answer),
                SmartCanvas(handles=tuple(f"#{place * _PICTURES + one + 1}" for one in range(_PICTURES))),
            ),
            usage=TokenUsage(prompt_tokens=900, output_tokens=80, image_tokens=1120),
            price_usd=0.04,
        )
        before = name


def _pictures(turn: Turn) -> Iterator[Picture]:
    place = int(turn.id[-8:], 16)
    for one in range(_PICTURES):
        handle = f"#{place * _PICTURES + one + 1}"
        digest = f"{turn.id}{one:032x}"
        image = ImagePart(
            digest=digest,
            md5=digest[:32],
            mime_type="image/png",
            size_bytes=1_000_000,
            origin=ImageOrigin.GENERATED,
            width=1376,
            height=768,
            handle=handle,
        )
        receipt = Receipt(
            prompt=f"{turn.text} Soft light from the left, fine lines, nothing written in the picture.",
            user_text=turn.text,
            model="m",
            model_label="M",
            asked_aspect_ratio="16:9",
            asked_resolution="1K",
            width=1376,
            height=768,
            mime_type="image/png",
            price_usd=0.04,
        )
        yield Picture(handle=handle, image=image, turn_id=turn.id, created_at=turn.started_at, receipt=receipt)


def _conversation(key: str, number: int) -> dict[str, Any]:
    moment = _moment(number)
    return {
        "id": key,
        "owner": "local",
        "title": f"Conversation {number}",
        "created_at": moment,
        "updated_at": moment,
        "head": f"{number:024x}{_TURNS - 1:08x}",
        "is_pinned": number % 997 == 3,
        "deleted_at": moment if _is_deleted(number) else None,
    }


def _is_deleted(number: int) -> bool:
    return number % 50 == 7


def _turn(key: str, place: int, turn: Turn) -> dict[str, Any]:
    own = {"conversation_id": key, "id": turn.id, "position": place, "parent": turn.parent, "runner": ""}
    return own | turn_row(turn, turn.messages, ())


def _picture(key: str, picture: Picture) -> dict[str, Any]:
    return {**picture_row(key, picture, None, ()), "owner": "local"}


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    names = list(rows[0])
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    database.executemany(statement, [[_stored(row[name]) for name in names] for row in rows])


def _stored(value: object) -> object:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value


def _moment(number: int) -> datetime:
    return _BEGINNING + timedelta(minutes=number)


def _told(values: Sequence[float]) -> str:
    high = statistics.quantiles(values, n=10)[-1]
    return f"{1000 * statistics.median(values):.2f} ms (p90 {1000 * high:.2f})"


if __name__ == "__main__":
    sys.stdout.write(section())
