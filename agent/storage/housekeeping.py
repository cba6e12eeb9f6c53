"""Keeping house: what nothing needs any more is removed (`sweep`), and what is kept is looked through (`check`)."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from agent.errors import AivistaError, StorageFailure
from agent.library import KEPT_FOR
from agent.storage.housekeeping_files import (
    BLOBS,
    ORIGINALS,
    PICTURES,
    SIGNS,
    Leftover,
    StoredFile,
    archives,
    is_whole,
    leftovers,
    removed,
    signs,
    stored_files,
)
from agent.storage.housekeeping_rows import NAME, AnotherVersion, KeptPicture, KeptRecords
from agent.storage.housekeeping_values import CheckProblem, CheckReport, FileTotals, Finding, SweepReport
from agent.storage.liveness import LifeSign

T = TypeVar("T")
_File = TypeVar("_File", StoredFile, Leftover)

# What a turn writes is on record when the turn ends at the latest, and no turn lasts so long.
GRACE = timedelta(hours=1)
# A download may take as long.
ARCHIVES_KEPT = timedelta(days=1)


class Housekeeping:
    """Looks after one home, whether a studio runs on it or not. Every call blocks: run it on a thread.

    `now` tells the time. Both calls raise StorageFailure when there are no records, or those of another version;
    `sweep` also when they are damaged: they could not tell what is needed.
    """

    def __init__(
        self, home: Path, *, grace: timedelta = GRACE, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._home = home
        self._grace = max(grace, GRACE)
        self._now = now

    # Removing

    def sweep(self, *, is_dry_run: bool = False) -> SweepReport:
        """Remove for good what was deleted 30 days ago, and the files that no record names; return what that was.

        Nothing younger than an hour is removed, for a turn that runs now may be about to name it. What fails is in the
        report, and everything else is done all the same. A dry run counts, without the files that only a conversation
        names which would go.
        """
        records = KeptRecords(self._home, is_writing=not is_dry_run)
        try:
            records.refuse_another_version()
            return _Sweep(self._home, records, self._now(), self._grace, is_dry_run).run()
        finally:
            records.close()

    # Looking

    def check(self) -> CheckReport:
        """Look through everything that is kept, and change nothing: the database, each file's digest, the indexes.

        A file that is written while this runs may be told as one that nothing names.
        """
        records = KeptRecords(self._home, is_writing=False)
        try:
            return _Check(self._home, records, self._now()).run()
        finally:
            records.close()


class _Sweep:
    def __init__(self, home: Path, records: KeptRecords, now: datetime, grace: timedelta, is_dry_run: bool) -> None:
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
            vectors=self._tried(self._vectors, 0),
            problems=tuple(self._problems),
            free_bytes=_free_bytes(self._home),
        )

    def _old_archives(self) -> Iterable[Leftover]:
        return [one for one in archives(self._home) if one.written_at_s < self._packed_before_s]

    def _conversations(self) -> int:
        if self._is_dry_run:
            return len(self._records.thrown_away(self._deleted_before))
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
        # Before the records are read: what is recorded meanwhile is among these files or too young.
        files = {folder: self._old(stored_files(self._home, folder)) for folder in (PICTURES, ORIGINALS, BLOBS)}
        named = self._records.named_digests() - self._records.let_go(self._deleted_before)
        pictures, originals, blobs = (
            [one for one in files[folder] if one.digest not in named] for folder in (PICTURES, ORIGINALS, BLOBS)
        )
        return (
            self._removed([*(one for one in pictures if not one.is_thumbnail), *originals]),
            self._removed(one for one in pictures if one.is_thumbnail),
            self._removed(blobs),
        )

    def _signs(self) -> int:
        old = self._old(signs(self._home))
        if self._is_dry_run:
            # Whether a process lives is told by taking its sign away.
            return 0
        life = LifeSign(self._home / SIGNS)
        return sum(not life.is_alive(one.path.name) and not one.path.exists() for one in old)

    def _vectors(self) -> int:
        from agent.storage.housekeeping_indexes import forget_pictures

        living = self._records.living_ids(self._deleted_before)
        return forget_pictures(self._home, living, is_dry_run=self._is_dry_run)

    def _old(self, files: Iterable[_File]) -> list[_File]:
        return [one for one in files if one.written_at_s < self._written_before_s]

    def _removed(self, files: Iterable[StoredFile | Leftover]) -> FileTotals:
        heap = FileTotals()
        for one in files:
            if self._is_dry_run or self._is_removed(one.path):
                heap += FileTotals(files=1, size_bytes=one.size_bytes)
        return heap

    def _is_removed(self, path: Path) -> bool:
        """Remove a file that nobody has written again meanwhile; whoever is about to write it finds it gone first."""
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
    def __init__(self, home: Path, records: KeptRecords, now: datetime) -> None:
        self._home = home
        self._records = records
        self._now = now
        self._findings: list[Finding] = []

    def run(self) -> CheckReport:
        pictures = list(stored_files(self._home, PICTURES))
        blobs = list(stored_files(self._home, BLOBS))
        before = self._now - KEPT_FOR
        # What people see, and the files they sent.
        originals = [one for one in pictures if not one.is_thumbnail] + list(stored_files(self._home, ORIGINALS))
        heaps: dict[str, Any] = {
            "pictures": self._whole(originals, CheckProblem.PICTURE_DAMAGED),
            "blobs": self._whole(blobs, CheckProblem.BLOB_DAMAGED),
            "leftovers": _heap(leftovers(self._home)),
        }
        counts = dict[str, Any]()
        if self._database():
            have = {one.digest for one in originals}
            kept = list(self._records.pictures(before))
            self._missing_pictures(kept, have)
            self._missing_blobs({one.digest for one in blobs})
            heaps["files"] = self._workspace_files()
            named = self._records.named_digests() - self._records.let_go(before)
            heaps["unnamed"] = _heap(one for one in (*originals, *blobs) if one.digest not in named)
            heaps["thumbnails"] = _heap(one for one in pictures if one.is_thumbnail and one.digest not in have)
            counts |= {"conversations": self._records.conversations(), "records": len(kept)}
        self._indexes()
        return CheckReport(findings=tuple(self._findings), free_bytes=_free_bytes(self._home), **heaps, **counts)

    def _database(self) -> bool:
        """Return whether the records can be relied on."""
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

    def _whole(self, files: Iterable[StoredFile], damaged: CheckProblem) -> FileTotals:
        heap = FileTotals()
        for one in files:
            heap += FileTotals(files=1, size_bytes=one.size_bytes)
            where = str(one.path.relative_to(self._home))
            try:
                if not is_whole(one):
                    self._findings.append(Finding(trouble=damaged, what=where))
            except FileNotFoundError:
                # Removed meanwhile; what misses it is told below.
                continue
            except OSError as error:
                what = f"{where} ({error.strerror or type(error).__name__})"
                self._findings.append(Finding(trouble=CheckProblem.FILE_UNREADABLE, what=what))
        return heap

    def _missing_pictures(self, kept: Iterable[KeptPicture], have: set[str]) -> None:
        for one in kept:
            for digest in sorted((one.parts | {one.digest}) - have):
                part = "" if digest == one.digest else ", a part of its edit"
                what = f"{one.handle} in “{one.title}”{part} ({digest[:8]})"
                self._findings.append(Finding(trouble=CheckProblem.PICTURE_MISSING, what=what))

    def _missing_blobs(self, have: set[str]) -> None:
        missing = sorted(self._records.blob_digests() - have)
        self._findings += [Finding(trouble=CheckProblem.BLOB_MISSING, what=digest[:16]) for digest in missing]

    def _workspace_files(self) -> FileTotals:
        heap = FileTotals()
        for one in self._records.files():
            heap += FileTotals(files=1, size_bytes=one.size_bytes)
            if not one.is_whole:
                what = f"{one.name} in “{one.title}”"
                self._findings.append(Finding(trouble=CheckProblem.WORKSPACE_FILE_DAMAGED, what=what))
        return heap

    def _indexes(self) -> None:
        from agent.storage.housekeeping_indexes import GALLERY, STYLES, unreadable_tables

        for folder, trouble in (
            (STYLES, CheckProblem.STYLE_INDEX_UNREADABLE),
            (GALLERY, CheckProblem.GALLERY_INDEX_UNREADABLE),
        ):
            self._findings += [Finding(trouble=trouble, what=one) for one in unreadable_tables(self._home, folder)]


def _heap(files: Iterable[StoredFile | Leftover]) -> FileTotals:
    heap = FileTotals()
    for one in files:
        heap += FileTotals(files=1, size_bytes=one.size_bytes)
    return heap


def _free_bytes(home: Path) -> int | None:
    try:
        return shutil.disk_usage(home).free
    except OSError:
        return None
