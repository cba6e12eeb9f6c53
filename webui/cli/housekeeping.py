"""`aivista gc`, `check`, `backup`, `restore` and `token`: clean up the data, verify it, back it up, and manage API
tokens.

Each takes the studio's folder and the flags and returns the exit code: 0, or 1 when something was found that the user
must see to. Each raises CommandFailed or AivistaError when it fails.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from agent import Backups, CheckProblem, CheckReport, FileTotals, Housekeeping, SweepReport
from webui.api.auth import TokenFile, TokenNameRefused
from webui.cli.parser import CommandFailed

# A turn writes a few pictures and their signatures.
_NEARLY_FULL_BYTES = 100_000_000
_MAX_FINDINGS = 50

_PROBLEMS = {
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
}


def gc(home: Path, flags: Namespace) -> int:
    """Remove data that nothing needs; a dry run only reports it, and returns 1 when there is something to remove."""
    report = Housekeeping(home).sweep(is_dry_run=flags.dry_run)
    _print(_sweep_lines(home, report), report.free_bytes)
    for problem in report.problems:
        print(f"aivista: {problem}", file=sys.stderr)
    return 1 if report.problems or (report.is_dry_run and not report.is_empty) else 0


def check(home: Path, _flags: Namespace) -> int:
    """Verify all data, and report problems."""
    report = Housekeeping(home).check()
    _print(_check_lines(home, report), report.free_bytes)
    return 0 if report.is_fine else 1


def backup(home: Path, flags: Namespace) -> int:
    """Back up the database, and print the path."""
    made = Backups(home, flags.to).make(datetime.now(UTC))
    print(f"Backed up and verified: {made.path}, {made.size_bytes / 1e6:.1f} MB.")
    return 0


def restore(home: Path, flags: Namespace) -> int:
    """List the backups, or restore one and report the result."""
    backups = Backups(home, flags.folder)
    if flags.name is None:
        lines = [f"  {one.name}  {one.size_bytes / 1e6:.1f} MB" for one in backups.all()]
        print("\n".join(["Backups, the newest first:", *lines]) if lines else f"There are no backups of {home}.")
        return 0
    report = backups.restore(flags.name, datetime.now(UTC))
    print(f"Back to the database of {report.backup.made_at:%Y-%m-%d %H:%M} UTC.")
    if report.set_aside is not None:
        print(f"  The former database is kept as {report.set_aside.name}.")
    pictures = _count(report.kept_pictures, "picture") or "No picture"
    print(f"  {pictures} that only the former database knew: kept, with the messages before it.")
    if report.lost_turns:
        print(f"  {_count(report.lost_turns, 'message')} without a picture, and their answers, are not there any more.")
    if report.missing_files:
        print(f"  {_count(report.missing_files, 'picture')} on record: the file was removed for good since.")
    if not report.is_whole:
        print("  Not all of the former database could be read: more may be missing.")
    return 0


def token(home: Path, flags: Namespace) -> int:
    """Make, list or remove tokens of the HTTP API. A running studio notices at once."""
    file, name = TokenFile(home), flags.name
    if flags.action == "list":
        for listed in file.hashes():
            print(listed)
    elif name is None:
        raise CommandFailed(f"name whose token it is: aivista token {flags.action} NAME")
    elif flags.action == "new":
        try:
            print(file.new(name))
        except TokenNameRefused as problem:
            raise CommandFailed(str(problem)) from None
    elif file.remove(name):
        print(f"The token of {name} is removed.")
    else:
        raise CommandFailed(f"there is no token named {name}")
    return 0


COMMANDS = {"gc": gc, "check": check, "backup": backup, "restore": restore, "token": token}


def _sweep_lines(home: Path, report: SweepReport) -> list[str]:
    counts = [
        _count(report.conversations, "conversation", ", deleted more than 30 days ago"),
        _files("picture", report.pictures),
        _files("thumbnail", report.thumbnails),
        _files("signature", report.blobs),
        _files("unfinished file", report.leftovers),
        _count(report.signs, "sign of a process that is gone", plural="signs of processes that are gone"),
        _count(report.vectors, "entry of the gallery's index", plural="entries of the gallery's index"),
    ]
    if not any(counts):
        return [f"Nothing to remove in {home}."]
    head = "Would be removed from" if report.is_dry_run else "Removed from"
    return [f"{head} {home}:", *(f"  {count}" for count in counts if count)]


def _check_lines(home: Path, report: CheckReport) -> Iterable[str]:
    counts = [
        _count(report.conversations, "conversation") or "0 conversations",
        _files("picture file", report.pictures) or "no picture file",
        _files("signature", report.blobs) or "no signature",
        _files("file of a conversation", report.files),
    ]
    yield f"{home}: {'; '.join(filter(None, counts))}."
    for finding in report.findings[:_MAX_FINDINGS]:
        yield _PROBLEMS[finding.trouble].format(what=finding.what)
    if len(report.findings) > _MAX_FINDINGS:
        yield f"And {len(report.findings) - _MAX_FINDINGS} more."
    removable = [
        _files("file that no record names", report.unnamed),
        _files("thumbnail of pictures that are gone", report.thumbnails),
        _files("unfinished file", report.leftovers),
    ]
    if any(removable):
        yield f"To be removed by `aivista gc` once an hour old: {'; '.join(filter(None, removable))}."
    if report.is_fine:
        yield "Everything is fine."


def _print(lines: Iterable[str], free_bytes: int | None) -> None:
    print("\n".join(lines))
    if free_bytes is not None and free_bytes < _NEARLY_FULL_BYTES:
        print(f"The disk is nearly full: {free_bytes / 1e6:.0f} MB are left.")


def _files(name: str, totals: FileTotals) -> str:
    return _count(totals.files, name, f", {totals.size_bytes / 1e6:.1f} MB")


def _count(count: int, name: str, more: str = "", *, plural: str | None = None) -> str:
    """Return a count in words; empty for zero."""
    if not count:
        return ""
    first, _, rest = name.partition(" ")
    several = plural or (f"{name}s" if rest in ("", "file") else f"{first}s {rest}")
    return f"{count:,} {name if count == 1 else several}{more}"
