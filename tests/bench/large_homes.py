"""A home with much on record beside a small one: the list, opening and searching conversations, and the gallery.

A conversation has five turns and ten pictures, and the prompts of pictures have forty words, of which a few are common
and most are rare, as words are. All are written as rows at once, and no file stands behind a picture. What a first
search puts into the full texts has been put there before: a home pays that once, and then only for what is new.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sqlite3
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent import (
    AgentMessage,
    ImageOrigin,
    ImagePart,
    Picture,
    PromptMessage,
    Receipt,
    Role,
    SmartCanvas,
    TextPart,
    Turn,
    TurnSettings,
    TurnState,
)
from tests.adapters.records import (
    Gallery,
    GalleryQuery,
    ImageStore,
    Records,
    moment_cursor,
    picture_row,
    read_some,
    turn_row,
)
from tests.bench.measuring import command, in_turn, spread, table, timed

FEW, MANY = 100, 10_000
_TURNS, _PICTURES = 5, 2
_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_THINGS = (*("fox", "heron", "lantern", "harbour", "violin", "meadow", "teapot"), "狐狸", "灯塔", "lighthouse", "茶壶")
_WAYS = ("in the snow", "at dawn, seen from above", "as a woodcut", "水彩风格", "夜晚的街道", "on black paper")
# Said in ten conversations of either home.
_RARE = "bergamot"
_SEARCHES = {
    "conversations: a search for a word of ten": _RARE,
    "conversations: a search for two letters of Chinese, in a third of all": "狐狸",
    "conversations: a search for a word of nearly all": "snow",
    "conversations: a search for the beginning of a word": "ligh",
}
_WORDS = [f"word{number}" for number in range(20_000)]
# As rare as words are (Zipf).
_COMMON = list(itertools.accumulate(1 / (number + 10) for number in range(len(_WORDS))))
Ask = Callable[[], Awaitable[object]]


async def measured(runs: int, few: int = FEW, many: int = MANY) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of each question in the small and the large home, asked in turn."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        small, large = [await _opened(stack, folder / str(count), count) for count in (few, many)]
        return {
            name: await in_turn(lambda one=one: timed(one), lambda name=name: timed(large[name]), runs, warm_up=5)
            for name, one in small.items()
        }


async def _opened(stack: contextlib.AsyncExitStack, home: Path, count: int) -> dict[str, Ask]:
    """Return the questions to a home with so many conversations."""
    images = ImageStore(home)
    store = await stack.enter_async_context(contextlib.aclosing(Records(home, images)))
    await store.open()
    ids = await asyncio.to_thread(_seed, home, count)
    while await store.db.write(read_some):
        pass
    await store.conversations.search("local", _RARE)
    gallery = await stack.enter_async_context(contextlib.aclosing(Gallery(home, store.db, images)))
    # More than are kept in memory, one after the other: each is read from the database.
    order = itertools.cycle(random.Random(3).sample(ids, len(ids)))
    pages = {
        "first page": GalleryQuery(),
        "a page nine tenths down": GalleryQuery(after=moment_cursor(_moment(count // 10), count)),
        "one model, one shape": GalleryQuery(model="Pro", shape="16:9"),
        "starred, of a year": GalleryQuery(is_starred=True, day_from=_FIRST_DAY.date()),
        "one conversation": GalleryQuery(conversation_id=ids[len(ids) // 2]),
        "three words": GalleryQuery(words="word30 word120 word250"),
        "a sentence": GalleryQuery(words="the word50 with a word300 and a word900"),
    }
    return {
        "conversations: the list": lambda: store.conversations.list("local"),
        "conversations: opening one that is not in memory": lambda: store.conversations.get(next(order), "local"),
        **{name: lambda words=words: store.conversations.search("local", words) for name, words in _SEARCHES.items()},
        **{f"gallery: {name}": lambda query=query: gallery.page("local", query) for name, query in pages.items()},
    }


def _seed(home: Path, count: int) -> Sequence[str]:
    """Write conversations into an open home's database; return the ids of those not deleted."""
    chance, kept = random.Random(count), []
    rare = set(chance.sample(range(count), 10))
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        for number in range(count):
            key, moment, is_deleted = f"{number:032x}", _moment(number), number % 50 == 7
            row = {"id": key, "owner": "local", "title": f"Conversation {number}", "is_pinned": number % 997 == 3}
            times = {"created_at": moment, "updated_at": moment, "deleted_at": moment if is_deleted else None}
            _insert(database, "conversations", {**row, **times, "head": f"{number:024x}{_TURNS - 1:08x}"})
            for place in range(_TURNS):
                turn = _turn(number, place, chance, f", {_RARE}" if number in rare and place == 2 else "")
                own = {"conversation_id": key, "id": turn.id, "position": place, "parent": turn.parent, "runner": ""}
                _insert(database, "turns", own | turn_row(turn))
                for one in range(_PICTURES):
                    picture = _picture(turn, place * _PICTURES + one, chance)
                    own = {"owner": "local", "is_starred": chance.random() < 0.1}
                    _insert(database, "pictures", picture_row(key, picture) | own)
            if not is_deleted:
                kept.append(key)
    return kept


def _insert(database: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    stored = [f"{one:%Y-%m-%d %H:%M:%S.%f}" if isinstance(one, datetime) else one for one in row.values()]
    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", stored)


def _moment(number: int) -> datetime:
    return _FIRST_DAY + timedelta(minutes=70 * number)


def _turn(number: int, place: int, chance: random.Random, more: str) -> Turn:
    ways = f"{chance.choice(_WAYS)} {chance.choice(_WAYS)}"
    wish = f"{chance.choice(_THINGS)} {ways} number {chance.randrange(10_000)}"
    said = f"Please draw {wish}{more}."
    answer = f"Here it is: {wish}. Shall I change the light, the frame, or what stands behind it?"
    asked = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=said),))
    handles = tuple(f"#{place * _PICTURES + one + 1}" for one in range(_PICTURES))
    return Turn(
        id=f"{number:024x}{place:08x}",
        parent=f"{number:024x}{place - 1:08x}" if place else None,
        text=said,
        settings=TurnSettings(),
        started_at=_moment(number),
        state=TurnState.DONE,
        messages=(asked, PromptMessage(role=Role.MODEL, parts=(TextPart(text=answer),))),
        components=(AgentMessage(text=answer), SmartCanvas(handles=handles)),
    )


def _picture(turn: Turn, place: int, chance: random.Random) -> Picture:
    handle, digest = f"#{place + 1}", f"{turn.id}{place:032x}"
    width, height = chance.choice(((1024, 1024), (1344, 768), (768, 1344)))
    size: dict[str, Any] = {"width": width, "height": height, "mime_type": "image/png"}
    receipt = Receipt(
        prompt=" ".join(chance.choices(_WORDS, cum_weights=_COMMON, k=40)),
        user_text=turn.text,
        model="m",
        model_label=chance.choice(("Flash", "Flash", "Flash", "Pro")),
        asked_aspect_ratio=None,
        asked_resolution=None,
        **size,
    )
    file: dict[str, Any] = {"digest": digest, "md5": digest[:32], "size_bytes": 1, "origin": ImageOrigin.GENERATED}
    image = ImagePart(handle=handle, **file, **size)
    return Picture(handle=handle, image=image, turn_id=turn.id, created_at=turn.started_at, receipt=receipt)


def _report(runs: int) -> str:
    rows = []
    for name, pairs in asyncio.run(measured(runs)).items():
        small, large = zip(*pairs, strict=True)
        ratio = statistics.median(large) / statistics.median(small)
        rows.append((name, spread(small, 1000, " ms"), spread(large, 1000, " ms"), f"{ratio:.2f}x", "≤ 3x"))
    return table(f"what | {FEW} conversations | {MANY:,} conversations | ratio | target", rows)


if __name__ == "__main__":
    command("Much on record", _report, runs=30)
