"""The cache of history images: on disk for two hours after the last use, in memory while the disk fails.

A failure here never fails a turn: what cannot be kept is told with False, what cannot be read is a miss.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

# How long the disk is left alone after it failed: every call would wait for the same lock.
PAUSE_S = 30.0

_log = logging.getLogger(__name__)


class GuardedCache:
    """Blocking calls for one thread, the folder opened at the first of them.

    `clock` counts seconds; `trouble` is what the log says when the disk cannot be used.
    """

    def __init__(self, folder: Path, limit_bytes: int, clock: Callable[[], float], trouble: str) -> None:
        self.folder = folder
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._trouble = trouble
        self._cache: Any = None
        self._closed_until_s = float("-inf")
        self._has_warned = False

    def run(self, work: Callable[[Any], T], *, default: T) -> T:
        """Return what the work finds in the open cache, or the default when the disk cannot be used."""
        if self._clock() < self._closed_until_s:
            return default
        try:
            result = work(self._opened())
        except Exception as error:  # locked, read-only, full or damaged: whoever asks goes on without it
            self._closed_until_s = self._clock() + PAUSE_S
            self.close()
            level = logging.DEBUG if self._has_warned else logging.WARNING
            _log.log(level, "%s: %s", self._trouble, str(error) or type(error).__name__)
            self._has_warned = True
            return default
        self._has_warned = False
        return result

    def close(self) -> None:
        """Close the files; the next call opens them again."""
        cache, self._cache = self._cache, None
        if cache is not None:
            cache.close()

    def _opened(self) -> Any:
        if self._cache is None:
            # Not on the path to the first page.
            from agent.storage.disk_cache import open_disk_cache

            self._cache = open_disk_cache(self.folder, self._limit_bytes)
        return self._cache


_KEY = "aivista:cache:history_image_"
_MAX_VALUE_BYTES = 25 << 20
_FREE_SPACE_FLOOR_BYTES = 500 << 20
_REMEMBERED = 10_000
_SHA256_BYTES = 32


class CacheUnavailable(Exception):
    """The disk part of the cache cannot be used now; never leaves this file."""


class CachedImage(NamedTuple):
    """A picture of the cache."""

    data: bytes
    mime_type: str


class HistoryImageCache:
    """Pictures by their MD5 under `<home>/cache/history_images`, at most `limit_bytes`, `ttl_s` after the last use.

    `free_space_floor_bytes` must stay free on the disk beside what is written. `clock` is monotonic: an entry this
    process has used ends by it as well as by the wall clock, whichever comes first.
    """

    def __init__(
        self,
        home: Path,
        *,
        ttl_s: float = 7200.0,
        limit_bytes: int = 1 << 30,
        memory_limit_bytes: int = 64 << 20,
        free_space_floor_bytes: int = _FREE_SPACE_FLOOR_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._disk = _DiskPart(home / "cache" / "history_images", ttl_s, limit_bytes, free_space_floor_bytes, clock)
        self._memory = _MemoryPart(memory_limit_bytes)
        self._ttl_s = ttl_s
        # One value above the limit makes diskcache throw out everything, that value included.
        self._max_value_bytes = min(_MAX_VALUE_BYTES, limit_bytes // 4)
        self._clock = clock
        self._used_at_s: OrderedDict[str, float] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history-images")

    async def put(self, md5: str, data: bytes, mime_type: str) -> bool:
        """Return whether the picture can be had back with `get`."""
        if len(data) > self._max_value_bytes:
            return False
        kept = True
        if not await self._call(self._disk.put, md5, data, mime_type):
            kept = self._memory.put(md5, CachedImage(data, mime_type))
        if kept:
            self._remember(md5)
        return kept

    async def get(self, md5: str) -> CachedImage | None:
        """Return the picture, which lives on for the whole time from now; None when it is unknown or expired."""
        if self._is_expired(md5):
            self._used_at_s.pop(md5, None)
            self._memory.drop(md5)
            await self._call(self._disk.drop, md5)
            return None
        found = self._memory.get(md5) or await self._call(self._disk.get, md5)
        if found is None:
            self._used_at_s.pop(md5, None)
            return None
        self._remember(md5)
        return found

    async def contains(self, md5: str) -> bool:
        """Return whether the picture is kept, and let it live on; the disk is asked only now and then."""
        used_at_s = self._used_at_s.get(md5)
        if used_at_s is not None and self._clock() - used_at_s < self._ttl_s / 4:
            return True
        if self._is_expired(md5):
            return False
        is_kept = md5 in self._memory or await self._call(self._disk.touch, md5)
        if is_kept:
            self._remember(md5)
        return is_kept

    async def aclose(self) -> None:
        """Close the files."""
        await self._call(self._disk.close)
        self._thread.shutdown()

    def _is_expired(self, md5: str) -> bool:
        used_at_s = self._used_at_s.get(md5)
        return used_at_s is not None and self._clock() - used_at_s >= self._ttl_s

    def _remember(self, md5: str) -> None:
        self._used_at_s[md5] = self._clock()
        self._used_at_s.move_to_end(md5)
        while len(self._used_at_s) > _REMEMBERED:
            self._used_at_s.popitem(last=False)

    async def _call(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


class _MemoryPart:
    """What the disk could not take, the least used thrown out beyond the limit; kept until the studio ends."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[str, CachedImage] = OrderedDict()
        self._bytes = 0

    def __contains__(self, md5: str) -> bool:
        return md5 in self._kept

    def put(self, md5: str, image: CachedImage) -> bool:
        self.drop(md5)
        if len(image.data) > self._limit_bytes:
            return False
        self._kept[md5] = image
        self._bytes += len(image.data)
        while self._bytes > self._limit_bytes:
            self.drop(next(iter(self._kept)))
        return True

    def get(self, md5: str) -> CachedImage | None:
        image = self._kept.get(md5)
        if image is not None:
            self._kept.move_to_end(md5)
        return image

    def drop(self, md5: str) -> None:
        image = self._kept.pop(md5, None)
        if image is not None:
            self._bytes -= len(image.data)


class _DiskPart:
    """The part on disk: blocking calls for one thread, opened at the first of them, that never raise."""

    def __init__(
        self, folder: Path, ttl_s: float, limit_bytes: int, free_space_floor_bytes: int, clock: Callable[[], float]
    ) -> None:
        self._ttl_s = ttl_s
        self._free_space_floor_bytes = free_space_floor_bytes
        self._guarded = GuardedCache(folder, limit_bytes, clock, "history images are kept in memory for now")

    def put(self, md5: str, data: bytes, mime_type: str) -> bool:
        def store(cache: Any) -> bool:
            if shutil.disk_usage(self._guarded.folder).free < self._free_space_floor_bytes + 2 * len(data):
                raise CacheUnavailable("the disk is nearly full")
            return bool(cache.set(_KEY + md5, _sealed(md5, data, mime_type), expire=self._ttl_s))

        return self._guarded.run(store, default=False)

    def get(self, md5: str) -> CachedImage | None:
        def fetch(cache: Any) -> CachedImage | None:
            image = _unsealed(md5, cache.get(_KEY + md5))
            if image is None:
                cache.delete(_KEY + md5)
            else:
                cache.touch(_KEY + md5, expire=self._ttl_s)
            return image

        return self._guarded.run(fetch, default=None)

    def touch(self, md5: str) -> bool:
        return self._guarded.run(lambda cache: bool(cache.touch(_KEY + md5, expire=self._ttl_s)), default=False)

    def drop(self, md5: str) -> None:
        self._guarded.run(lambda cache: cache.delete(_KEY + md5), default=False)

    def close(self) -> None:
        self._guarded.close()


def _sealed(md5: str, data: bytes, mime_type: str) -> bytes:
    """Return what is stored: diskcache itself would hand out a truncated or a swapped file without a word."""
    content = mime_type.encode() + b"\0" + data
    return hashlib.sha256(md5.encode() + content).digest() + content


def _unsealed(md5: str, stored: object) -> CachedImage | None:
    if not isinstance(stored, bytes):
        return None
    seal, content = stored[:_SHA256_BYTES], stored[_SHA256_BYTES:]
    if hashlib.sha256(md5.encode() + content).digest() != seal:
        return None
    mime_type, _, data = content.partition(b"\0")
    return CachedImage(data, mime_type.decode())
