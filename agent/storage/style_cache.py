"""What was found for a wish, kept for a few minutes on disk: ids and reasons, never a picture or a prompt."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agent.library import MatchReason
from agent.messages import Value

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
    """Results of searches for `ttl_s`; what fails here is a miss, never an error. Every call blocks.

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
