"""An archive from outside, read as if by an enemy's hand: nothing is unpacked by its name, nothing is believed.

Names are those of the format alone, so none of them can lead out of a folder. Sizes are compared with what is declared
before a byte is unpacked, and again while it is. Calls block: run them on a thread.
"""

from __future__ import annotations

import hashlib
import io
import stat
import struct
import zipfile
import zlib
from types import TracebackType
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, JsonValue

from agent.archive.format import (
    FORMAT,
    INDEX,
    MANIFEST,
    VERSION,
    ArchivedConversation,
    ArchivedFile,
    ArchiveLimits,
    Manifest,
    is_file_name,
    is_folder_name,
)
from agent.archive.json_guard import parsed
from agent.archive.refusals import archive_too_large, damaged, unreadable, unsafe
from agent.errors import ErrorCode, RequestRefused

# What Python's zipfile raises of hostile bytes, as found by feeding it such.
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ArithmeticError, LookupError, RuntimeError, ValueError),
)
_ENCRYPTED = 0x1 | 0x40
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENDINGS = ("json", "md", "html")
_PIECE_BYTES = 1 << 20


class _Head(BaseModel):
    """What is asked of a manifest before anything else, whatever version it is of."""

    model_config = ConfigDict(extra="ignore")

    format: JsonValue = None
    version: JsonValue = None


class ArchiveReader:
    """An open archive whose list of files is the one that its manifest gives. Use it as a context manager.

    Raises RequestRefused, when it is made and at every call: what it says is fit for whoever sent the archive.
    """

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._limits = limits
        file.seek(0, io.SEEK_END)
        self._size_bytes = file.tell()
        if self._size_bytes > limits.archive_bytes:
            raise archive_too_large(limits.archive_bytes)
        file.seek(0)
        if file.read(2) != b"PK":
            raise unreadable("not a ZIP")
        try:
            self._zip = zipfile.ZipFile(_Careful(file, limits))
        except _BROKEN as error:
            raise unreadable(str(error)) from error
        # What all that is in it may come to.
        self.most_bytes = min(limits.archive_bytes, max(limits.ratio_from_bytes, limits.ratio * self._size_bytes))
        self._entries = self._checked_entries()
        self.manifest = self._read_manifest()
        self.files = self._checked_files()

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Return what a file of the manifest holds, checked against its size and digest."""
        file = self.files[name]
        data = self._unpacked(name)
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise damaged(name, "another digest")
        return data

    def conversation(self, folder: str) -> ArchivedConversation:
        """Return the conversation of a folder; how its parts fit together is not looked at here."""
        name = f"{folder}/conversation.json"
        return parsed(self.read(name), ArchivedConversation, name, self._limits)

    @property
    def pictures(self) -> dict[str, str]:
        """The names of the pictures' files by their digests."""
        return {one.sha256: one.name for one in self.files.values() if one.name.startswith("pictures/")}

    @property
    def blobs(self) -> frozenset[str]:
        """The digests of the large signatures."""
        return frozenset(one.sha256 for one in self.files.values() if one.name.startswith("blobs/"))

    def blob(self, digest: str) -> bytes:
        """Return a large signature."""
        return self.read(f"blobs/{digest}")

    @property
    def workspace_files(self) -> dict[str, int]:
        """The sizes in bytes of what the workspaces' files hold, by digest."""
        return {one.sha256: one.size_bytes for one in self.files.values() if one.name.startswith("files/")}

    def workspace_file(self, digest: str) -> bytes:
        """Return what a file of a workspace holds."""
        return self.read(f"files/{digest}")

    def _checked_entries(self) -> dict[str, zipfile.ZipInfo]:
        limits, entries = self._limits, self._zip.infolist()
        if len(entries) > limits.files:
            raise archive_too_large(limits.archive_bytes)
        files = {}
        for entry in entries:
            _check_entry(entry)
            if entry.is_dir():
                continue
            if entry.filename in files:
                raise unsafe(entry.filename)
            if entry.file_size > limits.file_bytes:
                raise archive_too_large(limits.file_bytes)
            files[entry.filename] = entry
        if sum(entry.file_size for entry in files.values()) > self.most_bytes:
            raise archive_too_large(self.most_bytes)
        return files

    def _read_manifest(self) -> Manifest:
        if MANIFEST not in self._entries:
            raise unreadable("no manifest")
        data = self._unpacked(MANIFEST)
        try:
            head = parsed(data, _Head, MANIFEST, self._limits)
        except RequestRefused as error:
            raise unreadable(error.info.provider_detail) from error
        if head.format != FORMAT:
            raise unreadable("another format")
        if isinstance(head.version, int) and head.version > VERSION:
            raise RequestRefused(ErrorCode.ARCHIVE_NEWER)
        return parsed(data, Manifest, MANIFEST, self._limits)

    def _checked_files(self) -> dict[str, ArchivedFile]:
        listed: dict[str, ArchivedFile] = {}
        for file in self.manifest.files:
            if file.name in listed or file.name == MANIFEST:
                raise damaged(file.name, "listed twice")
            if file.name not in self._entries:
                raise damaged(file.name, "missing")
            if file.size_bytes != self._entries[file.name].file_size:
                raise damaged(file.name, "another size")
            if file.name.startswith(("pictures/", "blobs/", "files/")) and file.sha256 not in file.name:
                raise damaged(file.name, "another digest")
            listed[file.name] = file
        for name in self._entries:
            if name not in listed and name != MANIFEST:
                raise damaged(name, "not in the manifest")
        _check_folders(self.manifest, listed)
        return listed

    def _unpacked(self, name: str) -> bytes:
        entry = self._entries[name]
        data = bytearray()
        try:
            with self._zip.open(entry) as file:
                while piece := file.read(_PIECE_BYTES):
                    data += piece
                    if len(data) > entry.file_size:
                        break
        except _BROKEN as error:
            raise damaged(name, str(error)) from error
        if len(data) != entry.file_size:
            raise damaged(name, "another size")
        return bytes(data)


class _Careful(io.BufferedIOBase):
    """The file for zipfile, which reads the whole list of files at once, as long as the archive claims it to be."""

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._file = file
        self._limits = limits

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most so many bytes, or those to the end. Raises RequestRefused for more than a list may have."""
        most = self._limits.directory_bytes
        data = self._file.read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(data) > most:
            raise archive_too_large(self._limits.archive_bytes)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move in the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the place in the file."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Return that it is."""
        return True

    def readable(self) -> bool:
        """Return that it is."""
        return True


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    # zipfile cuts a name at a NUL and knows folders by their slash.
    is_known = is_folder_name(name) and not entry.file_size if entry.is_dir() else is_file_name(name)
    if entry.orig_filename != name or not is_known:
        raise unsafe(entry.orig_filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if entry.is_dir() else stat.S_IFREG):
        raise unsafe(name)
    if entry.flag_bits & _ENCRYPTED:
        raise RequestRefused(ErrorCode.ARCHIVE_ENCRYPTED)
    if entry.compress_type not in _PACKINGS:
        raise unreadable("packed in another way")


def _check_folders(manifest: Manifest, files: dict[str, ArchivedFile]) -> None:
    """Hold the conversations against their files: one folder each, and no file of a conversation that is not listed."""
    folders = [one.folder for one in manifest.conversations]
    if len(set(folders)) != len(folders):
        raise damaged(MANIFEST, "a folder twice")
    for folder in folders:
        for ending in _ENDINGS:
            if f"{folder}/conversation.{ending}" not in files:
                raise damaged(f"{folder}/conversation.{ending}", "missing")
    if INDEX not in files:
        raise damaged(INDEX, "missing")
    for name in files:
        if name.startswith("conversations/") and name.rpartition("/")[0] not in folders:
            raise damaged(name, "of no conversation")
