"""Folders and files that only their user may read; a file is written completely or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import IO, BinaryIO

from filelock import FileLock

from agent.cancellation import shielded
from agent.errors import ErrorCode, StorageFailure

# A file-size limit reports EFBIG, a quota EDQUOT, when there is no room.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# The errors of network or FUSE folders for operations that they do not support.
_MISSING = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})

_LOCK_TIMEOUT_S = 30.0
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SUFFIX = re.compile(r"[a-z0-9.-]{0,24}")


def is_out_of_room(error: OSError) -> bool:
    """Whether a file operation failed because the disk, a quota or a limit leaves no room."""
    return error.errno in _NO_ROOM


def storage_failure(error: OSError) -> StorageFailure:
    """Return the error for the operator after a failed file operation; it does not contain the path."""
    if is_out_of_room(error):
        return StorageFailure(ErrorCode.DISK_FULL)
    return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=error.strerror or type(error).__name__)


@contextlib.contextmanager
def translated_os_errors() -> Iterator[None]:
    """Raise `storage_failure` in place of an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise storage_failure(error) from error


def make_private_folder(folder: Path) -> None:
    """Create the folder and its missing parents, accessible only to their user. Raises OSError."""
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def new_private_file(path: Path) -> BinaryIO:
    """Create a file with its folder, accessible only to their user; return it open. Raises OSError."""
    make_private_folder(path.parent)
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


def file_state(path: Path) -> object:
    """Return a value that changes when the file changes; None when the file does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def is_unreadable(error: BaseException | None) -> bool:
    """Whether SQLite failed because a file is no database, or a damaged one."""
    # The low byte is the primary error code; the rest is the extended code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


def aside_path(path: Path) -> Path:
    """Return where something unreadable at this path is moved now."""
    return path.with_name(f"{path.name}.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")


def rename_database(path: Path, new: Path) -> None:
    """Rename an SQLite database with its log files. Raises OSError."""
    # The log files first: a new database at the old path must not find them.
    for ending in ("-wal", "-shm", ""):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(new.with_name(new.name + ending))


def remove_database(path: Path) -> None:
    """Remove an SQLite database with its log files. Raises OSError."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def owner_key(owner: str) -> str:
    """Return the owner's name for files and tables: a hash, so no path or query can be injected."""
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@contextlib.contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Lock the file against other threads and processes, which must all use this. Raises OSError.

    Where the file system cannot lock, nothing is locked: a single studio still works there.
    """
    make_private_folder(path.parent)
    # The lock is a separate file that stays, because the file itself is replaced.
    lock = path.with_name(f".{path.name}.lock")
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(FileLock(lock, timeout=_LOCK_TIMEOUT_S, mode=0o600, preserve_lock_file=True))
        except OSError as error:
            if error.errno not in _MISSING:
                raise
        yield


def write_private_file(path: Path, data: bytes) -> None:
    """Write the bytes to the path, durably and atomically; a failure leaves nothing behind. Raises OSError."""
    temporary = _write_aside(path, data)
    try:
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _write_aside(path: Path, data: bytes) -> Path:
    """Write the bytes durably beside the path that they are meant for; return where. Raises OSError."""
    # Housekeeping knows this name: it removes unfinished files after an hour.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with new_private_file(temporary) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sync_folder(folder: Path) -> None:
    # Without this, a power cut can undo the rename. Windows cannot open a folder, and many network folders cannot sync.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _renew(path: Path, data: bytes) -> None:
    # Housekeeping removes files that are old and that no record names.
    try:
        os.utime(path)
    except FileNotFoundError:
        write_private_file(path, data)


@dataclass(frozen=True)
class StagedFile:
    """Bytes that are on disk but not in their final place: invisible until `keep`."""

    digest: str
    path: Path
    temporary: Path

    def keep(self) -> None:
        """Move the file to its final place. Raises StorageFailure."""
        with translated_os_errors():
            os.replace(self.temporary, self.path)
            _sync_folder(self.path.parent)

    def drop(self) -> None:
        """Remove the file unless it was kept."""
        with contextlib.suppress(OSError):
            self.temporary.unlink(missing_ok=True)


class ContentFolder:
    """Files named by the SHA-256 of their content, `ab/abcd….suffix`. Calls block: run them on a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, digest: str, suffix: str) -> Path:
        """Return the path of the file. Raises ValueError for anything but a digest and a plain suffix."""
        if not _DIGEST.fullmatch(digest) or not _SUFFIX.fullmatch(suffix):
            raise ValueError("not the name of a stored file")
        return self._folder / digest[:2] / f"{digest}{suffix}"

    def write(self, data: bytes, suffix: str) -> str:
        """Store the bytes and return their digest; an intact existing file is not written again.

        Raises StorageFailure.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest, suffix)
        with translated_os_errors():
            # A damaged file is replaced: uploading a picture again repairs it.
            if self.read(digest, suffix) is None:
                write_private_file(path, data)
            else:
                _renew(path, data)
        return digest

    def stage(self, data: bytes, suffix: str) -> StagedFile:
        """Write the bytes beside their final place, to be kept or dropped later. Raises StorageFailure."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest, suffix)
        with translated_os_errors():
            return StagedFile(digest, path, _write_aside(path, data))

    def read(self, digest: str, suffix: str) -> bytes | None:
        """Return the bytes, or None when they are missing, unreadable or do not match the digest."""
        try:
            data = self.path(digest, suffix).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None


_MB = 1 << 20
ROWS_BYTES = 8 * _MB
"""The space for the records of a call: rows, write-ahead logs, checkpoints and the trace."""

STANDING_BYTES = 2 * _MB
_BLOCK = bytes(_MB)


class DiskReserve:
    """The disk space that this process has reserved below a folder.

    Unnamed files hold it, so that it is free again when the process dies. A caller that must store something paid for
    and finds the disk full calls `give_back` and tries once more.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._files: list[IO[bytes]] = []
        self._lock = threading.Lock()
        self._taking = asyncio.Lock()
        self._standing: IO[bytes] | None = None

    @contextlib.asynccontextmanager
    async def hold(self, size_bytes: int) -> AsyncIterator[None]:
        """Reserve space while the context is open. Raises StorageFailure(NO_ROOM_TO_PAINT) when there is none.

        A call that is cancelled while it waits for the disk reserves nothing.
        """
        # One after the other: the pictures of one request are requested in its order.
        async with self._taking:
            file = await asyncio.to_thread(self._take, size_bytes)
        try:
            yield
        finally:
            # File systems can delay this too, for example behind a sync of the records.
            await shielded(asyncio.ensure_future(asyncio.to_thread(self._free, file)))

    async def stand_by(self) -> None:
        """Reserve a little space permanently, if there is any, so that the end of a turn can always be recorded."""
        if self._standing is None or self._standing.closed:
            with contextlib.suppress(StorageFailure):
                self._standing = await asyncio.to_thread(self._take, STANDING_BYTES)

    def give_back(self) -> bool:
        """Free all reserved space; return whether there was any."""
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
    """Allocate so many bytes of the disk to the file. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
            return
        except OSError as error:
            # ZFS and some C libraries report this when they do not support it.
            if error.errno not in {errno.EINVAL, *_MISSING}:
                raise
    # Where files may be sparse, only written bytes take space.
    for _ in range(ceil(size_bytes / len(_BLOCK))):
        file.write(_BLOCK)
    file.flush()
