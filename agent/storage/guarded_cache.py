"""A diskcache folder that never fails whoever uses it: what goes wrong is told once, and left alone for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

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
