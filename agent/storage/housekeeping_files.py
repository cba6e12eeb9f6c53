"""The files below a home, as housekeeping sees them. Every call blocks."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent.storage.gallery import TEMPORARY
from agent.storage.private_files import storage_failure

PICTURES, ORIGINALS, BLOBS, SIGNS = "pictures", "originals", "blobs", "running"
# Folders in which files are written under another name first.
_WRITTEN_WHOLE = (PICTURES, ORIGINALS, BLOBS, "styles")
_STORED = re.compile(r"([0-9a-f]{64})((?:\.\d{1,4}\.(?:webp|png))?)((?:\.[a-z0-9]{1,8})?)")
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_CHUNK_BYTES = 1 << 20


class StoredFile(NamedTuple):
    """A file that is named by a digest: of what it holds or, for a thumbnail and the copy that models are sent, of the
    picture it was made from."""

    path: Path
    digest: str
    is_thumbnail: bool
    size_bytes: int
    written_at_s: float


class Leftover(NamedTuple):
    """A file that a write left behind."""

    path: Path
    size_bytes: int
    written_at_s: float


def stored_files(home: Path, folder: str) -> Iterator[StoredFile]:
    """Return the files of a content folder. Raises StorageFailure when it cannot be read."""
    for path, status in _files(home / folder):
        match = _STORED.fullmatch(path.name)
        if match is not None and path.parent.name == match[1][:2]:
            yield StoredFile(path, match[1], bool(match[2]), status.st_size, status.st_mtime)


def leftovers(home: Path) -> Iterator[Leftover]:
    """Return what writes left behind that never ended, and pictures packed that nobody took away."""
    for folder in _WRITTEN_WHOLE:
        for path, status in _files(home / folder):
            if _UNFINISHED.fullmatch(path.name):
                yield Leftover(path, status.st_size, status.st_mtime)
    for path, status in _files(home / TEMPORARY):
        yield Leftover(path, status.st_size, status.st_mtime)


def archives(home: Path) -> Iterator[Leftover]:
    """Return exports that nobody fetched to their end, and imports that were never taken in."""
    for folder in ("exports", "imports"):
        for path, status in _files(home / folder):
            yield Leftover(path, status.st_size, status.st_mtime)


def signs(home: Path) -> Iterator[Leftover]:
    """Return the signs of life of processes, living and dead."""
    for path, status in _files(home / SIGNS):
        yield Leftover(path, status.st_size, status.st_mtime)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise storage_failure(error) from error

    # Links are not followed: what lies behind one is not ours.
    for place, _, names in os.walk(folder, onerror=refuse):
        for name in sorted(names):
            path = Path(place, name)
            try:
                status = path.lstat()
            except FileNotFoundError:
                # Somebody was faster.
                continue
            except OSError as error:
                raise storage_failure(error) from error
            yield path, status


def is_whole(file: StoredFile) -> bool:
    """Return whether the file holds what its name says; it is read piece by piece. Raises OSError."""
    digest = hashlib.sha256()
    with open(file.path, "rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest() == file.digest


def removed(path: Path) -> str | None:
    """Remove the file; return what prevented that."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path.name} could not be removed ({error.strerror or type(error).__name__})"
    return None
