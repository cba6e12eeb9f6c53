"""One small private JSON file below the home with an entry for each owner."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from agent.storage.private_files import storage_failure, write_private_file

_log = logging.getLogger(__name__)

T = TypeVar("T")


class OwnerFile(Generic[T]):
    """The entries of all owners, of the `most_owners` that changed theirs last.

    The file is read when first needed, and again before each change, since another process may have written it. One
    that cannot be read counts as empty.
    """

    def __init__(self, path: Path, adapter: TypeAdapter[dict[str, T]], most_owners: int) -> None:
        self._path = path
        self._adapter = adapter
        self._most_owners = most_owners
        self._lock = threading.Lock()
        self._kept: dict[str, T] | None = None

    async def of(self, owner: str) -> T | None:
        """Return the owner's entry, None when there is none."""
        if self._kept is None:
            await asyncio.to_thread(self._load)
        return (self._kept or {}).get(owner)

    async def change(self, owner: str, work: Callable[[T | None], T]) -> T:
        """Put what `work` makes of the owner's entry in its place, and return it; it survives a restart then.

        What `work` raises leaves the file as it was. Raises StorageFailure.
        """
        return await asyncio.to_thread(self._change_now, owner, work)

    def _load(self) -> None:
        with self._lock:
            if self._kept is None:
                self._kept = self._read()

    def _change_now(self, owner: str, work: Callable[[T | None], T]) -> T:
        with self._lock:
            kept = self._read()
            entry = work(kept.pop(owner, None))
            newest = dict(list({**kept, owner: entry}.items())[-self._most_owners :])
            data = json.dumps(self._adapter.dump_python(newest, mode="json"), indent=1).encode()
            try:
                write_private_file(self._path, data)
            except OSError as error:
                raise storage_failure(error) from error
            self._kept = newest
            return entry

    def _read(self) -> dict[str, T]:
        try:
            return self._adapter.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("%s cannot be read: %s", self._path.name, error.strerror)
        except ValidationError:
            _log.warning("%s is unreadable and counts as empty", self._path.name)
        return {}
