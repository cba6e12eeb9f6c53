"""Housekeeping: remove what nothing needs any more (`sweep`), and verify what is kept (`check`).

Once a day, items that were soft-deleted more than 30 days ago are removed automatically; archives that nobody fetched
within a day are removed at each run. A clock that jumps ahead must not empty the trash: an item is removed only when it
was already due at the previous run, at least a day earlier. So the clock would have to be wrong both times.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from agent.errors import AivistaError, StorageFailure
from agent.library import KEPT_FOR
from agent.messages import Value
from agent.storage.gallery import TEMPORARY
from agent.storage.housekeeping_rows import NAME, AnotherVersion, RecordsOnDisk, ReferencedFile, ReferencedPicture
from agent.storage.private_files import storage_failure
from agent.storage.process_lock import ProcessLock

PICTURES, ORIGINALS, BLOBS, SIGNS = "pictures", "originals", "blobs", "running"
# Folders in which a file is first written under a temporary name.
_WRITTEN_WHOLE = (PICTURES, ORIGINALS, BLOBS, "styles")
STYLES = Path("styles") / "index"
_STORED = re.compile(r"([0-9a-f]{64})((?:\.\d{1,4}\.(?:webp|png))?)((?:\.[a-z0-9]{1,8})?)")
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.part")
# Every file of a turn is on record at the latest when the turn ends, and no turn lasts this long.
GRACE = timedelta(hours=1)
# A download may take this long.
ARCHIVES_KEPT = timedelta(days=1)
_EVERY = timedelta(days=1)
# Folders of earlier versions: requests of MCP clients, and the vectors of pictures.
_ONCE_KEPT = ("mcp_requests", "gallery")

_log = logging.getLogger(__name__)

T = TypeVar("T")


class CheckProblem(StrEnum):
    """The kinds of problem that `check` finds in stored data."""

    DATABASE_DAMAGED = "database_damaged"
    REFERENCE_BROKEN = "reference_broken"
    PICTURE_MISSING = "picture_missing"
    PICTURE_DAMAGED = "picture_damaged"
    BLOB_MISSING = "blob_missing"
    BLOB_DAMAGED = "blob_damaged"
    FILE_UNREADABLE = "file_unreadable"
    WORKSPACE_FILE_DAMAGED = "workspace_file_damaged"
    STYLE_INDEX_UNREADABLE = "style_index_unreadable"


class Finding(Value):
    """One problem and its place: a picture or workspace file with its conversation, a file in the home, or a row."""

    trouble: CheckProblem
    what: str


class FileTotals(Value):
    """The number of files and their total size."""

    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: FileTotals) -> FileTotals:
        return FileTotals(files=self.files + other.files, size_bytes=self.size_bytes + other.size_bytes)


class CheckReport(Value):
    """The totals of stored data and the problems found; nothing was changed.

    `files` are those of the conversations' workspaces, which are stored in the database. `unnamed` are files that no
    record names, `thumbnails` small versions of pictures that are gone, `leftovers` remains of writes that never
    finished: `sweep` removes all three once they are old enough. They are reported, but they are no problem.
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
        """Whether no problem was found."""
        return not self.findings


class SweepReport(Value):
    """What was removed, or would be (`is_dry_run`), and one sentence for each failure (`problems`).

    `vectors` counts the removed vectors of deleted pictures, `signs` the lock files of processes that are gone.
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
        """All removed files together."""
        return self.pictures + self.thumbnails + self.blobs + self.leftovers

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to remove."""
        return not (self.conversations or self.total.files or self.signs or self.vectors)


def unreadable_tables(folder: Path) -> list[str]:
    """Return the style tables that cannot be read, with the kind of failure; only the column `id` is read."""
    names = sorted(path.stem for path in folder.glob("*.lance") if path.is_dir())
    return [failure for name in names if (failure := _failure_of(folder, name)) is not None]


def _failure_of(folder: Path, name: str) -> str | None:
    import lancedb

    try:
        table: Any = lancedb.connect(str(folder)).open_table(name)
        table.search().select(["id"]).limit(None).to_arrow()
    except Exception as error:  # LanceDB raises RuntimeError, ValueError, OSError and Rust's panics alike
        return f"{folder.parent.name}/{folder.name}/{name} ({type(error).__name__})"
    return None


class StoredFile(NamedTuple):
    """A file in the home. In a content folder its name is a digest.

    It is the digest of the content; for a thumbnail and for the copy that models receive, that of the source picture.
    """

    path: Path
    size_bytes: int
    written_at_s: float
    digest: str = ""
    is_thumbnail: bool = False


def stored_files(home: Path, folder: str) -> Iterator[StoredFile]:
    """Yield the files of a content folder. Raises StorageFailure when it cannot be read."""
    for one in _files(home / folder):
        match = _STORED.fullmatch(one.path.name)
        if match is not None and one.path.parent.name == match[1][:2]:
            yield one._replace(digest=match[1], is_thumbnail=bool(match[2]))


def leftovers(home: Path) -> Iterator[StoredFile]:
    """Yield the remains of unfinished writes, and packed pictures that nobody fetched."""
    for folder in _WRITTEN_WHOLE:
        yield from (one for one in _files(home / folder) if _UNFINISHED.fullmatch(one.path.name))
    yield from _files(home / TEMPORARY)


def archives(home: Path) -> Iterator[StoredFile]:
    """Yield exports that were never fetched completely, and imports that were never taken in."""
    for folder in ("exports", "imports"):
        yield from _files(home / folder)


def _files(folder: Path) -> Iterator[StoredFile]:
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise storage_failure(error) from error

    # Links are not followed: their targets are not ours.
    for place, _, names in os.walk(folder, onerror=refuse):
        for name in sorted(names):
            path = Path(place, name)
            try:
                status = path.lstat()
            except FileNotFoundError:
                # Another process removed it first.
                continue
            except OSError as error:
                raise storage_failure(error) from error
            yield StoredFile(path, status.st_size, status.st_mtime)


def is_whole(file: StoredFile) -> bool:
    """Return whether the content matches the digest in the name; it is read in chunks. Raises OSError."""
    with open(file.path, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.digest


def removed(path: Path) -> str | None:
    """Remove the file; return why that failed, or None."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path.name} could not be removed ({error.strerror or type(error).__name__})"
    return None


class Housekeeping:
    """Maintenance of one home, with or without a running studio. Every call blocks: run it on a thread.

    `now` returns the current time. Both calls raise StorageFailure when there are no records, or those of another
    version; `sweep` also when they are damaged, because they could not tell what is needed.
    """

    def __init__(
        self, home: Path, *, grace: timedelta = GRACE, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._home = home
        self._grace = max(grace, GRACE)
        self._now = now

    # Removing

    def sweep(self, *, is_dry_run: bool = False) -> SweepReport:
        """Remove for good what was deleted 30 days ago, and the files that no record names; return a report.

        Nothing younger than an hour is removed, because a running turn may be about to name it. Failures are in the
        report, and everything else is still done. A dry run only counts, and misses files that are named only by
        conversations which would be removed.
        """
        with closing(RecordsOnDisk(self._home, is_writing=not is_dry_run)) as records:
            records.refuse_another_version()
            return _Sweep(self._home, records, self._now(), self._grace, is_dry_run).run()

    # Checking

    def check(self) -> CheckReport:
        """Verify everything that is kept, without changes: the database, each file's digest, the indexes.

        A file that is written meanwhile may be reported as unnamed.
        """
        with closing(RecordsOnDisk(self._home, is_writing=False)) as records:
            return _Check(self._home, records, self._now()).run()


class _Sweep:
    def __init__(self, home: Path, records: RecordsOnDisk, now: datetime, grace: timedelta, is_dry_run: bool) -> None:
        self._home = home
        self._records = records
        self._deleted_before = now - KEPT_FOR
        self._written_before_s = (now - grace).timestamp()
        self._packed_before_s = (now - max(grace, ARCHIVES_KEPT)).timestamp()
        self._is_dry_run = is_dry_run
        self._problems: list[str] = []

    def run(self) -> SweepReport:
        conversations = self._tried(self._conversations, 0)
        pictures, thumbnails, blobs = self._tried(self._unnamed, (FileTotals(), FileTotals(), FileTotals()))
        leftover = self._tried(lambda: self._removed(self._old(leftovers(self._home))), FileTotals())
        leftover += self._tried(lambda: self._removed(self._old_archives()), FileTotals())
        return SweepReport(
            is_dry_run=self._is_dry_run,
            conversations=conversations,
            pictures=pictures,
            thumbnails=thumbnails,
            blobs=blobs,
            leftovers=leftover,
            signs=self._tried(self._signs, 0),
            vectors=self._tried(
                lambda: self._records.forget_vectors(self._deleted_before, is_dry_run=self._is_dry_run), 0
            ),
            problems=tuple(self._problems),
            free_bytes=_free_bytes(self._home),
        )

    def _old_archives(self) -> Iterable[StoredFile]:
        return [one for one in archives(self._home) if one.written_at_s < self._packed_before_s]

    def _conversations(self) -> int:
        if self._is_dry_run:
            return len(self._records.deleted_before(self._deleted_before))
        count = self._records.sweep(self._deleted_before)
        self._records.forget_words(self._deleted_before)
        return count

    def _unnamed(self) -> tuple[FileTotals, FileTotals, FileTotals]:
        aside = sorted(self._home.glob(f"{NAME}.unreadable-*"))
        if aside:
            self._problems.append(
                f"Pictures are kept: {aside[0].name} may name them. Move it away when you do not need it any more."
            )
            return FileTotals(), FileTotals(), FileTotals()
        # Listed before the records are read: a file recorded meanwhile is in this list or too young.
        stored = [self._old(stored_files(self._home, folder)) for folder in (PICTURES, ORIGINALS, BLOBS)]
        named = self._records.named_digests() - self._records.purgeable_digests(self._deleted_before)
        pictures, originals, blobs = ([one for one in files if one.digest not in named] for files in stored)
        return (
            self._removed([*(one for one in pictures if not one.is_thumbnail), *originals]),
            self._removed(one for one in pictures if one.is_thumbnail),
            self._removed(blobs),
        )

    def _signs(self) -> int:
        old = self._old(_files(self._home / SIGNS))
        if self._is_dry_run:
            # The only way to test whether a process lives removes its lock file.
            return 0
        life = ProcessLock(self._home / SIGNS)
        return sum(not life.is_alive(one.path.name) and not one.path.exists() for one in old)

    def _old(self, files: Iterable[StoredFile]) -> list[StoredFile]:
        return [one for one in files if one.written_at_s < self._written_before_s]

    def _removed(self, files: Iterable[StoredFile]) -> FileTotals:
        return _totals(one for one in files if self._is_dry_run or self._is_removed(one.path))

    def _is_removed(self, path: Path) -> bool:
        """Remove a file unless it was written again meanwhile; a concurrent writer finds it gone first."""
        aside = path.with_name(f".{path.name.lstrip('.')[:80]}.{secrets.token_hex(4)}.part")
        try:
            os.rename(path, aside)
            if aside.lstat().st_mtime >= self._written_before_s and not path.exists():
                os.rename(aside, path)
                return False
        except FileNotFoundError:
            return False
        except OSError as error:
            self._problems.append(f"{path.name} could not be removed ({error.strerror or type(error).__name__}).")
            return False
        problem = removed(aside)
        if problem is not None:
            self._problems.append(f"{problem}.")
        return problem is None

    def _tried(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except AivistaError as failure:
            self._problems.append(str(failure))
            return otherwise


class _Check:
    def __init__(self, home: Path, records: RecordsOnDisk, now: datetime) -> None:
        self._home = home
        self._records = records
        self._now = now
        self._findings: list[Finding] = []

    def run(self) -> CheckReport:
        pictures = list(stored_files(self._home, PICTURES))
        blobs = list(stored_files(self._home, BLOBS))
        before = self._now - KEPT_FOR
        # The pictures that users see, and the files they uploaded.
        originals = [one for one in pictures if not one.is_thumbnail] + list(stored_files(self._home, ORIGINALS))
        totals: dict[str, Any] = {
            "pictures": self._whole(originals, CheckProblem.PICTURE_DAMAGED),
            "blobs": self._whole(blobs, CheckProblem.BLOB_DAMAGED),
            "leftovers": _totals(leftovers(self._home)),
        }
        if self._database():
            have = {one.digest for one in originals}
            kept = list(self._records.pictures(before))
            self._missing_pictures(kept, have)
            missing = sorted(self._records.blob_digests() - {one.digest for one in blobs})
            self._findings += [Finding(trouble=CheckProblem.BLOB_MISSING, what=digest[:16]) for digest in missing]
            totals["files"] = self._workspace_files()
            named = self._records.named_digests() - self._records.purgeable_digests(before)
            totals["unnamed"] = _totals(one for one in (*originals, *blobs) if one.digest not in named)
            totals["thumbnails"] = _totals(one for one in pictures if one.is_thumbnail and one.digest not in have)
            totals |= {"conversations": self._records.conversations(), "records": len(kept)}
        unreadable = unreadable_tables(self._home / STYLES)
        self._findings += [Finding(trouble=CheckProblem.STYLE_INDEX_UNREADABLE, what=one) for one in unreadable]
        return CheckReport(findings=tuple(self._findings), free_bytes=_free_bytes(self._home), **totals)

    def _database(self) -> bool:
        """Return whether the records are reliable."""
        try:
            self._records.refuse_another_version()
            complaints = self._records.complaints()
            broken = self._records.broken_references() if not complaints else []
        except AnotherVersion:
            raise
        except StorageFailure as failure:
            complaints, broken = [str(failure.info.parameters.get("detail", failure))], []
        self._findings += [Finding(trouble=CheckProblem.DATABASE_DAMAGED, what=one) for one in complaints]
        self._findings += [Finding(trouble=CheckProblem.REFERENCE_BROKEN, what=one) for one in broken]
        return not complaints

    def _whole(self, files: Sequence[StoredFile], damaged: CheckProblem) -> FileTotals:
        for one in files:
            where = str(one.path.relative_to(self._home))
            try:
                if not is_whole(one):
                    self._findings.append(Finding(trouble=damaged, what=where))
            except FileNotFoundError:
                # Removed meanwhile; if a record needs it, it is reported below.
                continue
            except OSError as error:
                what = f"{where} ({error.strerror or type(error).__name__})"
                self._findings.append(Finding(trouble=CheckProblem.FILE_UNREADABLE, what=what))
        return _totals(files)

    def _missing_pictures(self, kept: Iterable[ReferencedPicture], have: set[str]) -> None:
        for one in kept:
            for digest in sorted((one.parts | {one.digest}) - have):
                part = "" if digest == one.digest else ", a part of its edit"
                what = f"{one.handle} in “{one.title}”{part} ({digest[:8]})"
                self._findings.append(Finding(trouble=CheckProblem.PICTURE_MISSING, what=what))

    def _workspace_files(self) -> FileTotals:
        files = list(self._records.files())
        for one in files:
            if not one.is_whole:
                what = f"{one.name} in “{one.title}”"
                self._findings.append(Finding(trouble=CheckProblem.WORKSPACE_FILE_DAMAGED, what=what))
        return _totals(files)


def _totals(files: Iterable[StoredFile | ReferencedFile]) -> FileTotals:
    sizes = [one.size_bytes for one in files]
    return FileTotals(files=len(sizes), size_bytes=sum(sizes))


def _free_bytes(home: Path) -> int | None:
    try:
        return shutil.disk_usage(home).free
    except OSError:
        return None


def tidy_if_due(home: Path, now: datetime) -> SweepReport | None:
    """Sweep the home if the last sweep is at least a day old; return what was removed. Blocks.

    The first time, and when the clock was set back since, only the time is noted. Archives older than a day are removed
    at each call: they are copies, and can be made again if the clock was wrong. Failures are logged.
    """
    _remove_old_archives(home, now)
    for folder in _ONCE_KEPT:
        shutil.rmtree(home / folder, ignore_errors=True)
    mark = home / "tidied"
    try:
        before = _noted(mark)
        if before is not None and before <= now < before + _EVERY:
            return None
        report = None if before is None else Housekeeping(home, now=lambda: min(before, now)).sweep()
        mark.touch(mode=0o600)
        os.utime(mark, (now.timestamp(), now.timestamp()))
    except (AivistaError, OSError) as error:
        _log.warning("what was deleted long ago could not be removed: %s", error)
        return None
    for problem in report.problems if report is not None else ():
        _log.warning("%s", problem)
    return report


def _remove_old_archives(home: Path, now: datetime) -> None:
    before_s = (now - ARCHIVES_KEPT).timestamp()
    try:
        problems = [removed(one.path) for one in archives(home) if one.written_at_s < before_s]
    except StorageFailure as failure:
        problems = [str(failure)]
    for problem in filter(None, problems):
        _log.warning("%s", problem)


def _noted(mark: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(mark.stat().st_mtime, UTC)
    except FileNotFoundError:
        return None
