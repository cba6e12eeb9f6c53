"""Pictures leafed through and searched: by words, by meaning and by looks, brought together into one order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from agent.errors import ErrorCode, RequestRefused
from agent.library import GalleryFacets, GalleryFoundBy, GalleryItem, GalleryMatch, GalleryQuery
from agent.pictures import Picture
from agent.storage import gallery_rows, gallery_words
from agent.storage.database import record_failure
from agent.storage.gallery_index import VectorTables
from agent.storage.gallery_meaning import PictureMeaning
from agent.storage.gallery_similar import Alike, SimilarPictures
from agent.storage.gallery_tasks import Tasks
from agent.storage.gallery_words import Term
from agent.storage.images import ImageStore
from agent.storage.style_meaning import TextEmbedder

T = TypeVar("T")

_NAME = "aivista.db"
# A page need not wait until all pictures are counted.
_READERS = 2
# What lists are brought together by (Cormack, Clarke and Büttcher, SIGIR 2009): the place in each, and how little the
# first places differ.
_SMOOTHING = 60
_MOST_FOUND = 500


@dataclass(frozen=True)
class Ranking:
    """What a search found, the best first: ids, why, how alike; and whether every picture could be looked at."""

    ids: tuple[int, ...]
    found_by: Mapping[int, tuple[GalleryFoundBy, ...]] = field(default_factory=dict)
    likeness: Mapping[int, float] = field(default_factory=dict)
    is_whole: bool = True


class _Said(NamedTuple):
    """The ids of pictures that words belong to, and whether every picture's words are read."""

    ids: list[int]
    is_whole: bool


class GallerySearch:
    """What only reads of the gallery, on threads and connections of its own.

    `in_transaction` writes to the full text, a few pictures at a time.
    """

    def __init__(
        self,
        home: Path,
        in_transaction: Callable[[Callable[[Connection], int]], Coroutine[Any, Any, int]],
        images: ImageStore,
        patience_s: float,
    ) -> None:
        url = URL.create("sqlite", database=str(home / _NAME))
        self._engine = create_engine(url, hide_parameters=True, pool_size=_READERS, max_overflow=0)
        event.listen(self._engine, "connect", _read_only)
        self._in_transaction = in_transaction
        self._patience_s = patience_s
        self._thread = ThreadPoolExecutor(_READERS, thread_name_prefix="gallery")
        self._index_thread = ThreadPoolExecutor(1, thread_name_prefix="gallery-index")
        self._tables = VectorTables(home)
        self._tasks = Tasks()
        self._similar = SimilarPictures(self._tables, self._index_thread, images, self._reading, self._tasks)
        self._meaning = PictureMeaning(self._tables, self._index_thread, self._reading, self._tasks)

    async def aclose(self) -> None:
        """End what is under way and close the files."""
        await self._tasks.aclose()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._engine.dispose)
        await loop.run_in_executor(self._index_thread, self._tables.close)
        self._thread.shutdown()
        self._index_thread.shutdown()

    async def settled(self) -> None:
        """Return when everything is read that searches began to read."""
        await self._tasks.finish()

    # Leafing

    async def newest(self, owner: str, query: GalleryQuery) -> tuple[GalleryItem, ...]:
        """Return the pictures of a page, and one more where there is another page."""

        def read(connection: Connection) -> tuple[GalleryItem, ...]:
            return gallery_rows.items_of(connection, gallery_rows.newest(connection, owner, query))

        return await self._reading(read)

    async def items(self, owner: str, ids: Sequence[int]) -> tuple[GalleryItem, ...]:
        """Return the owner's pictures among these, in their order."""

        def read(connection: Connection) -> tuple[GalleryItem, ...]:
            return gallery_rows.items_of(connection, gallery_rows.rows_of(connection, owner, ids))

        return await self._reading(read)

    async def deleted(self, owner: str, conversation_id: str) -> tuple[Picture, ...]:
        """Return the deleted pictures of one of the owner's conversations."""
        return tuple(
            await self._reading(lambda connection: gallery_rows.deleted_of(connection, owner, conversation_id))
        )

    async def count(self, owner: str, query: GalleryQuery) -> int:
        """Return how many pictures pass the filters."""
        return await self._reading(lambda connection: gallery_rows.count(connection, owner, query))

    async def facets(self, owner: str) -> GalleryFacets:
        """Return what there is to choose from."""
        return await self._reading(lambda connection: gallery_rows.facets(connection, owner))

    # Searching

    async def ranked(self, owner: str, query: GalleryQuery, embedder: TextEmbedder | None) -> Ranking:
        """Return every picture that the search finds: those whose words match before the others, the best first."""
        # Side by side: a search waits once, whatever it waits for.
        said, meant, alike = await asyncio.gather(
            self._by_words(owner, query), self._by_meaning(owner, query, embedder), self._alike(owner, query.similar_to)
        )
        lists = [(GalleryFoundBy.WORDS, said.ids), (GalleryFoundBy.MEANING, meant)] if query.words.strip() else []
        likeness, is_whole = alike.found, said.is_whole and alike.is_whole
        if query.similar_to is not None:
            if query.words.strip():
                lists = [(found_by, [one for one in ids if one in likeness]) for found_by, ids in lists]
                likeness = {one: much for one, much in likeness.items() if any(one in ids for _, ids in lists)}
            lists.append((GalleryFoundBy.LOOKS, list(likeness)))
        in_words = set(said.ids)
        # What a model takes for alike or for the same is a guess; words that stand there are not.
        order = sorted(fused([ids for _, ids in lists]), key=lambda one: one not in in_words)
        # Nobody leafs further; with filters few of them may be left.
        order = order if query.has_filters else order[:_MOST_FOUND]
        allowed = await self._reading(lambda connection: gallery_rows.allowed(connection, owner, query, order))
        found_by: dict[int, tuple[GalleryFoundBy, ...]] = defaultdict(tuple)
        for why, ids in lists:
            for one in ids:
                found_by[one] = (*found_by[one], why)
        return Ranking(tuple(one for one in order if one in allowed), found_by, likeness, is_whole)

    async def _by_words(self, owner: str, query: GalleryQuery) -> _Said:
        if not query.words.strip():
            return _Said([], is_whole=True)
        is_whole = await self._read_words()
        terms, has_filters = gallery_words.terms_of(query.words), query.has_filters or query.similar_to is not None
        found = await self._reading(
            lambda connection: gallery_words.best_by_words(connection, owner, terms, has_filters=has_filters)
        )
        return _Said(found, is_whole)

    async def _by_meaning(self, owner: str, query: GalleryQuery, embedder: TextEmbedder | None) -> list[int]:
        if embedder is None or not query.words.strip():
            return []
        return await self._meaning.closest(owner, query.words, embedder, self._patience_s)

    async def _alike(self, owner: str, picture_id: int | None) -> Alike:
        if picture_id is None:
            return Alike({}, is_whole=True)
        rows = await self._reading(lambda connection: gallery_rows.rows_of(connection, owner, [picture_id]))
        if not rows:
            raise RequestRefused(ErrorCode.PICTURE_GONE)
        return await self._similar.like(owner, picture_id, rows[0].digest, self._patience_s)

    async def matched(self, owner: str, words: str, ranking: Ranking, start: int, end: int) -> tuple[GalleryItem, ...]:
        """Return the pictures from `start` to `end` of the ranking that are still there, with why they were found."""
        ids = ranking.ids[start:end]
        terms = gallery_words.terms_of(words) if words.strip() else ()

        def read(connection: Connection) -> tuple[GalleryItem, ...]:
            rows = gallery_rows.rows_of(connection, owner, ids)
            items = gallery_rows.items_of(connection, rows)
            return tuple(
                item.model_copy(update={"match": _match(item, row.said, terms, ranking)})
                for item, row in zip(items, rows, strict=True)
            )

        return await self._reading(read)

    async def _read_words(self) -> bool:
        """Bring the full text up to date; return whether that was done in time. It goes on anyhow."""
        if not await self._reading(gallery_rows.has_unread):
            return True
        return await self._tasks.begin("words", self._read_all_words, self._patience_s)

    async def _read_all_words(self) -> None:
        is_more = True
        while is_more:
            await self._tasks.turn()
            # Between two of these the turns have their writes on the same thread.
            is_more = await self._in_transaction(gallery_words.read_some) > 0

    async def _reading(self, work: Callable[[Connection], T]) -> T:
        with self._tasks.standing_back():
            # Cancelling the caller must not take its work from the queue.
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._read_now, work))

    def _read_now(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._engine.connect() as connection:
                return work(connection)
        except DBAPIError as error:
            raise record_failure(error) from error


def fused(lists: Sequence[Sequence[int]]) -> list[int]:
    """Return what any of the lists holds, the best first: reciprocal rank fusion; of equals the newer is first."""
    scores: dict[int, float] = defaultdict(float)
    for ids in lists:
        for rank, one in enumerate(ids, start=1):
            scores[one] += 1 / (_SMOOTHING + rank)
    return sorted(scores, key=lambda one: (scores[one], one), reverse=True)


def _match(item: GalleryItem, said: str | None, terms: Sequence[Term], ranking: Ranking) -> GalleryMatch:
    texts = gallery_words.texts_of(item.picture, item.conversation_title, item.tags, item.model, said)
    place, found = gallery_words.place_of(texts, terms) or (None, None)
    return GalleryMatch(
        found_by=ranking.found_by.get(item.id, ()),
        place=place,
        excerpt=found.text if found else "",
        marks=found.marks if found else (),
        similarity=ranking.likeness.get(item.id),
    )


def _read_only(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("busy_timeout=5000", "query_only=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
