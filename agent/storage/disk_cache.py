"""Open a diskcache folder safely: private, without pickle, with a size limit; a damaged database is set aside."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import diskcache  # type: ignore[import-untyped]  # it has no types of its own

from agent.storage.private_files import aside_path, is_unreadable, make_private_folder, rename_database

_MODE_RAW, _MODE_BINARY = 1, 2
_VALUE_FILE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{28}\.val")


class UnsafeRow(OSError):
    """A row that `SafeDisk` did not write: it is not read, and diskcache treats it as a missing value."""


class SafeDisk(diskcache.Disk):  # type: ignore[misc]  # as above
    """A diskcache disk that stores bytes and refuses everything else.

    Keys are text, and no row can name a file outside its folder. diskcache's own Disk uses pickle, so anybody who can
    write into the folder could run code in the studio (CVE-2025-69872).
    """

    def put(self, key: object) -> tuple[str, bool]:  # pyrefly: ignore[bad-override]
        """Return the key as stored in the database."""
        if not isinstance(key, str):
            raise TypeError("a key is text")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row."""
        if not raw or not isinstance(key, str):
            raise UnsafeRow("a key that is not text")
        return key

    def store(self, value: object, read: bool, key: object = None) -> Any:
        """Return size, mode, file name and value of the row for a value. Raises TypeError unless it is bytes."""
        if read or not isinstance(value, bytes):
            raise TypeError("a value is bytes, given whole")
        return super().store(value, False, key=key)

    def fetch(self, mode: object, filename: str | None, value: object, read: bool) -> Any:
        """Return the value of a row. Raises UnsafeRow."""
        if mode == _MODE_RAW and isinstance(value, bytes):
            return value
        if mode == _MODE_BINARY and filename is not None and not read:
            return super().fetch(mode, self._checked(filename), None, False)
        raise UnsafeRow(f"a row of mode {mode!r}")

    def remove(self, file_path: str) -> None:
        """Remove a value's file; its name comes from a row, and a file outside the folder is left alone."""
        with contextlib.suppress(UnsafeRow):
            super().remove(self._checked(file_path))

    @staticmethod
    def _checked(filename: str) -> str:
        if not _VALUE_FILE.fullmatch(filename.replace(os.sep, "/")):
            raise UnsafeRow("a file outside the cache")
        return filename


_DATABASE = "cache.db"
_LOCK_TIMEOUT_S = 1.0
# A killed writer leaves a value file without a row; a younger file may still get its row.
_ORPHAN_AGE_S = 3600.0

_log = logging.getLogger(__name__)


def open_disk_cache(folder: Path, limit_bytes: int) -> Any:
    """Return the open cache. Blocks, up to a second on a lock. Raises OSError or sqlite3.Error."""
    make_private_folder(folder)
    try:
        _probe(folder)
    except sqlite3.DatabaseError as error:
        if not is_unreadable(error):
            raise
        _set_aside(folder)
        _probe(folder)
    cache = diskcache.Cache(
        str(folder),
        timeout=_LOCK_TIMEOUT_S,
        disk=SafeDisk,
        size_limit=limit_bytes,
        # The default evicts the oldest entry first, even if every turn reads it.
        eviction_policy="least-recently-used",
        statistics=0,
    )
    _remove_orphans(folder)
    return cache


def _probe(folder: Path) -> None:
    """Fail early where diskcache would wait for a minute, or ignore the damage."""
    path = folder / _DATABASE
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with contextlib.closing(sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        connection.execute("ROLLBACK")


def _set_aside(folder: Path) -> None:
    aside = aside_path(folder)
    rename_database(folder / _DATABASE, aside)
    for values in folder.iterdir():
        if values.is_dir():
            shutil.rmtree(values, ignore_errors=True)
    _log.warning("the cache %s was unreadable and has been set aside as %s", folder.name, aside.name)


def _remove_orphans(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / _DATABASE, timeout=_LOCK_TIMEOUT_S)) as connection:
        named = {row[0] for row in connection.execute("SELECT filename FROM Cache WHERE filename IS NOT NULL")}
    latest_s = time.time() - _ORPHAN_AGE_S
    for path in folder.glob("??/??/*.val"):
        if os.path.relpath(path, folder) not in named and path.stat().st_mtime < latest_s:
            path.unlink(missing_ok=True)
