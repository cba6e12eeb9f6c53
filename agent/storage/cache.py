"""Caches of bytes on disk: nothing in them is needed, and what fails in them is a miss, never an error.

History images live for two hours after the last use. (Answers of the text model: `answer_cache`.)
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
FREE_SPACE_FLOOR_BYTES = 500 << 20
_MAX_IMAGE_BYTES = 25 << 20
_REMEMBERED = 10_000
_SHA256_BYTES = 32

_log = logging.getLogger(__name__)


class NoRoom(Exception):
    """The disk is nearly full: nothing is put there, and what is there is read; never leaves this file."""


class ByteCache:
    """Bytes by key in a diskcache folder, for `ttl_s` after they were put or renewed; opened at the first use.

    `free_space_floor_bytes` must stay free on the disk beside what is written. `clock` counts seconds, for the pause
    after a failure; `trouble` is what the log says of one, once.
    """

    def __init__(
        self,
        folder: Path,
        prefix: str,
        *,
        ttl_s: float,
        limit_bytes: int,
        free_space_floor_bytes: int,
        trouble: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._prefix = prefix
        self._ttl_s = ttl_s
        self._limit_bytes = limit_bytes
        self._free_space_floor_bytes = free_space_floor_bytes
        self._trouble = trouble
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=folder.name)
        self._cache: Any = None
        self._closed_until_s = float("-inf")
        self._has_warned = False

    async def put(self, key: str, data: bytes) -> bool:
        """Return whether the bytes can be had back with `get`."""

        def store(cache: Any) -> bool:
            if shutil.disk_usage(self._folder).free < self._free_space_floor_bytes + 2 * len(data):
                raise NoRoom("the disk is nearly full")
            return bool(cache.set(self._prefix + key, _seal(key, data) + data, expire=self._ttl_s))

        return await self._run(store, default=False)

    async def get(self, key: str, *, is_renewed: bool = False) -> bytes | None:
        """Return the bytes, which live on for the whole time from now when they are renewed; None for a miss."""

        def fetch(cache: Any) -> bytes | None:
            try:
                stored = cache.get(self._prefix + key)
            except (ValueError, RecursionError):
                # A row that was not written here.
                stored = None
            seal, data = (stored[:_SHA256_BYTES], stored[_SHA256_BYTES:]) if isinstance(stored, bytes) else (b"", b"")
            if seal != _seal(key, data):
                cache.delete(self._prefix + key)
                return None
            if is_renewed:
                cache.touch(self._prefix + key, expire=self._ttl_s)
            return data

        return await self._run(fetch, default=None)

    async def drop(self, key: str) -> None:
        """Forget the bytes."""
        await self._run(lambda cache: cache.delete(self._prefix + key), default=False)

    async def aclose(self) -> None:
        """Close the files."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    async def _run(self, work: Callable[[Any], T], *, default: T) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run_now, work, default)

    def _run_now(self, work: Callable[[Any], T], default: T) -> T:
        """Return what the work finds in the open cache, or the default when the disk cannot be used."""
        if self._clock() < self._closed_until_s:
            return default
        try:
            result = work(self._opened())
        except Exception as error:  # locked, read-only, full or damaged: whoever asks goes on without it
            if not isinstance(error, NoRoom):
                self._closed_until_s = self._clock() + PAUSE_S
                self._close()
            level = logging.DEBUG if self._has_warned else logging.WARNING
            _log.log(level, "%s: %s", self._trouble, str(error) or type(error).__name__)
            self._has_warned = True
            return default
        self._has_warned = False
        return result

    def _opened(self) -> Any:
        if self._cache is None:
            # Not on the path to the first page.
            from agent.storage.disk_cache import open_disk_cache

            self._cache = open_disk_cache(self._folder, self._limit_bytes)
        return self._cache

    def _close(self) -> None:
        cache, self._cache = self._cache, None
        if cache is not None:
            cache.close()


def _seal(key: str, data: bytes) -> bytes:
    # Without it diskcache would hand out a truncated or a swapped file without a word.
    return hashlib.sha256(key.encode() + data).digest()


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
        free_space_floor_bytes: int = FREE_SPACE_FLOOR_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._disk = ByteCache(
            home / "cache" / "history_images",
            "aivista:cache:history_image_",
            ttl_s=ttl_s,
            limit_bytes=limit_bytes,
            free_space_floor_bytes=free_space_floor_bytes,
            trouble="history images are not cached for now",
            clock=clock,
        )
        self._ttl_s = ttl_s
        # One value above the limit makes diskcache throw out everything, that value included.
        self._max_value_bytes = min(_MAX_IMAGE_BYTES, limit_bytes // 4)
        self._clock = clock
        self._used_at_s: OrderedDict[str, float] = OrderedDict()

    async def put(self, md5: str, data: bytes, mime_type: str) -> bool:
        """Return whether the picture can be had back with `get`."""
        if len(data) > self._max_value_bytes or not await self._disk.put(md5, mime_type.encode() + b"\0" + data):
            return False
        self._remember(md5)
        return True

    async def get(self, md5: str) -> CachedImage | None:
        """Return the picture, which lives on for the whole time from now; None when it is unknown or expired."""
        used_at_s = self._used_at_s.pop(md5, None)
        if used_at_s is not None and self._clock() - used_at_s >= self._ttl_s:
            await self._disk.drop(md5)
            return None
        stored = await self._disk.get(md5, is_renewed=True)
        if stored is None:
            return None
        self._remember(md5)
        mime_type, _, data = stored.partition(b"\0")
        return CachedImage(data, mime_type.decode())

    async def aclose(self) -> None:
        """Close the files."""
        await self._disk.aclose()

    def _remember(self, md5: str) -> None:
        self._used_at_s[md5] = self._clock()
        while len(self._used_at_s) > _REMEMBERED:
            self._used_at_s.popitem(last=False)
