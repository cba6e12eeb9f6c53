"""`aivista gc` and `aivista check`: what housekeeping found or removed, told at the terminal."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from agent import Backups, CheckProblem, CheckReport, FileTotals, Housekeeping, SweepReport

FINE, FOUND = 0, 1
# A turn writes a few pictures and their signatures.
_LITTLE_ROOM_BYTES = 100_000_000
_MOST_LINES = 50

_TROUBLES = {
    CheckProblem.DATABASE_DAMAGED: "The database is damaged: {what}. Please end the studio and go back to a "
    "backup with “aivista restore”.",
    CheckProblem.REFERENCE_BROKEN: "A record has lost what it belongs to: {what}.",
    CheckProblem.PICTURE_MISSING: "The file of picture {what} is missing.",
    CheckProblem.PICTURE_DAMAGED: "The picture {what} is damaged; sending it again mends it.",
    CheckProblem.BLOB_MISSING: "The signature {what} is missing: its picture cannot go back to the model as its own.",
    CheckProblem.BLOB_DAMAGED: "The signature {what} is damaged: its picture cannot go back to the model as its own.",
    CheckProblem.FILE_UNREADABLE: "The file {what} cannot be read.",
    CheckProblem.WORKSPACE_FILE_DAMAGED: "The file {what} is damaged; writing it again mends it.",
    CheckProblem.STYLE_INDEX_UNREADABLE: "The index {what} cannot be read; it is made anew at the next search for a "
    "style.",
    CheckProblem.GALLERY_INDEX_UNREADABLE: "The index {what} cannot be read; it is made anew at the next search.",
}


def gc(home: Path, *, is_dry_run: bool) -> int:
    """Remove what nothing needs and tell it; return the exit code: 0, or 1 when something could not be removed.

    A dry run returns 1 when there is something to remove. Raises StorageFailure when there are no records to go by.
    """
    report = Housekeeping(home).sweep(is_dry_run=is_dry_run)
    print("\n".join(_swept(home, report)))
    for problem in report.problems:
        print(f"aivista: {problem}", file=sys.stderr)
    return FOUND if report.problems or (is_dry_run and not report.is_empty) else FINE


def check(home: Path) -> int:
    """Look through everything and tell what is wrong; return the exit code: 0, or 1 when something is.

    Raises StorageFailure when there are no records to go by.
    """
    report = Housekeeping(home).check()
    print("\n".join(_checked(home, report)))
    return FINE if report.is_fine else FOUND


def backup(home: Path, folder: Path | None) -> int:
    """Back up the database and tell where; return the exit code. Raises StorageFailure."""
    made = Backups(home, folder).make(datetime.now(UTC))
    print(f"Backed up and verified: {made.path}, {made.size_bytes / 1e6:.1f} MB.")
    return FINE


def restore(home: Path, folder: Path | None, name: str | None) -> int:
    """List the backups, or go back to one and tell what came of it; return the exit code. Raises StorageFailure."""
    backups = Backups(home, folder)
    if name is None:
        lines = [f"  {one.name}  {one.size_bytes / 1e6:.1f} MB" for one in backups.all()]
        print("\n".join(["Backups, the newest first:", *lines]) if lines else f"There are no backups of {home}.")
        return FINE
    report = backups.restore(name, datetime.now(UTC))
    print(f"Back to the database of {report.backup.made_at:%Y-%m-%d %H:%M} UTC.")
    if report.set_aside is not None:
        print(f"  The former database is kept as {report.set_aside.name}.")
    pictures = _line(report.kept_pictures, "picture") or "No picture"
    print(f"  {pictures} that only the former database knew: kept, with the messages before it.")
    if report.lost_turns:
        print(f"  {_line(report.lost_turns, 'message')} without a picture, and their answers, are not there any more.")
    if report.missing_files:
        print(f"  {_line(report.missing_files, 'picture')} on record: the file was removed for good since.")
    if not report.is_whole:
        print("  Not all of the former database could be read: more may be missing.")
    return FINE


def _swept(home: Path, report: SweepReport) -> list[str]:
    lines = [
        _line(report.conversations, "conversation", ", deleted more than 30 days ago"),
        *_heaps(
            ("picture", report.pictures),
            ("thumbnail", report.thumbnails),
            ("signature", report.blobs),
            ("unfinished file", report.leftovers),
        ),
        _line(report.signs, "sign of a process that is gone", plural="signs of processes that are gone"),
        _line(report.vectors, "entry of the gallery's index", plural="entries of the gallery's index"),
    ]
    said = [f"  {line}" for line in lines if line]
    head = "Would be removed from" if report.is_dry_run else "Removed from"
    told = [f"{head} {home}:", *said] if said else [f"Nothing to remove in {home}."]
    return told + _room(report.free_bytes)


def _checked(home: Path, report: CheckReport) -> list[str]:
    pictures, signatures = _heaps(("picture file", report.pictures), ("signature", report.blobs), is_zero_told=True)
    conversations = _line(report.conversations, "conversation") or "0 conversations"
    files = _heaps(("file of a conversation", report.files))
    lines = [f"{home}: {'; '.join([conversations, pictures, signatures, *files])}."]
    lines += [_TROUBLES[one.trouble].format(what=one.what) for one in report.findings[:_MOST_LINES]]
    if len(report.findings) > _MOST_LINES:
        lines.append(f"And {len(report.findings) - _MOST_LINES} more.")
    rest = _heaps(
        ("file that no record names", report.unnamed),
        ("thumbnail of pictures that are gone", report.thumbnails),
        ("unfinished file", report.leftovers),
    )
    if rest:
        lines.append(f"To be removed by `aivista gc` once an hour old: {'; '.join(rest)}.")
    if report.is_fine:
        lines.append("Everything is fine.")
    return lines + _room(report.free_bytes)


def _heaps(*heaps: tuple[str, FileTotals], is_zero_told: bool = False) -> list[str]:
    return [
        _line(heap.files, name, f", {heap.size_bytes / 1e6:.1f} MB") or f"no {name}"
        for name, heap in heaps
        if heap.files or is_zero_told
    ]


def _line(count: int, name: str, more: str = "", *, plural: str | None = None) -> str:
    if not count:
        return ""
    first, _, rest = name.partition(" ")
    several = plural or (f"{name}s" if rest in ("", "file") else f"{first}s {rest}")
    return f"{count:,} {name if count == 1 else several}{more}"


def _room(free_bytes: int | None) -> list[str]:
    if free_bytes is None or free_bytes >= _LITTLE_ROOM_BYTES:
        return []
    return [f"The disk is nearly full: {free_bytes / 1e6:.0f} MB are left."]
