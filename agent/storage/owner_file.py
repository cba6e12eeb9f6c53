"""One small private JSON file below the home with an entry for each owner."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from agent.settings import OPERATOR
from agent.storage.private_files import file_state, locked_file, storage_failure, write_private_file

_log = logging.getLogger(__name__)

T = TypeVar("T")

# How the names of owners begin whom only a cookie tells apart.
VISITOR = "visitor-"


class OwnerFile(Generic[T]):
    """The entries of all owners, of the `most_owners` that changed theirs last.

    The operator's is never let go of, and visitors' go before those of people with an account: anybody who comes can
    make themselves as many visitors as they like. The file is read again once it was written, by this process or by
    another one, and changed by one of them at a time. One whose words make no sense counts as empty, and is put aside
    as `….bad` when it is written anew.
    """

    def __init__(self, path: Path, adapter: TypeAdapter[dict[str, T]], most_owners: int) -> None:
        self._path = path
        self._adapter = adapter
        self._most_owners = most_owners
        self._kept: tuple[object, dict[str, T]] | None = None

    async def of(self, owner: str) -> T | None:
        """Return the owner's entry, None when there is none, or while the file cannot be read."""
        if self._kept is None or self._kept[0] != file_state(self._path):
            await asyncio.to_thread(self._load)
        return self._kept[1].get(owner) if self._kept is not None else None

    async def change(self, owner: str, work: Callable[[T | None], T]) -> T:
        """Put what `work` makes of the owner's entry in its place, and return it; it survives a restart then.

        What `work` raises leaves the file as it was. Raises StorageFailure.
        """
        return await asyncio.to_thread(self._change_now, owner, work)

    def _load(self) -> None:
        # Before it is read: what is written meanwhile is read the next time.
        state = file_state(self._path)
        try:
            self._kept = state, self._read() or {}
        except OSError as error:
            # Perhaps it can be read the next time.
            _log.warning("%s cannot be read: %s", self._path.name, error.strerror)

    def _change_now(self, owner: str, work: Callable[[T | None], T]) -> T:
        try:
            with locked_file(self._path):
                found = self._read()
                kept = found or {}
                entry = work(kept.pop(owner, None))
                newest = _newest({**kept, owner: entry}, self._most_owners)
                if found is None:
                    os.replace(self._path, self._path.with_name(f"{self._path.name}.bad"))
                write_private_file(
                    self._path, json.dumps(self._adapter.dump_python(newest, mode="json"), indent=1).encode()
                )
                self._kept = file_state(self._path), newest
                return entry
        except OSError as error:
            raise storage_failure(error) from error

    def _read(self) -> dict[str, T] | None:
        """Return the entries, None when the file's words make no sense. Raises OSError."""
        try:
            return self._adapter.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValidationError:
            _log.warning("%s is unreadable and counts as empty", self._path.name)
            return None


def _newest(kept: dict[str, T], most: int) -> dict[str, T]:
    """Return the entries without those that are too many; the last ones are the newest."""
    *old, _ = kept
    visitors_first = sorted((one for one in old if one != OPERATOR), key=lambda one: not one.startswith(VISITOR))
    gone = set(visitors_first[: max(0, len(kept) - most)])
    return {owner: entry for owner, entry in kept.items() if owner not in gone}
