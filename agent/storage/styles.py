"""The style library: curated styles and people's own, found by their names, by n-grams and by meaning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from agent.errors import ErrorCode, RequestRefused
from agent.storage.curated_styles import curated_styles
from agent.storage.own_styles import OwnStyles, draft_of, owner_key
from agent.storage.style_cache import Found, SearchCache, cache_key
from agent.storage.style_meaning import FLOOR, TextEmbedder
from agent.storage.style_naming import Naming, namings
from agent.storage.style_table import Shelf, StyleIndex
from agent.storage.style_values import MatchKind, MatchReason, Style, StyleDraft, StyleMatch
from agent.storage.style_vectors import StyleVectors
from agent.storage.style_words import Words

T = TypeVar("T")

_LONGEST_WISH = 4000
_MOST_CANDIDATES = 32
# Whoever names a style wants that one, and not what is merely like it.
SURELY_NAMED = 0.9
_BESIDE_A_NAMED_ONE = 0.75


class StyleLibrary:
    """Styles below `<home>/styles`; own styles belong to their owner, and nobody else finds them.

    Own styles are files, written whole; the LanceDB tables beside them are made from the styles and made anew
    whenever they, or the embedding model, change. LanceDB is loaded at the first search. Every call raises
    StorageFailure when the disk or LanceDB fails. `clock` tells seconds for the cache of searches; an embedding
    model that needs longer than `patience_s` is gone without.
    """

    def __init__(
        self,
        home: Path,
        *,
        ttl_s: float = 300.0,
        patience_s: float = 3.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._own = OwnStyles(home / "styles" / "own")
        self._index = StyleIndex(home / "styles" / "index")
        self._cache = SearchCache(home / "cache" / "styles", ttl_s, clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="styles")
        # Whoever reads or writes styles need not wait until LanceDB is loaded.
        self._files_thread = ThreadPoolExecutor(1, thread_name_prefix="own-styles")
        self._vectors = StyleVectors(self._index, self._thread)
        self._patience_s = patience_s
        self._curated: Shelf | None = None

    # Finding

    async def search(
        self,
        text: str,
        limit: int = 3,
        floor: float = FLOOR,
        *,
        owner: str = "local",
        embedder: TextEmbedder | None = None,
    ) -> list[StyleMatch]:
        """Return the styles that the wish names, the surest first; none below `floor`.

        With an embedder also those it describes; while the model fails, is late or has yet to be asked about the
        library, the names alone are gone by. The same search within five minutes is answered from the cache.
        """
        wish = text.strip()
        if not wish or limit < 1:
            return []
        mode = f"{embedder.model_id}:{embedder.dimension}" if embedder is not None else ""

        def known() -> tuple[list[Shelf], str, tuple[Found, ...] | None]:
            shelves = self._shelves(owner)
            key = cache_key(mode, limit, floor, wish, *(shelf.content for shelf in shelves))
            return shelves, key, self._cache.get(key)

        shelves, key, found = await self._call(known)
        if found is None:
            wish = (
                wish if len(wish) <= _LONGEST_WISH else f"{wish[: _LONGEST_WISH // 2]}\n{wish[-_LONGEST_WISH // 2 :]}"
            )
            meaning = None
            if embedder is not None:
                meaning = await self._vectors.similarities(shelves, wish, embedder, self._patience_s)
            found = await self._call(lambda: self._find(shelves, wish, meaning or {}, limit, floor))
            if embedder is None or meaning is not None:
                kept = found
                await self._call(lambda: self._cache.put(key, kept))
        styles = {style.id: style for shelf in shelves for style in shelf.styles}
        return [
            StyleMatch(style=styles[one.style_id], similarity=one.similarity, reason=one.reason)
            for one in found
            if one.style_id in styles
        ]

    async def has_meaning(self, embedder: TextEmbedder) -> bool:
        """Whether the model has been asked about the curated styles, so that a search asks it about little more."""
        curated = await self._call(self._curated_shelf)
        return await self._vectors.is_ready(curated, embedder)

    async def learn_meaning(self, embedder: TextEmbedder) -> None:
        """Ask the model about the curated styles: some 10,000 tokens in three calls, kept on disk for every owner.

        Raises AivistaError when the model fails, ValueError when its answer is no vectors.
        """
        curated = await self._call(self._curated_shelf)
        await self._vectors.prepare(curated, embedder)

    async def warm_up(self, owner: str = "local") -> None:
        """Load LanceDB and make the tables, so that the first search need not."""
        shelves = await self._call(lambda: self._shelves(owner))
        await self._call(lambda: self._index.guarded(lambda: self._make_tables(shelves)))

    def _curated_shelf(self) -> Shelf:
        self._curated = self._curated or Shelf("curated", curated_styles())
        return self._curated

    def _shelves(self, owner: str) -> list[Shelf]:
        own = self._own.all(owner)
        return [self._curated_shelf(), *([Shelf(f"own_{owner_key(owner)}", own)] if own else [])]

    def _find(
        self, shelves: Sequence[Shelf], wish: str, meaning: Mapping[str, float], limit: int, floor: float
    ) -> tuple[Found, ...]:
        candidates = self._index.guarded(lambda: self._candidates(shelves, wish))
        styles = [style for shelf in shelves for style in shelf.styles if style.id in candidates or style.id in meaning]
        found = _fused(styles, namings(styles, Words(wish)), meaning)
        return tuple(one for one in found if one.similarity >= floor)[:limit]

    def _candidates(self, shelves: Sequence[Shelf], wish: str) -> set[str]:
        self._make_tables(shelves)
        found: set[str] = set()
        for shelf in shelves:
            found.update(self._index.by_words(shelf.name, wish, _MOST_CANDIDATES))
        return found

    def _make_tables(self, shelves: Sequence[Shelf]) -> None:
        for shelf in shelves:
            about = self._index.about(shelf.name)
            if about is None or about.content != shelf.content:
                self._index.build(shelf)

    # Own styles

    async def all(self, owner: str = "local") -> tuple[Style, ...]:
        """Return every style the owner sees: their own, then the curated ones."""
        return (*await self._call_files(lambda: self._own.all(owner)), *await self._call_files(curated_styles))

    async def get(self, style_id: str, owner: str = "local") -> Style:
        """Return the style. Raises RequestRefused(STYLE_NOT_FOUND)."""
        found = next((style for style in await self.all(owner) if style.id == style_id), None)
        if found is None:
            raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)
        return found

    async def add(self, fields: StyleDraft | Mapping[str, object], owner: str = "local") -> Style:
        """Keep a new style of the owner's, from a draft or from a form's fields.

        Raises RequestRefused when the fields make no style, the name is taken, or the library is full.
        """
        draft = _draft(fields)
        return await self._call_files(lambda: self._own.add(draft, owner))

    async def edit(self, style_id: str, fields: StyleDraft | Mapping[str, object], owner: str = "local") -> Style:
        """Replace one of the owner's styles. Raises RequestRefused, also for a curated one."""
        draft = _draft(fields)
        return await self._call_files(lambda: self._own.edit(style_id, draft, owner))

    async def delete(self, style_id: str, owner: str = "local") -> None:
        """Remove one of the owner's styles. Raises RequestRefused, also for a curated one."""
        await self._call_files(lambda: self._own.delete(style_id, owner))

    async def import_styles(self, data: bytes, owner: str = "local") -> tuple[Style, ...]:
        """Keep the styles of an exported file and return them; one of the same name is replaced.

        All of them or none. Raises RequestRefused for a file that is not one, and says what is wrong with it.
        """
        return await self._call_files(lambda: self._own.take_in(data, owner))

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Give an owner's styles to another one, as far as that one has room for them."""
        await self._call_files(lambda: self._own.hand_over(owner, new_owner))

    async def export_styles(self, owner: str = "local") -> bytes:
        """Return the owner's styles as a JSON file."""
        return await self._call_files(lambda: self._own.file_of(owner))

    async def aclose(self) -> None:
        """Finish what is being written and close the files."""
        await self._vectors.aclose()
        await self._call(self._close)
        self._thread.shutdown()
        self._files_thread.shutdown()

    def _close(self) -> None:
        self._index.close()
        self._cache.close()

    async def _call(self, work: Callable[[], T]) -> T:
        return await _finished(self._thread, work)

    async def _call_files(self, work: Callable[[], T]) -> T:
        return await _finished(self._files_thread, work)


async def _finished(thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    # Cancelling the caller must not take its work from the queue.
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(thread, work))


def _draft(fields: StyleDraft | Mapping[str, object]) -> StyleDraft:
    return fields if isinstance(fields, StyleDraft) else draft_of(fields)


def _fused(styles: Sequence[Style], named: Mapping[str, Naming], meaning: Mapping[str, float]) -> list[Found]:
    """Return every style found, the surest first; of equals one's own, then the one said at greater length."""
    is_surely_named = any(naming.similarity >= SURELY_NAMED for naming in named.values())
    ranked = []
    for style in styles:
        by_name, by_meaning = named.get(style.id), meaning.get(style.id, 0.0)
        agreement = (by_name.similarity if by_name else 0.0) + by_meaning
        if is_surely_named:
            by_meaning *= _BESIDE_A_NAMED_ONE
        if by_name is not None and by_name.similarity >= by_meaning:
            similarity, reason, length = by_name.similarity, by_name.reason, by_name.end - by_name.first
        else:
            text = style.description.en or style.description.zh or style.title
            similarity, reason, length = by_meaning, MatchReason(kind=MatchKind.MEANING, text=text), 0
        found = Found(style_id=style.id, similarity=round(similarity, 3), reason=reason)
        ranked.append((found.similarity, style.is_own, length, agreement, found))
    return [entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:-1], reverse=True)]
