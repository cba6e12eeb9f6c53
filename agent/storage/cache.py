"""Caches of bytes on disk: their content is never essential, and a failure counts as a miss, never an error.

Images that the model asked to see again are kept for two hours after the last use (`history_images`); answers of the
text model, where the operator wants them reused, for an hour (`answers`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# How long the disk is not used after a failure: otherwise every call would wait for the same lock.
PAUSE_S = 30.0
FREE_SPACE_FLOOR_BYTES = 500 << 20
_MAX_IMAGE_BYTES = 25 << 20
_MAX_ANSWER_BYTES = 8 << 20
_SHA256_BYTES = 32

_log = logging.getLogger(__name__)


class NoRoom(Exception):
    """The disk is nearly full: reads still work, writes do not. Only used inside this file."""


def history_images(home: Path, ttl_s: float = 7200.0, limit_bytes: int = 1 << 30, **checks: Any) -> ByteCache:
    """Return the cache of images that models were shown again, by MD5; renew entries at each use."""
    folder = home / "cache" / "history_images"
    return ByteCache(folder, "aivista:cache:history_image_", ttl_s, limit_bytes, _MAX_IMAGE_BYTES, **checks)


def answers(home: Path, ttl_s: float = 3600.0, limit_bytes: int = 64 << 20, **checks: Any) -> ByteCache:
    """Return the cache of the text model's answers, by a key of all their inputs."""
    folder = home / "cache" / "answers"
    return ByteCache(folder, "aivista:cache:answer_", ttl_s, limit_bytes, _MAX_ANSWER_BYTES, **checks)


class ByteCache:
    """A cache of bytes by key in a diskcache folder; an entry lives `ttl_s` after it was put or renewed.

    The folder is opened on first use. `free_space_floor_bytes` must stay free on the disk after a write. `clock`
    returns the time in seconds: an entry put in its future counts as expired.
    """

    def __init__(
        self,
        folder: Path,
        prefix: str,
        ttl_s: float,
        limit_bytes: int,
        most_bytes: int,
        *,
        free_space_floor_bytes: int = FREE_SPACE_FLOOR_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._prefix = prefix
        self._ttl_s = ttl_s
        self._limit_bytes = limit_bytes
        # A single value above the limit makes diskcache evict everything, that value included.
        self._most_bytes = min(most_bytes, limit_bytes // 4)
        self._free_space_floor_bytes = free_space_floor_bytes
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=folder.name)
        self._cache: Any = None
        self._is_closed = False
        self._left_alone_until_s = float("-inf")
        self._has_warned = False

    async def put(self, key: str, data: bytes) -> bool:
        """Store the bytes; return whether `get` can return them."""

        def store(cache: Any) -> bool:
            if shutil.disk_usage(self._folder).free < self._free_space_floor_bytes + 2 * len(data):
                raise NoRoom("the disk is nearly full")
            return bool(cache.set(self._prefix + key, _seal(key, data) + data, expire=self._lives_s()))

        return len(data) <= self._most_bytes and await self._run(store, default=False)

    async def get(self, key: str, *, is_renewed: bool = False) -> bytes | None:
        """Return the bytes, or None for a miss; `is_renewed` restarts their lifetime."""

        def fetch(cache: Any) -> bytes | None:
            stored, ends_s = cache.get(self._prefix + key, expire_time=True)
            seal, data = (stored[:_SHA256_BYTES], stored[_SHA256_BYTES:]) if isinstance(stored, bytes) else (b"", b"")
            if seal != _seal(key, data) or not 0 < (ends_s or 0.0) - self._clock() < self._ttl_s + 1:
                cache.delete(self._prefix + key)
                return None
            if is_renewed:
                cache.touch(self._prefix + key, expire=self._lives_s())
            return data

        return await self._run(fetch, default=None)

    def _lives_s(self) -> float:
        # Relative to the time that diskcache uses as now.
        return self._clock() + self._ttl_s - time.time()

    async def aclose(self) -> None:
        """Close the files; from now on every call is a miss."""
        self._is_closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    async def _run(self, work: Callable[[Any], T], *, default: T) -> T:
        if self._is_closed:
            return default
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run_now, work, default)

    def _run_now(self, work: Callable[[Any], T], default: T) -> T:
        """Return the result of the work on the open cache, or the default when the disk cannot be used."""
        if time.monotonic() < self._left_alone_until_s:
            return default
        try:
            result = work(self._opened())
        except Exception as error:  # locked, read-only, full or damaged: the caller goes on without it
            if not isinstance(error, NoRoom):
                self._left_alone_until_s = time.monotonic() + PAUSE_S
                self._close()
            level = logging.DEBUG if self._has_warned else logging.WARNING
            _log.log(
                level, "the cache %s is not used for now: %s", self._folder.name, str(error) or type(error).__name__
            )
            self._has_warned = True
            return default
        self._has_warned = False
        return result

    def _opened(self) -> Any:
        if self._cache is None:
            # Imported late, off the path to the first page.
            from agent.storage.disk_cache import open_disk_cache

            self._cache = open_disk_cache(self._folder, self._limit_bytes)
        return self._cache

    def _close(self) -> None:
        cache, self._cache = self._cache, None
        if cache is not None:
            cache.close()


def _seal(key: str, data: bytes) -> bytes:
    # Without it, diskcache would return a truncated or swapped file without an error.
    return hashlib.sha256(key.encode() + data).digest()
