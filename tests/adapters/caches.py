"""The three caches on disk, each as a place that keeps bytes: answers of models, pictures of histories, searches."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from agent import MatchKind
from agent.library import MatchReason
from agent.storage.answer_cache import AnswerCache
from agent.storage.cache import HistoryImageCache
from agent.storage.styles import Found, SearchCache

FOLDERS = {"answers": "answers", "pictures": "history_images", "searches": "searches"}
LIVES_S = {"answers": 3600, "pictures": 7200, "searches": 300}


@dataclass(frozen=True)
class OpenCache:
    """A cache that is open. `put` says whether it took the data, `has` whether it gives exactly that back."""

    folder: Path
    put: Callable[[bytes], Awaitable[bool]]
    has: Callable[[bytes], Awaitable[bool]]
    aclose: Callable[[], Awaitable[None]]


def cache_in(
    home: Path, kind: str, clock: Callable[[], float], limit_bytes: int = 1 << 30, floor_bytes: int = 0
) -> OpenCache:
    """Open one of the caches."""
    folder = home / "cache" / FOLDERS[kind]
    if kind == "answers":
        answers = AnswerCache(home, limit_bytes=limit_bytes, free_space_floor_bytes=floor_bytes, clock=clock)

        async def put_answer(data: bytes) -> bool:
            return await answers.put(hashlib.sha256(data).hexdigest(), data.decode())

        async def has_answer(data: bytes) -> bool:
            kept = await answers.get(hashlib.sha256(data).hexdigest())
            assert kept in (None, data.decode()), "another's answer"
            return kept is not None

        return OpenCache(folder, put_answer, has_answer, answers.aclose)
    if kind == "pictures":
        pictures = HistoryImageCache(home, limit_bytes=limit_bytes, free_space_floor_bytes=floor_bytes, clock=clock)

        def md5(data: bytes) -> str:
            return hashlib.md5(data, usedforsecurity=False).hexdigest()

        async def put_picture(data: bytes) -> bool:
            return await pictures.put(md5(data), data, "image/png")

        async def has_picture(data: bytes) -> bool:
            kept = await pictures.get(md5(data))
            assert kept in (None, (data, "image/png")), "another picture"
            return kept is not None

        return OpenCache(folder, put_picture, has_picture, pictures.aclose)
    searches = SearchCache(folder, LIVES_S[kind], clock)

    def found(data: bytes) -> tuple[Found, ...]:
        return (Found(style_id=data.decode(), similarity=0.5, reason=MatchReason(kind=MatchKind.NAME, text="x")),)

    async def put_search(data: bytes) -> bool:
        await asyncio.to_thread(searches.put, hashlib.sha256(data).hexdigest(), found(data))
        return True

    async def has_search(data: bytes) -> bool:
        kept = await asyncio.to_thread(searches.get, hashlib.sha256(data).hexdigest())
        assert kept in (None, found(data)), "another search"
        return kept is not None

    async def close_search() -> None:
        await asyncio.to_thread(searches.close)

    return OpenCache(folder, put_search, has_search, close_search)
