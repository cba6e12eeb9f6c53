"""The style library: curated styles and people's own, found by name, by how people describe them, and by meaning."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import logging
import math
import sqlite3
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from agent.errors import ErrorCode, RequestRefused
from agent.library import MatchKind, MatchReason, Style, StyleDraft, StyleMatch
from agent.messages import Value
from agent.storage.own_styles import OwnStyles, draft_of, owner_key
from agent.storage.style_descriptions import DescribedStyle, StyleDescriptions
from agent.storage.style_meaning import FLOOR, StyleVectors, TextEmbedder
from agent.storage.style_naming import Naming, StyleNames, Words
from agent.storage.vectors import Shelf, StyleIndex
from agent.style_rendering import StyleLook, render_in_style

# What an entry of the files has beside the style itself.
_BESIDE = frozenset({"described", "look"})


@lru_cache(maxsize=1)
def curated_styles() -> tuple[Style, ...]:
    """Return every curated style, family by family."""
    return tuple(
        Style.model_validate({name: value for name, value in row.items() if name not in _BESIDE}) for row in _rows()
    )


@lru_cache(maxsize=1)
def curated_descriptions() -> dict[str, tuple[str, ...]]:
    """Return how people describe each style without its name, in both languages, by the style's id."""
    return {row["id"]: (*row["described"]["en"], *row["described"]["zh"]) for row in _rows()}


@lru_cache(maxsize=1)
def curated_looks() -> dict[str, StyleLook]:
    """Return how each style is drawn by rules, by the style's id."""
    return {row["id"]: StyleLook.model_validate(row["look"]) for row in _rows()}


def _rows() -> list[dict[str, Any]]:
    folder = resources.files("agent.storage") / "style_data"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    return [row for table in tables for row in table["style"]]


_LIMIT_BYTES = 16 << 20
# How long the disk is left alone after it failed: every search would wait for the same lock.
_PAUSE_S = 30.0
_log = logging.getLogger(__name__)


class Found(Value):
    """A match without the style itself."""

    style_id: str
    similarity: float
    reason: MatchReason


_FOUND = TypeAdapter(tuple[Found, ...])


class SearchCache:
    """Results of searches for `ttl_s`: ids and reasons, never a picture or a prompt. What fails here is a miss, never
    an error. Every call blocks.

    `clock` tells seconds; an entry from its future counts as expired.
    """

    def __init__(self, folder: Path, ttl_s: float, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._ttl_s = ttl_s
        self._clock = clock
        self._cache: Any = None
        self._closed_until_s = float("-inf")

    def get(self, key: str) -> tuple[Found, ...] | None:
        """Return what was found, or None when nothing is kept."""
        # Not on the path to the first page.
        import diskcache  # type: ignore[import-untyped]  # it has no types of its own

        if self._clock() < self._closed_until_s:
            return None
        try:
            kept = self._opened().get(key)
            if not isinstance(kept, dict) or not 0 <= self._clock() - float(kept["at_s"]) < self._ttl_s:
                return None
            return _FOUND.validate_json(kept["found"])
        except (OSError, sqlite3.Error, diskcache.Timeout, RecursionError, KeyError, TypeError, ValueError) as error:
            self._give_up(error)
            return None

    def put(self, key: str, found: tuple[Found, ...]) -> None:
        """Keep what was found."""
        import diskcache

        if self._clock() < self._closed_until_s:
            return
        try:
            value = {"at_s": self._clock(), "found": _FOUND.dump_json(found).decode()}
            self._opened().set(key, value, expire=self._ttl_s)
        except (OSError, sqlite3.Error, diskcache.Timeout, ValueError) as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the files."""
        cache, self._cache = self._cache, None
        if cache is not None:
            with contextlib.suppress(OSError, sqlite3.Error):
                cache.close()

    def _opened(self) -> Any:
        if self._cache is None:
            from agent.storage.disk_cache import open_disk_cache

            self._cache = open_disk_cache(self._folder, _LIMIT_BYTES)
        return self._cache

    def _give_up(self, error: Exception) -> None:
        _log.debug("searches for styles are not cached for now: %s", type(error).__name__)
        self._closed_until_s = self._clock() + _PAUSE_S
        self.close()


def cache_key(*parts: object) -> str:
    """Return the key of a search: everything its result depends on."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()


T = TypeVar("T")

_LONGEST_WISH = 4000
# How sure a description must be (log-odds): in a request that may name no style at all, and in words for a style.
_DESCRIBED_IN_A_REQUEST = 1.25
_DESCRIBED_AS_A_STYLE = -1.0
_SUREST_DESCRIBED = 0.84
_SUREST_GUESS = 0.97
_BESIDE_A_NAME = 5.0
_MOST_OWNERS = 64
_CURATED = "curated"
# Raised whenever the same text may find other styles than before.
_SEARCH_VERSION = 2
# Whoever names a style wants that one, and not what is merely like it.
SURELY_NAMED = 0.9
_BESIDE_A_NAMED_ONE = 0.75


class StyleLibrary:
    """Styles below `<home>/styles`; own styles belong to their owner, and nobody else finds them.

    Own styles are files, written whole. Names and descriptions are searched in memory. An embedding model's vectors
    stand in LanceDB tables beside the files, made anew whenever the styles or the model change; LanceDB is loaded at
    the first search with such a model. Every call raises StorageFailure when the disk or LanceDB fails. `clock` tells
    seconds for the cache of searches; an embedding model that needs longer than `patience_s` is gone without.
    """

    def __init__(
        self, home: Path, *, ttl_s: float = 300.0, patience_s: float = 3.0, clock: Callable[[], float] = time.time
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
        self._names: dict[str, StyleNames] = {}

    # Finding

    async def search(
        self,
        text: str,
        limit: int = 3,
        floor: float = FLOOR,
        *,
        owner: str = "local",
        embedder: TextEmbedder | None = None,
        is_style: bool = False,
    ) -> list[StyleMatch]:
        """Return the styles that the text names or describes, the surest first; none below `floor`.

        `is_style` says that the text is about a style and nothing else ("noir", as a model gives it), so that words
        which could be about things are taken for one. With an embedder also those that mean the same are found;
        while the model fails, is late or has yet to be asked about the library, names and descriptions are gone by
        alone. The same search within five minutes is answered from the cache.
        """
        wish = text.strip()
        if not wish or limit < 1:
            return []
        mode = f"{embedder.model_id}:{embedder.dimension}" if embedder is not None else ""

        def known() -> tuple[list[Shelf], str, tuple[Found, ...] | None]:
            shelves = self._shelves(owner)
            key = cache_key(_SEARCH_VERSION, mode, limit, floor, is_style, wish, *(shelf.content for shelf in shelves))
            return shelves, key, self._cache.get(key)

        shelves, key, found = await self._call(known)
        if found is None:
            wish = (
                wish if len(wish) <= _LONGEST_WISH else f"{wish[: _LONGEST_WISH // 2]}\n{wish[-_LONGEST_WISH // 2 :]}"
            )
            meaning = None
            if embedder is not None:
                meaning = await self._vectors.similarities(shelves, wish, embedder, self._patience_s)
            found = await self._call(lambda: self._find(shelves, wish, meaning or {}, limit, floor, is_style=is_style))
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

    async def warm_up(self, owner: str = "local", *, with_meaning: bool = False) -> None:
        """Make ready what a search needs, so that the first one need not wait; with meaning, load LanceDB too."""
        shelves = await self._call(lambda: self._shelves(owner))
        await self._call(lambda: self._make_ready(shelves))
        if with_meaning:
            await self._call(lambda: self._index.guarded(lambda: self._index.about(shelves[0].name)))

    def _make_ready(self, shelves: Sequence[Shelf]) -> None:
        for shelf in shelves:
            self._names_of(shelf)
        self._described()

    def _names_of(self, shelf: Shelf) -> StyleNames:
        if shelf.name == _CURATED:
            return _curated_names()
        names = self._names.pop(shelf.content, None) or StyleNames(shelf.styles)
        # The newest at the end: the one that was not asked for the longest goes first.
        self._names[shelf.content] = names
        if len(self._names) > _MOST_OWNERS:
            self._names.pop(next(iter(self._names)))
        return names

    def _described(self) -> StyleDescriptions:
        return _curated_descriptions()

    def _curated_shelf(self) -> Shelf:
        self._curated = self._curated or Shelf(_CURATED, curated_styles())
        return self._curated

    def _shelves(self, owner: str) -> list[Shelf]:
        own = self._own.all(owner)
        return [self._curated_shelf(), *([Shelf(f"own_{owner_key(owner)}", own)] if own else [])]

    def _find(
        self,
        shelves: Sequence[Shelf],
        text: str,
        meaning: Mapping[str, float],
        limit: int,
        floor: float,
        *,
        is_style: bool,
    ) -> tuple[Found, ...]:
        wish = Words(text)
        named: dict[str, Naming] = {}
        for shelf in shelves:
            named |= self._names_of(shelf).found_in(wish, is_style=is_style)
        surest = max((naming.similarity for naming in named.values()), default=0.0)
        things = [(naming.first, naming.end) for naming in named.values() if naming.similarity < FLOOR]
        described = self._described().found_in(wish, without=things, limit=limit)
        needed = _DESCRIBED_AS_A_STYLE if is_style else _DESCRIBED_IN_A_REQUEST
        # Whoever names a style rarely describes another one.
        needed += _BESIDE_A_NAME if surest >= FLOOR else 0.0
        found = _fused([style for shelf in shelves for style in shelf.styles], named, described, needed, meaning)
        return tuple(one for one in found if one.similarity >= floor)[:limit]

    # Own styles

    async def all(self, owner: str = "local") -> tuple[Style, ...]:
        """Return every style the owner sees: their own, then the curated ones."""
        return (*await self._call_files(lambda: self._own.all(owner)), *await self._call_files(curated_styles))

    def drawn(self, style_id: str, picture: bytes, side_px: int) -> bytes | None:
        """Return a picture in a curated style, drawn by rules, as WebP; None for a style that has none. It blocks.

        The longer side is at most `side_px`.
        """
        look = curated_looks().get(style_id)
        if look is None:
            return None
        import numpy as np
        from PIL import Image

        sink = io.BytesIO()
        with Image.open(io.BytesIO(picture)) as image:
            image.thumbnail((side_px, side_px))
            drawn = render_in_style(np.asarray(image.convert("RGB")), look)
        Image.fromarray(drawn).save(sink, "WEBP", quality=80)
        return sink.getvalue()

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


@lru_cache(maxsize=1)
def _curated_names() -> StyleNames:
    return StyleNames(curated_styles())


@lru_cache(maxsize=1)
def _curated_descriptions() -> StyleDescriptions:
    return StyleDescriptions(curated_styles(), curated_descriptions())


def find_curated(text: str) -> tuple[Style, str] | None:
    """Return the curated style that a request asks for and the words that name it (empty when they describe it).

    None when it asks for no style. It blocks: for a moment the first time, then for about a millisecond.
    """
    wish = Words(text.strip()[:_LONGEST_WISH])
    named = _curated_names().found_in(wish)
    surest = max(named.items(), key=lambda item: (item[1].similarity, item[1].end - item[1].first), default=None)
    styles = {style.id: style for style in curated_styles()}
    if surest is not None and surest[1].similarity >= FLOOR:
        return styles[surest[0]], surest[1].reason.words
    things = [(naming.first, naming.end) for naming in named.values()]
    described = _curated_descriptions().found_in(wish, without=things, limit=1)
    if described and described[0].log_odds >= _DESCRIBED_IN_A_REQUEST:
        return styles[described[0].style_id], ""
    return None


async def _finished(thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    # Cancelling the caller must not take its work from the queue.
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(thread, work))


def _draft(fields: StyleDraft | Mapping[str, object]) -> StyleDraft:
    return fields if isinstance(fields, StyleDraft) else draft_of(fields)


def _fused(
    styles: Sequence[Style],
    named: Mapping[str, Naming],
    described: Sequence[DescribedStyle],
    needed: float,
    meaning: Mapping[str, float],
) -> list[Found]:
    """Return every style found, the surest first; of equals one's own, then the one said at greater length."""
    is_surely_named = any(naming.similarity >= SURELY_NAMED for naming in named.values())
    by_description = {one.style_id: one for one in described}
    ranked = []
    for style in styles:
        naming, said, by_meaning = named.get(style.id), by_description.get(style.id), meaning.get(style.id, 0.0)
        if is_surely_named:
            by_meaning *= _BESIDE_A_NAMED_ONE
        by_name = naming.similarity if naming else 0.0
        as_described = _similarity(said.log_odds - needed) if said else 0.0
        # Two guesses that agree are surer than each.
        guessed = min(_SUREST_GUESS, 1 - (1 - by_meaning) * (1 - as_described))
        similarity = max(by_name, guessed)
        if not similarity:
            continue
        length = 0
        is_said = naming is not None and naming.reason.kind is MatchKind.PHRASE and by_name >= FLOOR
        if naming is not None and (by_name == similarity or is_said):
            reason, length = naming.reason, naming.end - naming.first
        elif said is not None and as_described >= by_meaning:
            reason = MatchReason(kind=MatchKind.DESCRIPTION, text=said.description)
        else:
            text = style.description.en or style.description.zh or style.title
            reason = MatchReason(kind=MatchKind.MEANING, text=text)
        found = Found(style_id=style.id, similarity=round(similarity, 3), reason=reason)
        ranked.append((found.similarity, style.is_own, length, by_name + by_meaning + as_described, found))
    return [entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:-1], reverse=True)]


def _similarity(surplus: float) -> float:
    """Return where log-odds above or below what is needed stand on the scale of similarities."""
    if surplus < 0:
        return max(0.0, FLOOR - 0.01 + 0.05 * surplus)
    return FLOOR + (_SUREST_DESCRIBED - FLOOR) * (1 - math.exp(-surplus / 4))
