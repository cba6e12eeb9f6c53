"""Room on the disk that is set aside before a call is paid for, so that its answer can be stored when it comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator
from math import ceil
from pathlib import Path
from typing import IO

from agent.errors import ErrorCode, StorageFailure
from agent.storage.private_files import is_out_of_room, make_private_folder, storage_failure

_MB = 1 << 20
ROWS_BYTES = 8 * _MB
"""What the records of a call may take: rows, write-ahead logs, checkpoints and the trace."""

STANDING_BYTES = 2 * _MB
_BLOCK = bytes(_MB)


class DiskReserve:
    """The room that this process has set aside below a folder.

    It is held by files without a name, so that it is free again when the process dies. Whoever must store something
    that was paid for and finds the disk full gives it back (`give_back`) and tries once more.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._files: list[IO[bytes]] = []
        self._lock = threading.Lock()
        self._taking = asyncio.Lock()
        self._standing: IO[bytes] | None = None

    @contextlib.asynccontextmanager
    async def hold(self, size_bytes: int) -> AsyncIterator[None]:
        """Set room aside for as long as the context lasts. Raises StorageFailure(NO_ROOM_TO_PAINT) when there is none.

        A call that is cancelled while it waits for the disk sets nothing aside.
        """
        # One after the other: pictures of one request are asked for in its order.
        async with self._taking:
            file = await asyncio.to_thread(self._take, size_bytes)
        try:
            yield
        finally:
            self._free(file)

    async def stand_by(self) -> None:
        """Hold a little room from now on, if there is any, so that the end of a turn can always be put on record."""
        if self._standing is None or self._standing.closed:
            with contextlib.suppress(StorageFailure):
                self._standing = await asyncio.to_thread(self._take, STANDING_BYTES)

    def give_back(self) -> bool:
        """Free all that is set aside; return whether there was anything."""
        with self._lock:
            files, self._files = self._files, []
        for file in files:
            file.close()
        return bool(files)

    def _take(self, size_bytes: int) -> IO[bytes]:
        file: IO[bytes] | None = None
        try:
            make_private_folder(self._home)
            file = tempfile.TemporaryFile(dir=self._home)  # noqa: SIM115
            _allocate(file, size_bytes)
        except OSError as error:
            if file is not None:
                file.close()
            if not is_out_of_room(error):
                raise storage_failure(error) from error
            free_mb = shutil.disk_usage(self._home).free // _MB
            raise StorageFailure(ErrorCode.NO_ROOM_TO_PAINT, needed=ceil(size_bytes / _MB), free=free_mb) from error
        with self._lock:
            self._files.append(file)
        return file

    def _free(self, file: IO[bytes]) -> None:
        with self._lock:
            if file in self._files:
                self._files.remove(file)
        file.close()


def _allocate(file: IO[bytes], size_bytes: int) -> None:
    """Have the disk give so many bytes to the file. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size_bytes)
        return
    # Only what is written takes room where a file may have holes.
    for _ in range(ceil(size_bytes / len(_BLOCK))):
        file.write(_BLOCK)
    file.flush()
