"""A LanceDB folder: opened when first needed, made anew whole when it fails, its failures told in our words. Blocks."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from agent.errors import ErrorCode, StorageFailure
from agent.messages import Value
from agent.storage.private_files import make_private_folder, storage_failure

T = TypeVar("T")
About = TypeVar("About", bound=Value)

# Another process may still read the version before this one.
OLD_VERSIONS_LIVE = timedelta(hours=1)
_ABOUT = b"aivista"
# How the system says that there is no room; LanceDB has no error numbers.
_NO_ROOM = ("No space left", "File too large", "quota exceeded")

_log = logging.getLogger(__name__)


class LanceFolder:
    """Tables below one folder, each with a note of what it was made from. Use one thread.

    `called` is what the log calls the folder. Everything but `close` is called within `guarded`.
    """

    def __init__(self, folder: Path, called: str) -> None:
        self._folder = folder
        self._called = called
        self._database: Any = None

    def guarded(self, work: Callable[[], T]) -> T:
        """Return what the work returns; after a failure throw everything away and try once more.

        Raises StorageFailure.
        """
        try:
            return work()
        except Exception as error:  # LanceDB raises RuntimeError, ValueError, OSError and Rust's panics alike
            if _has_no_room(error):
                # What is there is still good.
                raise StorageFailure(ErrorCode.DISK_FULL) from error
            _log.warning("%s is made anew: %s", self._called, type(error).__name__)
            self._throw_away()
        try:
            return work()
        except StorageFailure:
            raise
        except Exception as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Let go of the files."""
        self._database = None

    def _table(self, name: str) -> Any:
        """Return the table of that name, None where there is none."""
        # LanceDB's own list of tables comes in pages.
        is_there = (self._folder / f"{name}.lance").is_dir()
        return self._opened().open_table(name) if is_there else None

    def _note(self, name: str, kind: type[About]) -> About | None:
        """Return what the table was made from, None where there is none of ours."""
        table = self._table(name)
        metadata = (table.schema.metadata or {}) if table is not None else {}
        try:
            return kind.model_validate_json(metadata[_ABOUT])
        except (KeyError, ValidationError):
            return None

    def _create(self, name: str, data: Any) -> Any:
        """Return a table with this data and no other."""
        # Asked to overwrite what is not there, LanceDB prints a warning.
        mode = "overwrite" if self._table(name) is not None else "create"
        return self._opened().create_table(name, data=data, mode=mode)

    def _opened(self) -> Any:
        if self._database is None:
            # LanceDB takes a second to import: only what needs it waits for it.
            import lancedb

            make_private_folder(self._folder)
            self._database = lancedb.connect(str(self._folder))
        return self._database

    def _throw_away(self) -> None:
        self.close()
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder)

    def _failure(self, error: Exception) -> StorageFailure:
        if _has_no_room(error):
            return StorageFailure(ErrorCode.DISK_FULL)
        if isinstance(error, OSError) and error.errno is not None:
            return storage_failure(error)
        # The text of LanceDB's own errors is full of paths.
        return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{self._called}: {type(error).__name__}")


def schema_metadata(about: Value) -> dict[bytes, bytes]:
    """Return the note as a table's schema carries it."""
    return {_ABOUT: about.model_dump_json().encode()}


def _has_no_room(error: Exception) -> bool:
    return any(words in str(error) for words in _NO_ROOM)
