"""What housekeeping found, and what it removed."""

from __future__ import annotations

from enum import StrEnum

from agent.messages import Value


class CheckProblem(StrEnum):
    """What can be wrong with what is kept."""

    DATABASE_DAMAGED = "database_damaged"
    REFERENCE_BROKEN = "reference_broken"
    PICTURE_MISSING = "picture_missing"
    PICTURE_DAMAGED = "picture_damaged"
    BLOB_MISSING = "blob_missing"
    BLOB_DAMAGED = "blob_damaged"
    FILE_UNREADABLE = "file_unreadable"
    WORKSPACE_FILE_DAMAGED = "workspace_file_damaged"
    STYLE_INDEX_UNREADABLE = "style_index_unreadable"
    GALLERY_INDEX_UNREADABLE = "gallery_index_unreadable"


class Finding(Value):
    """One thing that is wrong, and where: a picture or a workspace's file and its conversation, a file below the home,
    or a row."""

    trouble: CheckProblem
    what: str


class FileTotals(Value):
    """Some files and how large they are together."""

    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: FileTotals) -> FileTotals:
        return FileTotals(files=self.files + other.files, size_bytes=self.size_bytes + other.size_bytes)


class CheckReport(Value):
    """What there is and what is wrong with it; nothing was changed.

    `files` are those of the conversations' workspaces, which stand in the database.
    `unnamed` are files that no record names, `thumbnails` small versions of pictures that are gone, `leftovers` what
    writes left behind that never ended: `sweep` removes all three once they are old enough. No fault, but told.
    """

    findings: tuple[Finding, ...] = ()
    conversations: int = 0
    records: int = 0
    files: FileTotals = FileTotals()
    pictures: FileTotals = FileTotals()
    blobs: FileTotals = FileTotals()
    unnamed: FileTotals = FileTotals()
    thumbnails: FileTotals = FileTotals()
    leftovers: FileTotals = FileTotals()
    free_bytes: int | None = None

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


class SweepReport(Value):
    """What was removed, or would be (`is_dry_run`), and what could not be: one sentence each (`problems`).

    `vectors` counts what the gallery's index forgot, `signs` the signs of life of processes that are gone.
    """

    is_dry_run: bool = False
    conversations: int = 0
    pictures: FileTotals = FileTotals()
    thumbnails: FileTotals = FileTotals()
    blobs: FileTotals = FileTotals()
    leftovers: FileTotals = FileTotals()
    signs: int = 0
    vectors: int = 0
    problems: tuple[str, ...] = ()
    free_bytes: int | None = None

    @property
    def total(self) -> FileTotals:
        """All files together."""
        return self.pictures + self.thumbnails + self.blobs + self.leftovers

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to remove."""
        return not (self.conversations or self.total.files or self.signs or self.vectors)
