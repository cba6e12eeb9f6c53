"""The gallery: all pictures of an owner's conversations, leafed through, searched, changed, and taken away."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent.library import (
    KEPT_FOR,
    GalleryFacets,
    GalleryItem,
    GalleryPage,
    GalleryQuery,
    ZippedPictures,
    moment_cursor,
    plain_tag,
    rank_cursor,
    rank_of,
)
from agent.pictures import Picture
from agent.storage.images import ImageStore

if TYPE_CHECKING:
    from pydantic import SecretStr
    from sqlalchemy import Connection

    from agent.storage.conversations import ConversationStore
    from agent.storage.gallery_search import GallerySearch, Ranking
    from agent.storage.style_meaning import TextEmbedder

T = TypeVar("T")

_FACETS_LIVE_S = 5.0
_RANKINGS_LIVE_S = 60.0
_MOST_KEPT = 64


class _Kept(NamedTuple):
    until_s: float
    ranking: Ranking


class Gallery:
    """The pictures of every owner below `home`; nobody is shown, or changes, those of another.

    Pictures and conversations that are deleted are not there. An id that is no picture of the owner's is passed over.
    Whatever writes goes through the records; what only reads has connections and threads of its own, so that no turn
    waits for it. Every call raises StorageFailure when the database cannot be read or written. `clock` tells seconds;
    a search goes on without what takes longer than `patience_s`. `embedder_of` is the model that an owner's searches
    may ask with a key, None where there is none.
    """

    def __init__(
        self,
        home: Path,
        records: ConversationStore,
        images: ImageStore,
        *,
        patience_s: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        embedder_of: Callable[[str, SecretStr | None], Awaitable[TextEmbedder | None]] | None = None,
    ) -> None:
        self._home = home
        self._records = records
        self._images = images
        self._patience_s = patience_s
        self._clock = clock
        self._embedder_of = embedder_of
        self._facets: OrderedDict[str, tuple[float, GalleryFacets]] = OrderedDict()
        self._rankings: OrderedDict[tuple[str, GalleryQuery], _Kept] = OrderedDict()
        self._opened: GallerySearch | None = None
        self._zipping = ThreadPoolExecutor(1, thread_name_prefix="gallery-zip")

    @property
    def _search(self) -> GallerySearch:
        if self._opened is None:
            # SQLAlchemy takes 0.2 s to import, which the first page need not wait for.
            from agent.storage.gallery_search import GallerySearch

            self._opened = GallerySearch(self._home, self._records.db.write, self._images, self._patience_s)
        return self._opened

    async def aclose(self) -> None:
        """End what is being read for searches and close the files."""
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None
        await asyncio.to_thread(self._zipping.shutdown)

    async def settled(self) -> None:
        """Return when everything is read that searches began to read."""
        if self._opened is not None:
            await self._opened.settled()

    # Looking

    async def page(
        self, owner: str, query: GalleryQuery, *, key: SecretStr | None = None, embedder: TextEmbedder | None = None
    ) -> GalleryPage:
        """Return a page of the pictures: the newest first, or the best of a search.

        With an embedder, or a key whose provider has one, words find also pictures that are about the same. What that
        costs is added to what the owner spent today; it is not done when the day's cap is used up. Raises
        RequestRefused(PICTURE_GONE) when the picture of `similar_to` is none of the owner's, StorageFailure when
        nothing can tell what looks alike.
        """
        if embedder is None and self._embedder_of is not None and query.words.strip():
            embedder = await self._embedder_of(owner, key)
        if query.is_search:
            return await self._found(owner, query, embedder)
        items = await self._search.newest(owner, query)
        page = items[: query.limit]
        last = page[-1] if len(items) > len(page) else None
        return GalleryPage(items=page, next=moment_cursor(last.picture.created_at, last.id) if last else None)

    async def _found(self, owner: str, query: GalleryQuery, embedder: TextEmbedder | None) -> GalleryPage:
        start = rank_of(query.after)
        ranking = self._ranking_kept(owner, query) if start else None
        if ranking is None:
            ranking = await self._search.ranked(owner, query, embedder)
            self._keep_ranking(owner, query, ranking)
        end = start + query.limit
        items = await self._search.matched(owner, query.words, ranking, start, end)
        return GalleryPage(
            items=items,
            next=rank_cursor(end) if end < len(ranking.ids) else None,
            found=len(ranking.ids),
            is_whole=ranking.is_whole,
        )

    def _ranking_kept(self, owner: str, query: GalleryQuery) -> Ranking | None:
        kept = self._rankings.get(_key(owner, query))
        return kept.ranking if kept is not None and self._clock() < kept.until_s else None

    def _keep_ranking(self, owner: str, query: GalleryQuery, ranking: Ranking) -> None:
        # So that the next page goes on where this one ended, whatever is made meanwhile.
        self._rankings[_key(owner, query)] = _Kept(self._clock() + _RANKINGS_LIVE_S, ranking)
        self._rankings.move_to_end(_key(owner, query))
        while len(self._rankings) > _MOST_KEPT:
            self._rankings.popitem(last=False)

    async def items(self, owner: str, ids: Sequence[int]) -> tuple[GalleryItem, ...]:
        """Return those of the pictures that are the owner's, in the order of the ids."""
        return await self._search.items(owner, ids)

    async def deleted(self, owner: str, conversation_id: str) -> tuple[Picture, ...]:
        """Return the pictures that were deleted from one of the owner's conversations, as their records still tell."""
        return await self._search.deleted(owner, conversation_id)

    async def count(self, owner: str, query: GalleryQuery) -> int:
        """Return how many pictures pass the query's filters; its words and likeness count for nothing."""
        return await self._search.count(owner, query)

    async def facets(self, owner: str) -> GalleryFacets:
        """Return what there is to choose from. It may be a few seconds old."""
        kept = self._facets.get(owner)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        began_s = self._clock()
        found = await self._search.facets(owner)
        now_s = self._clock()
        # Counting a hundred thousand pictures takes a good part of a second: never more than a twentieth of the time.
        self._facets[owner] = (now_s + max(_FACETS_LIVE_S, 20 * (now_s - began_s)), found)
        self._facets.move_to_end(owner)
        while len(self._facets) > _MOST_KEPT:
            self._facets.popitem(last=False)
        return found

    # Changing

    async def star(self, owner: str, ids: Sequence[int], is_starred: bool) -> tuple[int, ...]:
        """Mark the pictures with a star, or take it away. Return the ids of those that are the owner's."""
        from agent.storage import gallery_rows

        return await self._change(owner, lambda connection: gallery_rows.star(connection, owner, ids, is_starred))

    async def tag(self, owner: str, ids: Sequence[int], tag: str) -> tuple[int, ...]:
        """Give the pictures a tag of at most 64 letters, the same as one that differs in large and small letters only.

        Return the ids of those that are the owner's; none for an empty tag.
        """
        from agent.storage import gallery_rows

        name = plain_tag(tag)
        return await self._change(
            owner, lambda connection: gallery_rows.tag(connection, owner, ids, name) if name else ()
        )

    async def untag(self, owner: str, ids: Sequence[int], tag: str) -> tuple[int, ...]:
        """Take a tag away from the pictures. Return the ids of those that are the owner's."""
        from agent.storage import gallery_rows

        name = plain_tag(tag)
        return await self._change(owner, lambda connection: gallery_rows.untag(connection, owner, ids, name))

    async def delete(self, owner: str, ids: Sequence[int]) -> tuple[int, ...]:
        """Put the pictures out of sight; their records stay, so that what was said of them stays true.

        Their files go with the next `Housekeeping.sweep` after 30 days. Return the ids of those that are gone now.
        """
        from agent.storage import gallery_rows

        now = datetime.now(UTC)
        changed = await self._change(
            owner, lambda connection: gallery_rows.delete_pictures(connection, owner, ids, now)
        )
        return tuple(changed)

    async def undelete(self, owner: str, ids: Sequence[int]) -> tuple[int, ...]:
        """Bring back pictures that were deleted within 30 days. Return the ids of those that are there again."""
        from agent.storage import gallery_rows

        since = datetime.now(UTC) - KEPT_FOR
        changed = await self._change(owner, lambda connection: gallery_rows.bring_back(connection, owner, ids, since))
        return tuple(changed)

    async def _change(self, owner: str, work: Callable[[Connection], T]) -> T:
        changed = await self._records.db.write(work)
        self._facets.pop(owner, None)
        return changed

    # Taking away

    async def zip_of(
        self,
        owner: str,
        ids: Sequence[int],
        *,
        name_of: Callable[[Picture], str],
        bytes_of: Callable[[GalleryItem], Coroutine[Any, Any, bytes]] | None = None,
    ) -> ZippedPictures:
        """Return a private file with the owner's pictures among these, which is the caller's to remove.

        `name_of` gives each its file's name, `bytes_of` its bytes as they are taken away, without it those on disk. A
        picture whose file is gone, or for which `bytes_of` raises RequestRefused, is left out. Raises RequestRefused
        when none is left, StorageFailure when the disk is full.
        """
        from agent.storage.gallery_zip import zip_pictures

        items, loop, taken = await self.items(owner, ids), asyncio.get_running_loop(), bytes_of or self._stored

        def read(item: GalleryItem) -> bytes:
            return asyncio.run_coroutine_threadsafe(taken(item), loop).result()

        work = loop.run_in_executor(self._zipping, lambda: zip_pictures(self._home, items, read, name_of))
        return await asyncio.shield(work)

    async def _stored(self, item: GalleryItem) -> bytes:
        return await self._images.read(item.picture.image)


def _key(owner: str, query: GalleryQuery) -> tuple[str, GalleryQuery]:
    return owner, query.model_copy(update={"after": None, "limit": 1})
