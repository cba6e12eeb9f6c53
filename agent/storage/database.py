"""The database of the records: opened, brought up to date, or set aside when it cannot be read."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError

from agent.errors import ErrorCode, StorageFailure
from agent.storage.private_files import make_private_folder, storage_failure
from agent.storage.tables import FULL_TEXT, METADATA

HEAD = "0008"
_NAME = "aivista.db"
_MIGRATIONS = Path(__file__).parent / "migrations"
# Other processes write, too: rather a turn waits than a picture that was paid for is not recorded.
_BUSY_TIMEOUT_S = 20.0

_log = logging.getLogger(__name__)


def open_database(home: Path) -> tuple[Engine, Path | None]:
    """Return the engine on `<home>/aivista.db` at the newest revision, and where an unreadable one was set aside.

    Blocks. Raises StorageFailure when the home cannot be used, or the database is that of a newer Aivista.
    """
    path = home / _NAME
    try:
        return _opened(path), None
    except DatabaseError as error:
        if not _is_unreadable(error):
            raise record_failure(error) from error
    aside = _set_aside(path)
    _log.warning("the database was unreadable and has been set aside as %s", aside.name)
    try:
        return _opened(path), aside
    except DatabaseError as error:
        raise record_failure(error) from error


def _opened(path: Path) -> Engine:
    _make_private(path)
    engine = _engine(path)
    try:
        _bring_up_to_date(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def record_failure(error: DBAPIError) -> StorageFailure:
    """Return what the operator reads of a failed statement: nothing of the statement or its values."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # The file that processes share is grown, not written: where there is no room for it, SQLite calls it another error.
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE):
        return StorageFailure(ErrorCode.DISK_FULL)
    return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=str(error.orig))


def _make_private(path: Path) -> None:
    try:
        make_private_folder(path.parent)
        # SQLite gives its journals the mode of the database.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise storage_failure(error) from error


def _engine(path: Path) -> Engine:
    url = URL.create("sqlite", database=str(path))
    # What is bound to a statement is what people said, and an error may reach a log.
    waiting = {"timeout": _BUSY_TIMEOUT_S}
    engine = create_engine(url, hide_parameters=True, pool_size=1, max_overflow=0, connect_args=waiting)
    event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: Any, _record: object) -> None:
    # Each transaction is begun by us: the driver would begin one at the first write, after what was read for it.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={_BUSY_TIMEOUT_S * 1000:.0f}", "foreign_keys=ON", "synchronous=NORMAL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def begin_reading(connection: Connection) -> None:
    """Begin the open transaction as one that sees one state of the database, and only reads."""
    connection.exec_driver_sql("BEGIN")


def begin_writing(connection: Connection) -> None:
    """Begin the open transaction with the write lock: nobody else writes between what it reads and what it writes."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def set_durability(connection: Connection, is_durable: bool) -> None:
    """Choose what a commit waits for: the disk itself, so that a power cut takes nothing back, or the system alone.

    With a log ahead either survives the death of the process. Raises StorageFailure.
    """
    try:
        with connection.begin():
            connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
    except DatabaseError as error:
        raise record_failure(error) from error


def _bring_up_to_date(engine: Engine) -> None:
    with engine.connect() as connection:
        revision = _revision(connection)
    if revision != HEAD:
        with engine.connect() as connection:
            begin_writing(connection)
            _upgrade(connection, _revision(connection))
            connection.commit()
    with engine.connect() as connection:
        # Only now: it writes to the file, and a newer Aivista's must stay as it is.
        use_log_ahead(connection.exec_driver_sql)


def use_log_ahead(execute: Callable[[str], object]) -> None:
    """Have a database write its log ahead. SQLite's own waiting does not cover this: while another process opens the
    same new database it fails at once."""
    end_s = monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            execute("PRAGMA journal_mode=WAL")
            return
        except (sqlite3.OperationalError, OperationalError) as error:
            code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
            if code != sqlite3.SQLITE_BUSY or monotonic() > end_s:
                raise
        sleep(0.01)


def _revision(connection: Connection) -> str | None:
    """Return the revision of the database, None for an empty one."""
    names = inspect(connection).get_table_names()
    if not names:
        return None
    found = connection.scalar(text("SELECT version_num FROM alembic_version")) if "alembic_version" in names else None
    if found is None:
        raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{_NAME} is not a database of Aivista")
    return str(found)


def _upgrade(connection: Connection, revision: str | None) -> None:
    if revision == HEAD:
        return
    if revision is not None:
        migrate(connection, revision)
        return
    # A first start need not wait for Alembic to load; a test holds that both ways lead to the same tables.
    METADATA.create_all(connection)
    for statement in FULL_TEXT:
        connection.exec_driver_sql(statement)
    connection.execute(
        text(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
        )
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def migrate(connection: Connection, revision: str | None) -> None:
    """Run the migrations that lead from the revision to the newest.

    Raises StorageFailure, with nothing changed, when the revision is not known here.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        ScriptDirectory.from_config(config).get_revision(revision or "base")
    except CommandError:
        detail = f"{_NAME} was written by a newer Aivista (revision {revision})"
        raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=detail) from None
    command.upgrade(config, "head")


def _is_unreadable(error: DBAPIError) -> bool:
    # The low byte is the error's kind; the rest tells its shades apart.
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


def _set_aside(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = path.with_name(f"{path.name}.unreadable-{stamp}")
    try:
        for ending in ("", "-wal", "-shm"):
            part = path.with_name(path.name + ending)
            if part.exists():
                part.rename(aside.with_name(aside.name + ending))
    except OSError as error:
        raise storage_failure(error) from error
    return aside
