"""A sign of life: which of the processes that share a home are still there.

A file whose lock the system itself lets go when the process dies, however it dies. A process number would not do:
in a container it is the same after every start.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from pathlib import Path

from agent.storage.private_files import make_private_folder

_NAME = re.compile(r"[0-9a-f]{32}")


class ProcessLock:
    """The lock of this process, its sign of life, held from `hold` until `release`; others are asked after with
    `is_alive`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self.name = secrets.token_hex(16)

    def hold(self) -> None:
        """Show the sign. Raises OSError when the folder cannot be written."""
        make_private_folder(self._folder)
        self._descriptor = os.open(self._folder / self.name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _try_lock(self._descriptor)

    def release(self) -> None:
        """Take the sign away."""
        if self._descriptor is None:
            return
        os.close(self._descriptor)
        self._descriptor = None
        (self._folder / self.name).unlink(missing_ok=True)

    def is_alive(self, name: str) -> bool:
        """Return whether the process of that sign still runs; the sign of a dead one is cleared away."""
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
        # Windows refuses while somebody else asks at the same moment; the next start clears it away.
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
