"""The key that a person keeps on their own machine: one file below the home, readable by them alone."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from pydantic import SecretStr

from agent import storage_failure, write_private_file

_NAME = "gemini.key"
_LONGEST_BYTES = 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_log = logging.getLogger(__name__)


class KeptKey:
    """The key in the file, read anew each time: another process may have changed or removed it.

    For a studio that its person alone can reach; what is here serves whoever opens the page.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / _NAME

    def read(self) -> SecretStr | None:
        """Return the key, or None where none is kept or the file cannot be read as one."""
        try:
            # A link could lead to any file, and what that holds would be sent to Google as a key.
            descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("%s cannot be read: %s", _NAME, error.strerror)
            return None
        with open(descriptor, "rb") as file:
            self._close_to_others(descriptor)
            text = file.read(_LONGEST_BYTES + 1).decode("ascii", "replace").strip()
        is_plausible = text and len(text) <= _LONGEST_BYTES and text.isascii() and text.isprintable()
        return SecretStr(text) if is_plausible else None

    def keep(self, key: SecretStr) -> None:
        """Put the key in the file, whole and durable. Raises StorageFailure."""
        try:
            write_private_file(self._path, key.get_secret_value().encode())
        except OSError as error:
            raise storage_failure(error) from error

    def remove(self) -> None:
        """Delete the file, if there is one. Raises StorageFailure."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_failure(error) from error

    def _close_to_others(self, descriptor: int) -> None:
        # Windows says by other means who may read a file.
        if os.name != "posix" or not stat.S_IMODE(os.fstat(descriptor).st_mode) & _OTHERS:
            return
        _log.warning("%s could be read by others; it is closed to them now. Please make a new key.", _NAME)
        os.fchmod(descriptor, 0o600)
