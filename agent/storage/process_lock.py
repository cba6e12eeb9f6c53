"""Tell which of the processes that share a home are still alive.

Each holds a lock on a file of its own, which the operating system releases when the process dies, however it dies. A
process id would not do: in a container it is the same after every start.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from pathlib import Path

from agent.storage.private_files import make_private_folder, translated_os_errors

_NAME = re.compile(r"[0-9a-f]{32}")


class ProcessLock:
    """The lock file of this process, held from `hold` until `release`; `is_alive` checks other processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self.name = secrets.token_hex(16)

    def hold(self) -> None:
        """Create and lock the file. Raises StorageFailure when the folder cannot be written."""
        with translated_os_errors():
            make_private_folder(self._folder)
            self._descriptor = os.open(self._folder / self.name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _try_lock(self._descriptor)

    def release(self) -> None:
        """Release the lock and remove the file."""
        if self._descriptor is None:
            return
        os.close(self._descriptor)
        self._descriptor = None
        (self._folder / self.name).unlink(missing_ok=True)

    def is_alive(self, name: str) -> bool:
        """Return whether the process with that lock file still runs; the file of a dead process is removed."""
        if name == self.name:
            return self._descriptor is not None
        if not _NAME.fullmatch(name):
            return False
        path = self._folder / name
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:
            return False
        try:
            if not _try_lock(descriptor):
                return True
        finally:
            os.close(descriptor)
        # Windows refuses while another process checks at the same moment; the next start removes it.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        return False


def _try_lock(descriptor: int) -> bool:
    """Return whether the lock was free; it is held until the descriptor is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
