"""The ZIP that is written: the same things give the same bytes, and it is on the disk as it grows, never in memory."""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from typing import BinaryIO

from agent.archive.format import (
    FORMAT,
    MANIFEST,
    VERSION,
    ArchivedFile,
    ArchiveLanguage,
    ArchiveLimits,
    ListedConversation,
    Manifest,
)
from agent.archive.refusals import export_too_large

# The first moment that a ZIP can name: when something was written says nothing of what it is.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_PRIVATE_FILE = 0o100600 << 16
_UNIX = 3


class ArchiveWriter:
    """An archive that is being made. Calls block: run them on a thread, one after the other.

    Raises RequestRefused(EXPORT_TOO_LARGE) when it would grow beyond what can be taken in again, and OSError.
    """

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._zip = zipfile.ZipFile(file, "w")
        self._limits = limits
        self._files: list[ArchivedFile] = []
        self._names: set[str] = set()
        self._bytes = 0
        # Of workspaces' files: each once, and as often as it is named.
        self._stored_bytes = self._named_bytes = 0

    def __contains__(self, name: str) -> bool:
        """Whether a file of this name was added."""
        return name in self._names

    def add(self, name: str, data: bytes, *, is_deflated: bool) -> None:
        """Add a file; what is compressed already is stored as it is."""
        limits = self._limits
        self._bytes += len(data)
        is_full = self._bytes > limits.archive_bytes or len(self._files) + 2 > limits.files
        is_long = len(data) > (limits.json_bytes if name.endswith(".json") else limits.file_bytes)
        if is_full or is_long:
            raise export_too_large(limits.archive_bytes if is_full else limits.file_bytes)
        self._write(name, data, is_deflated=is_deflated)
        digest = hashlib.sha256(data).hexdigest()
        self._files.append(ArchivedFile(name=name, size_bytes=len(data), sha256=digest))
        self._names.add(name)

    def add_file(self, name: str, data: bytes) -> None:
        """Add a file of a workspace, or count one that is there already: it is kept as often as workspaces name it.

        It is not deflated: many of zeros, or the same one many times, are a bomb to whoever takes them in.
        """
        if name not in self._names:
            self.add(name, data, is_deflated=False)
            self._stored_bytes += len(data)
        self._named_bytes += len(data)
        limits = self._limits
        most = min(limits.archive_bytes, max(limits.ratio_from_bytes, limits.ratio * self._stored_bytes))
        if self._named_bytes > most:
            raise export_too_large(most)

    def finish(
        self,
        app_version: str,
        language: ArchiveLanguage,
        conversations: tuple[ListedConversation, ...],
        lost: frozenset[str],
    ) -> None:
        """Write the manifest and end the archive."""
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            app_version=app_version,
            created_at=max((one.updated_at for one in conversations), default=None),
            language=language,
            conversations=conversations,
            files=tuple(self._files),
            lost=tuple(sorted(lost)),
        )
        self._write(MANIFEST, manifest.model_dump_json(indent=1).encode(), is_deflated=True)
        self._zip.close()

    def abandon(self) -> None:
        """Let go of an archive that came to nothing; its file is the caller's to remove."""
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()

    def _write(self, name: str, data: bytes, *, is_deflated: bool) -> None:
        entry = zipfile.ZipInfo(name, _MOMENT)
        entry.compress_type = zipfile.ZIP_DEFLATED if is_deflated else zipfile.ZIP_STORED
        entry.create_system = _UNIX
        entry.external_attr = _PRIVATE_FILE
        self._zip.writestr(entry, data, compresslevel=6)
