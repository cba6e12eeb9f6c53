"""Backups of the database: made while a studio runs, verified, thinned out by a rule, and restored.

A backup is a copy of `aivista.db` alone, in `<home>/backups`. Pictures are files that are never overwritten, so they
need no copy; a picture that was removed for good since then is missing after a restore, and the report says so.

The rule keeps the newest three, the newest of each of the last seven days that have one, and of each of the last four
weeks that have one (days and weeks in UTC). The others are removed when a new backup has been verified.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.errors import ErrorCode, StorageFailure
from agent.storage.database import upgrade
from agent.storage.private_files import (
    make_private_folder,
    remove_database,
    rename_database,
    storage_failure,
    translated_os_errors,
)
from agent.storage.process_lock import ProcessLock
from agent.storage.upgrade import HEAD, NAME

_STAMP = "%Y%m%dT%H%M%SZ"
_BACKUP = re.compile(r"aivista-(\d{8}T\d{6}Z)\.db")
_EVERY = timedelta(days=1)
_NEWEST, _DAYS, _WEEKS = 3, 7, 4
# Free space that must remain beside a backup: a backup must not fill the disk.
_LEFT_FREE_BYTES = 256 << 20
_PAGES_AT_ONCE = 1000
# The tables that are merged from the newer database, in this order: each row references rows of earlier tables.
_KEPT_TABLES = ("conversations", "turns", "calls", "pictures")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backup:
    """A verified copy of the database."""

    path: Path
    made_at: datetime
    size_bytes: int

    @property
    def name(self) -> str:
        """The name that `restore` takes."""
        return self.path.stem.removeprefix("aivista-")


@dataclass(frozen=True)
class RestoreReport:
    """The result of a restore. `set_aside` is the former database, if there was one.

    `kept_pictures` counts pictures that only the newer database had; `lost_turns` counts its turns without such a
    picture, which are now only in the database set aside. `missing_files` counts recorded pictures whose file is gone.
    `is_whole` says whether all of the newer database could be read.
    """

    backup: Backup
    set_aside: Path | None
    kept_pictures: int
    lost_turns: int
    missing_files: int
    is_whole: bool


class BackupRefused(StorageFailure):
    """There is no such backup, or a process uses the database that would be replaced."""


class Backups:
    """The backups of a home. Every call blocks and may raise StorageFailure."""

    def __init__(self, home: Path, folder: Path | None = None) -> None:
        self._home = home
        self._folder = folder or home / "backups"

    def all(self) -> list[Backup]:
        """Return the backups, the newest first."""
        found = []
        with translated_os_errors(), contextlib.suppress(FileNotFoundError):
            for path in self._folder.iterdir():
                match = _BACKUP.fullmatch(path.name)
                if match:
                    made_at = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
                    found.append(Backup(path, made_at, path.stat().st_size))
        return sorted(found, key=lambda one: one.made_at, reverse=True)

    def unreadable(self) -> str | None:
        """Return the name of a database set aside as unreadable; None once a backup was restored after it."""

        def newest(kind: str) -> str:
            # The name ends with the time; the files of a database's log have other endings.
            moments = (path.name.rpartition("-")[2] for path in self._home.glob(f"{NAME}.{kind}-*Z"))
            return max(moments, default="")

        moment = newest("unreadable")
        return f"{NAME}.unreadable-{moment}" if moment > newest("before-restore") else None

    def make_if_due(self, now: datetime) -> Backup | None:
        """Make a backup if the newest is older than a day or dated in the future; log what prevents it."""
        try:
            newest = next(iter(self.all()), None)
            is_fresh = newest is not None and timedelta(0) <= now - newest.made_at < _EVERY
            return self.make(now) if not is_fresh and (self._home / NAME).is_file() else None
        except StorageFailure as failure:
            _log.warning("no backup of the database was made: %s", failure)
            return None

    def make(self, now: datetime) -> Backup:
        """Copy the database as it is now, verify the copy, and remove old backups by the rule."""
        source = self._home / NAME
        if not source.is_file():
            raise BackupRefused(ErrorCode.STORAGE_BROKEN, detail=f"there is no {NAME} in {self._home}")
        path = self._folder / f"aivista-{now.astimezone(UTC).strftime(_STAMP)}.db"
        # Another process with this home may do the same.
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            make_private_folder(self._folder)
            if shutil.disk_usage(self._folder).free < source.stat().st_size + _LEFT_FREE_BYTES:
                raise StorageFailure(ErrorCode.DISK_FULL)
            os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
            _copy(source, unfinished)
            _verify(unfinished)
            os.replace(unfinished, path)
        except OSError as error:
            raise storage_failure(error) from error
        except sqlite3.Error as error:
            raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{NAME}: {error}") from error
        finally:
            unfinished.unlink(missing_ok=True)
        self._thin_out()
        return Backup(path, now, path.stat().st_size)

    def _thin_out(self) -> None:
        every = self.all()
        kept = {one.path for one in every[:_NEWEST]}
        # By calendar day and week, so that the newest of a day stays the newest of that day as time goes on.
        for period, count in ((datetime.date, _DAYS), (lambda moment: moment.isocalendar()[:2], _WEEKS)):
            newest: dict[object, Path] = {}
            for one in every:
                newest.setdefault(period(one.made_at), one.path)
            kept.update(list(newest.values())[:count])
        for one in every:
            if one.path not in kept:
                try:
                    one.path.unlink(missing_ok=True)
                except OSError as error:
                    # The new backup is good all the same.
                    _log.warning("the old backup %s could not be removed: %s", one.name, error.strerror)

    def restore(self, name: str, now: datetime) -> RestoreReport:
        """Restore a backup; the present database is set aside.

        Pictures that only the present database has are copied over, with their turns and conversations. Raises
        BackupRefused while a studio, an MCP server or a script uses the home, and for an unknown name.
        """
        backup = next((one for one in self.all() if one.name == name), None)
        if backup is None:
            raise BackupRefused(ErrorCode.STORAGE_BROKEN, detail=f"there is no backup {name}")
        if self._is_in_use():
            raise BackupRefused(
                ErrorCode.STORAGE_BROKEN,
                detail="a studio, an MCP server or a script still uses this folder; please end it first",
            )
        restored = self._home / f".{NAME}.restored"
        try:
            _verify(backup.path)
            shutil.copyfile(backup.path, restored)
            os.chmod(restored, 0o600)
            # Otherwise rows of the present database would not fit.
            upgrade(restored)
            aside = self._set_aside(now)
            os.replace(restored, self._home / NAME)
            kept, lost, is_whole = _taken_over(aside, self._home / NAME) if aside is not None else (0, 0, True)
            return RestoreReport(backup, aside, kept, lost, self._missing_files(), is_whole)
        except OSError as error:
            raise storage_failure(error) from error
        except sqlite3.Error as error:
            raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{backup.path.name}: {error}") from error
        finally:
            remove_database(restored)

    def _is_in_use(self) -> bool:
        folder = self._home / "running"
        sign = ProcessLock(folder)
        return folder.is_dir() and any(sign.is_alive(path.name) for path in folder.iterdir())

    def _set_aside(self, now: datetime) -> Path | None:
        """Rename the present database and its log files; return the new path."""
        path = self._home / NAME
        if not path.exists():
            return None
        aside = path.with_name(f"{NAME}.before-restore-{now.astimezone(UTC).strftime(_STAMP)}")
        rename_database(path, aside)
        # Checkpoints of turns of the former database cannot resume in this one.
        remove_database(self._home / "checkpoints.db")
        return aside

    def _missing_files(self) -> int:
        with closing(_reader(self._home / NAME)) as database:
            digests = [digest for (digest,) in database.execute("SELECT DISTINCT digest FROM pictures")]
        folder = self._home / "pictures"
        return sum(not any((folder / digest[:2]).glob(f"{digest}.*")) for digest in digests)


def _reader(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30.0)


def _copy(source: Path, target: Path) -> None:
    """Copy a database in steps, so that others may write in between. Raises sqlite3.Error."""
    with closing(_reader(source)) as reading, closing(sqlite3.connect(target)) as writing:
        reading.backup(writing, pages=_PAGES_AT_ONCE, sleep=0.005)
        writing.execute("PRAGMA journal_mode=DELETE")
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _verify(path: Path) -> None:
    """Raise StorageFailure unless the database is intact and an Aivista database."""
    try:
        with closing(_reader(path)) as database:
            [answer] = database.execute("PRAGMA integrity_check(1)").fetchone()
            database.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        answer = str(error)
    if answer != "ok":
        raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{path.name} is damaged: {answer}")


@contextlib.contextmanager
def _at_newest_revision(path: Path) -> Iterator[Path]:
    """Yield the database, or an upgraded copy if it is older; the original if it cannot be upgraded."""
    copy = path.with_name(f".{path.name}.copy")
    try:
        try:
            with closing(_reader(path)) as database:
                [revision] = database.execute("SELECT version_num FROM alembic_version").fetchone()
            if revision != HEAD:
                _copy(path, copy)
                upgrade(copy)
        except (StorageFailure, sqlite3.Error, OSError):
            remove_database(copy)
        yield copy if copy.exists() else path
    finally:
        remove_database(copy)


def _taken_over(newer: Path, restored: Path) -> tuple[int, int, bool]:
    """Copy the pictures that only the newer database has, with what they belong to.

    Return how many these are, how many turns of the newer database were left out, and whether all of it could be read.
    """
    with (
        _at_newest_revision(newer) as readable,
        closing(_reader(readable)) as source,
        closing(sqlite3.connect(restored)) as target,
    ):
        tables = {table: _readable_rows(source, table) for table in _KEPT_TABLES}
        rows = {table: found for table, (found, _) in tables.items()}
        known = set(target.execute("SELECT conversation_id, handle FROM pictures"))
        new = [row for row in rows["pictures"] if (row["conversation_id"], row["handle"]) not in known]
        by_id = {(str(row["conversation_id"]), str(row["id"])): row for row in rows["turns"]}
        turns: set[tuple[str, str]] = set()
        for row in new:
            key = (str(row["conversation_id"]), str(row["turn_id"]))
            # With those before it.
            while key in by_id and key not in turns:
                turns.add(key)
                key = key[0], str(by_id[key].get("parent"))
        conversations = {row["conversation_id"] for row in new}
        wanted = {
            "conversations": [row for row in rows["conversations"] if row["id"] in conversations],
            "turns": [row for key, row in by_id.items() if key in turns],
            "calls": [row for row in rows["calls"] if (row["conversation_id"], row["turn_id"]) in turns],
            "pictures": [{name: value for name, value in row.items() if name != "id"} for row in new],
        }
        with target:
            for table in _KEPT_TABLES:
                _insert(target, table, wanted[table])
            # A restored conversation shows the same branch as in the newer database.
            for row in wanted["conversations"]:
                target.execute(
                    "UPDATE conversations SET head = :head, version = version + 1 WHERE id = :id AND EXISTS "
                    "(SELECT 1 FROM turns WHERE conversation_id = :id AND id = :head)",
                    {"head": row["head"], "id": row["id"]},
                )
        there = set(target.execute("SELECT conversation_id, id FROM turns"))
    is_whole = all(is_readable for _, is_readable in tables.values())
    return len(new), sum(key not in there for key in by_id), is_whole


def _readable_rows(database: sqlite3.Connection, table: str) -> tuple[list[dict[str, object]], bool]:
    """Return the readable rows of a table, and whether these are all rows."""
    found: list[dict[str, object]] = []
    try:
        cursor = database.execute(f"SELECT * FROM {table}")  # noqa: S608 - one of `_KEPT_TABLES`
        names = [column[0] for column in cursor.description]
        for row in cursor:
            found.append(dict(zip(names, row, strict=True)))  # noqa: PERF401 - what came before a damage is kept
    except sqlite3.Error:
        return found, False
    return found, True


def _insert(database: sqlite3.Connection, table: str, rows: list[dict[str, object]]) -> None:
    there = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    for row in rows:
        names = [name for name in row if name in there]
        places = ", ".join(f":{name}" for name in names)
        database.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({places})", row)  # noqa: S608
