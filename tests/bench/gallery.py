"""How the gallery keeps its pace with many pictures: `python -m tests.bench.gallery` prints a table.

The same questions to the records of 1,000 and of 100,000 pictures, each question in turn. The records are written by
bulk SQL, a conversation for every fifty pictures, prompts of forty words of which a few are common and most are rare,
as words are. The full text is filled beforehand, as the first search would, and no file stands behind a picture. Every
question but that for one conversation fills a page from either.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.messages import ImageOrigin, ImagePart
from agent.pictures import Picture, Receipt
from agent.storage.conversations import ConversationStore
from agent.storage.gallery import Gallery
from agent.storage.gallery_values import GalleryQuery, moment_cursor
from agent.storage.gallery_words import read_some
from agent.storage.images import ImageStore
from agent.storage.rows import picture_row
from tests.bench.measuring import machine, spread

FEW, MANY = 1_000, 100_000
TARGET = 3.0
_IN_A_CONVERSATION = 50
_WORDS_IN_A_PROMPT = 40
_VOCABULARY = 20_000
_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_MODELS = ("Flash", "Flash", "Flash", "Pro")
_SIZES = ((1024, 1024), (1344, 768), (768, 1344))


@dataclass(frozen=True)
class Measured:
    """A question and how long it took with few and with many pictures, in seconds."""

    name: str
    few: tuple[float, ...]
    many: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How much longer it takes with many, by the medians."""
        return statistics.median(self.many) / statistics.median(self.few)


class Prompts:
    """Prompts whose words are as rare as words are: the second half as common as the first, and so on (Zipf)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = [f"word{number}" for number in range(_VOCABULARY)]
        self._weights = [1 / (number + 10) for number in range(_VOCABULARY)]

    def next(self) -> str:
        """Return another one."""
        return " ".join(self._random.choices(self._words, self._weights, k=_WORDS_IN_A_PROMPT))


def seed(home: Path, count: int) -> None:
    """Put the records of so many pictures into an existing database."""
    prompts = Prompts(count)
    with sqlite3.connect(home / "aivista.db") as database:
        for start in range(0, count, _IN_A_CONVERSATION):
            key, moment = f"c{start}", _stored(_moment(start))
            database.execute(
                "INSERT INTO conversations (id, owner, title, created_at, updated_at) VALUES (?, 'local', ?, ?, ?)",
                (key, f"Talk {start}", moment, moment),
            )
            rows = [_row(key, number, prompts.next()) for number in range(start, start + _IN_A_CONVERSATION)]
            names = ", ".join(rows[0])
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(
                f"INSERT INTO pictures ({names}) VALUES ({marks})", [tuple(row.values()) for row in rows]
            )
    database.close()


def _row(key: str, number: int, prompt: str) -> dict[str, object]:
    width, height = _SIZES[number % len(_SIZES)]
    image = ImagePart(
        digest=f"{number:064x}",
        md5=f"{number:032x}",
        mime_type="image/png",
        size_bytes=1,
        origin=ImageOrigin.GENERATED,
        width=width,
        height=height,
    )
    receipt = Receipt(
        prompt=prompt,
        user_text=prompt[:60],
        model="m",
        model_label=_MODELS[number % len(_MODELS)],
        asked_aspect_ratio=None,
        asked_resolution=None,
        width=width,
        height=height,
        mime_type="image/png",
    )
    picture = Picture(handle=f"#{number:x}", image=image, turn_id="t", created_at=_moment(number), receipt=receipt)
    row = picture_row(key, picture, None, ())
    row |= {"owner": "local", "created_at": _stored(picture.created_at), "is_starred": number % 20 == 0}
    return row


def _moment(number: int) -> datetime:
    return _FIRST_DAY + timedelta(minutes=7 * number)


def _stored(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")


@asynccontextmanager
async def opened(home: Path, count: int) -> AsyncIterator[Gallery]:
    """Yield a gallery of so many pictures, all of them read for searches."""
    images = ImageStore(home)
    store = ConversationStore(home, images)
    await store.open()
    await asyncio.to_thread(seed, home, count)
    while await store.in_transaction(read_some):
        pass
    gallery = Gallery(home, store, images)
    try:
        yield gallery
    finally:
        await gallery.aclose()
        await store.aclose()


def _questions(count: int) -> dict[str, GalleryQuery]:
    deep = moment_cursor(_moment(count // 10), count)
    return {
        "first page": GalleryQuery(),
        "a page nine tenths down": GalleryQuery(after=deep),
        "one model, one shape": GalleryQuery(model="Pro", shape="16:9"),
        "starred, of a year": GalleryQuery(is_starred=True, day_from=_FIRST_DAY.date()),
        "one conversation": GalleryQuery(conversation_id=f"c{count // 2 // _IN_A_CONVERSATION * _IN_A_CONVERSATION}"),
        "three words": GalleryQuery(words="word30 word120 word250"),
        "a sentence": GalleryQuery(words="the word50 with a word300 and a word900"),
    }


async def measured(runs: int, few: int = FEW, many: int = MANY) -> list[Measured]:
    """Ask each question of both galleries, alternately."""
    with tempfile.TemporaryDirectory() as folder:
        homes = Path(folder) / "few", Path(folder) / "many"
        async with opened(homes[0], few) as small, opened(homes[1], many) as large:
            asked, also = _questions(few), _questions(many)
            return [await _compared(name, small, large, asked[name], also[name], runs) for name in asked]


async def _compared(
    name: str, small: Gallery, large: Gallery, one: GalleryQuery, other: GalleryQuery, runs: int
) -> Measured:
    few, many = [], []
    for number in range(runs + 3):
        first, second = await _timed(lambda: small.page("local", one)), await _timed(lambda: large.page("local", other))
        if number >= 3:
            few.append(first)
            many.append(second)
    return Measured(name, tuple(few), tuple(many))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    started_s = time.perf_counter()
    await work()
    return time.perf_counter() - started_s


def as_markdown(results: Sequence[Measured], few: int = FEW, many: int = MANY) -> str:
    """Return a row for each question."""
    head = f"| page of 60 | {few:,} pictures | {many:,} pictures | ratio | target |"
    rows = [head, "| --- | --- | --- | --- | --- |"]
    for one in results:
        times = f"{spread(one.few, 1000, ' ms')} | {spread(one.many, 1000, ' ms')}"
        rows.append(f"| {one.name} | {times} | {one.ratio:.2f}x | ≤ {TARGET:.0f}x |")
    return "\n".join(rows)


def section(results: Sequence[Measured]) -> str:
    """Return the part of the benchmarks' page that is about the gallery."""
    return (
        "## The gallery\n\nHow long a page of the gallery takes with many pictures on record "
        "(`python -m tests.bench.gallery`): medians, with the tenth and the ninetieth percentile in brackets. Prompts "
        f"have {_WORDS_IN_A_PROMPT} words, as rare as words are; a search ranks every picture that holds any of its "
        f"words.\n\n{as_markdown(results)}\n"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gallery")
    parser.add_argument("--runs", type=int, default=30, help="how often each question is asked")
    parser.add_argument("--many", type=int, default=MANY, help="how many pictures the large gallery has")
    given = parser.parse_args()
    results = asyncio.run(measured(given.runs, FEW, given.many))
    print(f"{machine()}\n\n{as_markdown(results, FEW, given.many)}")


if __name__ == "__main__":
    main()
