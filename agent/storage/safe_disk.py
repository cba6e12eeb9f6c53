"""diskcache without pickle: keys are text, values are bytes, and no row can name a file outside its folder.

With diskcache's own Disk, whoever can write into the folder can run code in the studio (CVE-2025-69872).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import Any

import diskcache  # type: ignore[import-untyped]  # it has no types of its own

_MODE_RAW, _MODE_BINARY = 1, 2
_VALUE_FILE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{28}\.val")


class UnsafeRow(OSError):
    """A row that this disk did not write: nothing of it is read, and to diskcache it counts as a value that is gone."""


class SafeDisk(diskcache.Disk):  # type: ignore[misc]  # as above
    """Stores bytes as they are and other JSON values as JSON; refuses everything else."""

    def put(self, key: object) -> tuple[str, bool]:  # pyrefly: ignore[bad-override]
        """Return the key as the database holds it."""
        if not isinstance(key, str):
            raise TypeError("a key is text")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row."""
        if not raw or not isinstance(key, str):
            raise UnsafeRow("a key that is not text")
        return key

    def store(self, value: object, read: bool, key: object = None) -> Any:
        """Return size, mode, file name and value of the row for a value."""
        if read:
            raise TypeError("a value is given whole")
        data = b"b" + value if isinstance(value, bytes) else b"j" + json.dumps(value).encode()
        return super().store(data, False, key=key)

    def fetch(self, mode: object, filename: str | None, value: object, read: bool) -> Any:
        """Return the value of a row. Raises UnsafeRow."""
        if mode == _MODE_RAW and isinstance(value, bytes):
            data = value
        elif mode == _MODE_BINARY and filename is not None and not read:
            data = super().fetch(mode, self._checked(filename), None, False)
        else:
            raise UnsafeRow(f"a row of mode {mode!r}")
        if data[:1] == b"b":
            return data[1:]
        if data[:1] == b"j":
            return json.loads(data[1:])
        raise UnsafeRow("a value without its kind")

    def remove(self, file_path: str) -> None:
        """Remove a value's file; the name comes from a row, and one outside the folder is left alone."""
        with contextlib.suppress(UnsafeRow):
            super().remove(self._checked(file_path))

    @staticmethod
    def _checked(filename: str) -> str:
        if not _VALUE_FILE.fullmatch(filename.replace(os.sep, "/")):
            raise UnsafeRow("a file outside the cache")
        return filename
