"""How the gallery keeps its pace with many pictures: `python -m tests.bench.gallery` prints a table.

The same questions to the records of 1,000 and of 100,000 pictures, each question in turn. The records are written by
bulk SQL, a conversation for every fifty pictures, prompts of forty words of which a few are common and most are rare,
as words are. The full text is filled beforehand, as the first search would, and no file stands behind a picture. Every
question but that for one conversation fills a page from either.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.adapters.gallery import Gallery, moment_cursor, read_some
from tests.adapters.records import ConversationStore, GalleryQuery, ImageStore
from tests.bench.growing import Grown, as_markdown, asked_of_both, insert, picture_of
from tests.bench.measuring import machine

FEW, MANY = 1_000, 100_000
_IN_A_CONVERSATION = 50
_WORDS_IN_A_PROMPT = 40
_VOCABULARY = 20_000
_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_MODELS = ("Flash", "Flash", "Flash", "Pro")
_SIZES = ((1024, 1024), (1344, 768), (768, 1344))


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
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        for start in range(0, count, _IN_A_CONVERSATION):
            key, moment = f"c{start}", _moment(start)
            row = {"id": key, "owner": "local", "title": f"Talk {start}", "created_at": moment, "updated_at": moment}
            insert(database, "conversations", [row])
            numbers = range(start, start + _IN_A_CONVERSATION)
            insert(database, "pictures", [_row(key, number, prompts.next()) for number in numbers])


def _row(key: str, number: int, prompt: str) -> dict[str, object]:
    width, height = _SIZES[number % len(_SIZES)]
    told = {"prompt": prompt, "user_text": prompt[:60], "model_label": _MODELS[number % len(_MODELS)]}
    more = {"width": width, "height": height, "digest": f"{number:064x}"}
    row = picture_of(key, f"#{number:x}", "t", _moment(number), **told, **more)
    return {**row, "is_starred": number % 20 == 0}


def _moment(number: int) -> datetime:
    return _FIRST_DAY + timedelta(minutes=7 * number)


@asynccontextmanager
async def opened(home: Path, count: int) -> AsyncIterator[Gallery]:
    """Yield a gallery of so many pictures, all of them read for searches."""
    images = ImageStore(home)
    async with contextlib.aclosing(ConversationStore(home, images)) as store:
        await store.open()
        await asyncio.to_thread(seed, home, count)
        while await store.in_transaction(read_some):
            pass
        async with contextlib.aclosing(Gallery(home, store, images)) as gallery:
            yield gallery


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


async def measured(runs: int, few: int = FEW, many: int = MANY) -> list[Grown]:
    """Ask each question of both galleries, alternately."""
    with tempfile.TemporaryDirectory() as folder:
        homes = Path(folder) / "few", Path(folder) / "many"
        async with opened(homes[0], few) as small, opened(homes[1], many) as large:
            return [await _compared(name, small, large, few, many, runs) for name in _questions(few)]


async def _compared(name: str, small: Gallery, large: Gallery, few: int, many: int, runs: int) -> Grown:
    one, other = _questions(few)[name], _questions(many)[name]
    return await asked_of_both(name, lambda: small.page("local", one), lambda: large.page("local", other), runs)


def _table(results: Sequence[Grown], many: int = MANY) -> str:
    return as_markdown("page of 60", f"{FEW:,} pictures", f"{many:,} pictures", results)


def section(results: Sequence[Grown]) -> str:
    """Return the part of the benchmarks' page that is about the gallery."""
    return (
        "## The gallery\n\nHow long a page of the gallery takes with many pictures on record "
        "(`python -m tests.bench.gallery`): medians, with the tenth and the ninetieth percentile in brackets. Prompts "
        f"have {_WORDS_IN_A_PROMPT} words, as rare as words are; a search ranks every picture that holds any of its "
        f"words.\n\n{_table(results)}\n"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gallery")
    parser.add_argument("--runs", type=int, default=30, help="how often each question is asked")
    parser.add_argument("--many", type=int, default=MANY, help="how many pictures the large gallery has")
    given = parser.parse_args()
    print(f"{machine()}\n\n{_table(asyncio.run(measured(given.runs, FEW, given.many)), given.many)}")


if __name__ == "__main__":
    main()
