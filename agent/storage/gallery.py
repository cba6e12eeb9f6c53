"""The gallery: list, change, export and search all pictures of an owner, by words, by meaning and by looks."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
import zipfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cachetools import LRUCache, TTLCache
from sqlalchemy import Connection

from agent.cancellation import on_thread
from agent.errors import ErrorCode, RequestRefused
from agent.library import (
    KEPT_FOR,
    GalleryFacets,
    GalleryFoundBy,
    GalleryItem,
    GalleryMatch,
    GalleryPage,
    GalleryQuery,
    ZippedPictures,
    moment_cursor,
    plain_tag,
    rank_cursor,
    rank_of,
)
from agent.pictures import Picture
from agent.storage import gallery_rows, gallery_words
from agent.storage.database import Database
from agent.storage.embedding import TextEmbedder
from agent.storage.gallery_vectors import Alike, PictureMeaning, PictureVectors, SimilarPictures, Tasks
from agent.storage.gallery_words import Term
from agent.storage.images import ImageStore
from agent.storage.private_files import new_private_file, storage_failure

if TYPE_CHECKING:
    from pydantic import SecretStr

T = TypeVar("T")

TEMPORARY = "temporary"
# Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) merges the result lists; the larger this constant,
# the less the first places differ.
_SMOOTHING = 60
_MOST_FOUND = 500
_FACETS_LIVE_S = 5.0
_RANKINGS_LIVE_S = 60.0
_MOST_KEPT = 64
_PRIVATE_FILE = 0o100600 << 16
# The earliest time that ZIP can store.
_EARLIEST = (1980, 1, 1, 0, 0, 0)


class Ranking(NamedTuple):
    """A search result, the best first: picture ids, why and how similar; and whether every picture was searched."""

    ids: tuple[int, ...]
    found_by: Mapping[int, tuple[GalleryFoundBy, ...]]
    likeness: Mapping[int, float]
    is_whole: bool


class Gallery:
    """The pictures of every owner in `home`; nobody sees or changes those of another owner.

    Soft-deleted pictures and conversations are invisible. An id that is no picture of the owner's is ignored. Every
    call raises StorageFailure when the database cannot be read or written. `clock` returns seconds; a search does not
    wait for work that takes longer than `patience_s`. `embedder_of` returns the embedding model that an owner's
    searches may use with a key, or None.
    """

    def __init__(
        self,
        home: Path,
        database: Database,
        images: ImageStore,
        *,
        patience_s: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        embedder_of: Callable[[str, SecretStr | None], Awaitable[TextEmbedder | None]] | None = None,
    ) -> None:
        self._home = home
        self._db = database
        self._images = images
        self._patience_s = patience_s
        self._clock = clock
        self._embedder_of = embedder_of
        self._facets: LRUCache[str, tuple[float, GalleryFacets]] = LRUCache(_MOST_KEPT)
        self._rankings: TTLCache[tuple[str, GalleryQuery], Ranking] = TTLCache(_MOST_KEPT, _RANKINGS_LIVE_S, clock)
        self._zipping = ThreadPoolExecutor(1, thread_name_prefix="gallery-zip")
        self._tasks = Tasks(database)
        self._read = self._tasks.read
        vectors = PictureVectors(database, self._tasks)
        self._similar = SimilarPictures(vectors, images, self._tasks)
        self._meaning = PictureMeaning(vectors, self._tasks)

    async def aclose(self) -> None:
        """Cancel the background reading for searches, and finish pending exports."""
        await self._tasks.aclose()
        await asyncio.to_thread(self._zipping.shutdown)

    async def settled(self) -> None:
        """Return when all background reading that searches started is finished."""
        await self._tasks.finish()

    # Looking

    async def page(
        self, owner: str, query: GalleryQuery, *, key: SecretStr | None = None, embedder: TextEmbedder | None = None
    ) -> GalleryPage:
        """Return a page of the pictures: the newest first, or the best of a search.

        With an embedder, or a key whose provider has one, words also find pictures with the same meaning. The cost is
        added to the owner's spend of the day; this is skipped when the day's cap is used up. Raises
        RequestRefused(PICTURE_GONE) when the picture of `similar_to` is none of the owner's, StorageFailure when
        nothing can tell what looks alike.
        """
        if embedder is None and self._embedder_of is not None and query.words.strip():
            embedder = await self._embedder_of(owner, key)
        if query.is_search:
            return await self._found(owner, query, embedder)
        items = await self._read(lambda on: gallery_rows.items_of(on, gallery_rows.newest(on, owner, query)))
        page = items[: query.limit]
        last = page[-1] if len(items) > len(page) else None
        return GalleryPage(items=page, next=moment_cursor(last.picture.created_at, last.id) if last else None)

    async def _found(self, owner: str, query: GalleryQuery, embedder: TextEmbedder | None) -> GalleryPage:
        start, key = rank_of(query.after), (owner, query.model_copy(update={"after": None, "limit": 1}))
        ranking = self._rankings.get(key) if start else None
        if ranking is None:
            # Cached, so that the next page continues this one, whatever is made meanwhile.
            ranking = self._rankings[key] = await self._ranked(owner, query, embedder)
        end = start + query.limit
        return GalleryPage(
            items=await self._matched(owner, query.words, ranking, start, end),
            next=rank_cursor(end) if end < len(ranking.ids) else None,
            found=len(ranking.ids),
            is_whole=ranking.is_whole,
        )

    async def items(self, owner: str, ids: Sequence[int]) -> tuple[GalleryItem, ...]:
        """Return the pictures that are the owner's, in the order of the ids."""
        return await self._read(lambda on: gallery_rows.items_of(on, gallery_rows.rows_of(on, owner, ids)))

    async def deleted(self, owner: str, conversation_id: str) -> tuple[Picture, ...]:
        """Return the pictures that were deleted from one of the owner's conversations; their records still exist."""
        return tuple(await self._read(lambda on: gallery_rows.deleted_of(on, owner, conversation_id)))

    async def count(self, owner: str, query: GalleryQuery) -> int:
        """Return how many pictures pass the query's filters; its words and similarity are ignored."""
        return await self._read(lambda on: gallery_rows.count(on, owner, query))

    async def facets(self, owner: str) -> GalleryFacets:
        """Return the filter values with their counts. They may be a few seconds old."""
        kept = self._facets.get(owner)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        began_s = self._clock()
        found = await self._read(lambda on: gallery_rows.facets(on, owner))
        now_s = self._clock()
        # Counting a hundred thousand pictures takes a good part of a second: spend at most a twentieth of the time on
        # it.
        self._facets[owner] = now_s + max(_FACETS_LIVE_S, 20 * (now_s - began_s)), found
        return found

    # Searching

    async def _ranked(self, owner: str, query: GalleryQuery, embedder: TextEmbedder | None) -> Ranking:
        """Return every picture that the search finds: matches by words before the others, the best first."""
        # Run concurrently: the search waits only for the slowest.
        (by_words, are_read), meant, alike = await asyncio.gather(
            self._by_words(owner, query), self._by_meaning(owner, query, embedder), self._alike(owner, query.similar_to)
        )
        lists = [(GalleryFoundBy.WORDS, by_words), (GalleryFoundBy.MEANING, meant)]
        likeness, is_whole = alike.found, are_read and alike.is_whole
        if query.similar_to is not None:
            if query.words.strip():
                lists = [(found_by, [one for one in ids if one in likeness]) for found_by, ids in lists]
                likeness = {one: much for one, much in likeness.items() if any(one in ids for _, ids in lists)}
            lists.append((GalleryFoundBy.LOOKS, list(likeness)))
        in_words = set(by_words)
        # What a model takes for similar is a guess; a match by words is not.
        order = sorted(fused([ids for _, ids in lists]), key=lambda one: one not in in_words)
        # Nobody pages further; with filters, few of them may be left.
        order = order if query.has_filters else order[:_MOST_FOUND]
        allowed = await self._read(lambda connection: gallery_rows.allowed(connection, owner, query, order))
        found_by: dict[int, tuple[GalleryFoundBy, ...]] = defaultdict(tuple)
        for why, ids in lists:
            for one in ids:
                found_by[one] = (*found_by[one], why)
        return Ranking(tuple(one for one in order if one in allowed), found_by, likeness, is_whole)

    async def _by_words(self, owner: str, query: GalleryQuery) -> tuple[list[int], bool]:
        """Return the ids of pictures that match by words, and whether every picture's words are indexed."""
        if not query.words.strip():
            return [], True
        is_whole = True
        if await self._read(gallery_rows.has_unread):
            # Indexing goes on in the background when it does not finish in time.
            is_whole = await self._tasks.begin("words", self._read_all_words, self._patience_s)
        terms, has_filters = gallery_words.terms_of(query.words), query.has_filters or query.similar_to is not None
        found = await self._read(
            lambda connection: gallery_words.best_by_words(connection, owner, terms, has_filters=has_filters)
        )
        return found, is_whole

    async def _by_meaning(self, owner: str, query: GalleryQuery, embedder: TextEmbedder | None) -> list[int]:
        if embedder is None or not query.words.strip():
            return []
        return await self._meaning.closest(owner, query.words, embedder, self._patience_s)

    async def _alike(self, owner: str, picture_id: int | None) -> Alike:
        if picture_id is None:
            return Alike({}, is_whole=True)
        rows = await self._read(lambda connection: gallery_rows.rows_of(connection, owner, [picture_id]))
        if not rows:
            raise RequestRefused(ErrorCode.PICTURE_GONE)
        return await self._similar.like(owner, picture_id, rows[0].digest, self._patience_s)

    async def _matched(self, owner: str, words: str, ranking: Ranking, start: int, end: int) -> tuple[GalleryItem, ...]:
        """Return the pictures from `start` to `end` of the ranking that still exist, with why they were found."""
        ids = ranking.ids[start:end]
        terms = gallery_words.terms_of(words)

        def read(connection: Connection) -> tuple[GalleryItem, ...]:
            rows = gallery_rows.rows_of(connection, owner, ids)
            items = gallery_rows.items_of(connection, rows)
            return tuple(
                item.model_copy(update={"match": _match(item, row.said, terms, ranking)})
                for item, row in zip(items, rows, strict=True)
            )

        return await self._read(read)

    async def _read_all_words(self) -> None:
        is_more = True
        while is_more:
            await self._tasks.turn()
            # Between two batches, turns get their writes on the same thread.
            is_more = await self._db.write(gallery_words.read_some, is_spare=True) > 0

    # Changing

    async def star(self, owner: str, ids: Sequence[int], is_starred: bool) -> tuple[int, ...]:
        """Star the pictures, or remove the star. Return the ids of those that are the owner's."""
        return await self._change(owner, lambda on: gallery_rows.star(on, owner, ids, is_starred))

    async def tag(self, owner: str, ids: Sequence[int], tag: str) -> tuple[int, ...]:
        """Add a tag of at most 64 characters to the pictures; tags that differ only in case are the same.

        Return the ids of those that are the owner's; none for an empty tag.
        """
        name = plain_tag(tag)
        return await self._change(owner, lambda on: gallery_rows.tag(on, owner, ids, name) if name else ())

    async def untag(self, owner: str, ids: Sequence[int], tag: str) -> tuple[int, ...]:
        """Remove a tag from the pictures. Return the ids of those that are the owner's."""
        name = plain_tag(tag)
        return await self._change(owner, lambda on: gallery_rows.untag(on, owner, ids, name))

    async def delete(self, owner: str, ids: Sequence[int]) -> tuple[int, ...]:
        """Soft-delete the pictures; their records stay, so that what was said about them remains true.

        The next `Housekeeping.sweep` after 30 days removes their files. Return the ids of the pictures deleted now.
        """
        now = datetime.now(UTC)
        return await self._change(owner, lambda on: gallery_rows.delete_pictures(on, owner, ids, now))

    async def undelete(self, owner: str, ids: Sequence[int]) -> tuple[int, ...]:
        """Restore pictures that were deleted within 30 days. Return the ids of the restored ones."""
        since = datetime.now(UTC) - KEPT_FOR
        return await self._change(owner, lambda on: gallery_rows.bring_back(on, owner, ids, since))

    async def _change(self, owner: str, work: Callable[[Connection], T]) -> T:
        changed = await self._db.write(work, is_spare=True)
        self._facets.pop(owner, None)
        return changed

    # Exporting

    async def zip_of(
        self,
        owner: str,
        ids: Sequence[int],
        *,
        name_of: Callable[[Picture], str],
        bytes_of: Callable[[GalleryItem], Coroutine[Any, Any, bytes]] | None = None,
    ) -> ZippedPictures:
        """Return a private ZIP file with those of the pictures that are the owner's; the caller must remove it.

        `name_of` gives each picture's file name, `bytes_of` its exported bytes; without it, the bytes on disk are used.
        A picture whose file is gone, or for which `bytes_of` raises RequestRefused, is left out. Raises RequestRefused
        when none is left, StorageFailure when the disk is full.
        """
        items, loop = await self.items(owner, ids), asyncio.get_running_loop()
        taken = bytes_of or (lambda item: self._images.read(item.picture.image))

        def read(item: GalleryItem) -> bytes:
            return asyncio.run_coroutine_threadsafe(taken(item), loop).result()

        return await on_thread(self._zipping, lambda: _zip_pictures(self._home, items, read, name_of))


def fused(lists: Sequence[Sequence[int]]) -> list[int]:
    """Merge the lists by reciprocal rank fusion, the best first; among equals, the newer is first."""
    scores: dict[int, float] = defaultdict(float)
    for ids in lists:
        for rank, one in enumerate(ids, start=1):
            scores[one] += 1 / (_SMOOTHING + rank)
    return sorted(scores, key=lambda one: (scores[one], one), reverse=True)


def _match(item: GalleryItem, message: str | None, terms: Sequence[Term], ranking: Ranking) -> GalleryMatch:
    texts = gallery_words.texts_of(item.picture, item.conversation_title, item.tags, item.model, message)
    place, found = gallery_words.place_of(texts, terms) or (None, None)
    return GalleryMatch(
        found_by=ranking.found_by.get(item.id, ()),
        place=place,
        excerpt=found.text if found else "",
        marks=found.marks if found else (),
        similarity=ranking.likeness.get(item.id),
    )


def _zip_pictures(
    home: Path, items: Iterable[GalleryItem], read: Callable[[GalleryItem], bytes], name_of: Callable[[Picture], str]
) -> ZippedPictures:
    """Return a new file in `<home>/temporary` with the pictures, uncompressed; duplicate names are numbered.

    `read` raises RequestRefused for a picture that cannot be exported: it is left out. Raises RequestRefused when none
    is left, StorageFailure when the disk fails; then no file is left behind.
    """
    path = home / TEMPORARY / f"{secrets.token_hex(16)}.zip"
    names: set[str] = set()
    left_out: list[str] = []
    try:
        with new_private_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for item in items:
                picture = item.picture
                try:
                    data = read(item)
                except RequestRefused:
                    left_out.append(picture.handle)
                    continue
                moment = max(picture.created_at.timetuple()[:6], _EARLIEST)
                entry = zipfile.ZipInfo(_free_name(name_of(picture), names), moment)
                entry.external_attr = _PRIVATE_FILE
                archive.writestr(entry, data)
        if not names:
            if left_out:
                raise RequestRefused(ErrorCode.PICTURE_FILE_MISSING, handle=", ".join(left_out))
            raise RequestRefused(ErrorCode.PICTURE_GONE)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_failure(error) from error
        raise
    return ZippedPictures(path=str(path), count=len(names), left_out=tuple(left_out))


def _free_name(wanted: str, names: set[str]) -> str:
    """Return the name, numbered when it is taken; some systems ignore case, so the comparison does too."""
    plain = PurePosixPath(re.sub(r"[\\/\x00-\x1f:]", "-", wanted).lstrip(".") or "picture")
    name, number = plain.name, 1
    while name.casefold() in names:
        number += 1
        name = f"{plain.stem}-{number}{plain.suffix}"
    names.add(name.casefold())
    return name
