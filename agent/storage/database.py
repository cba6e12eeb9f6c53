"""The database of the records: opening, upgrades, transactions, one thread that writes and a few that read.

Several processes share a home, so a writing transaction takes the write lock before it reads: what it read is still
true when it writes. A read-only one sees a snapshot and waits for nobody: neither a list of conversations nor a search
of the gallery delays the next write of a turn. An unreadable database is set aside.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError

from agent.cancellation import on_thread, shielded
from agent.errors import ErrorCode, StorageFailure
from agent.storage.private_files import (
    aside_path,
    is_unreadable,
    make_private_folder,
    remove_database,
    rename_database,
    translated_os_errors,
)
from agent.storage.upgrade import HEAD, NAME, bring_up_to_date

# Other processes write too: better that a turn waits than that a paid picture is not recorded.
_BUSY_TIMEOUT_S = 20.0
# Each has a connection. A page should not wait while another one counts all pictures.
_READERS = 4
# How long a write that nobody waits for waits to be batched: a turn writes every few milliseconds.
_SOON_S = 0.02

T = TypeVar("T")

_log = logging.getLogger(__name__)


def open_database(home: Path) -> tuple[Engine, Path | None]:
    """Return the engine on the upgraded `<home>/aivista.db`, and where an unreadable one was set aside.

    Blocks. Raises StorageFailure when the home cannot be used, or a newer Aivista wrote the database.
    """
    path = home / NAME
    try:
        return _opened(path), None
    except DatabaseError as error:
        if not is_unreadable(error.orig):
            raise _failure_of(error) from error
    aside = aside_path(path)
    with translated_os_errors():
        rename_database(path, aside)
    _log.warning("the database was unreadable and has been set aside as %s", aside.name)
    try:
        return _opened(path), aside
    except DatabaseError as error:
        raise _failure_of(error) from error


def _opened(path: Path) -> Engine:
    with translated_os_errors():
        make_private_folder(path.parent)
        # SQLite gives its journals the mode of the database.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    engine = engine_of(path, is_writing=True)
    try:
        _bring_up_to_date(engine)
        # Of earlier versions; its content is in this database now.
        remove_database(path.with_name("checkpoints.db"))
    except BaseException:
        engine.dispose()
        raise
    return engine


def upgrade(path: Path) -> None:
    """Upgrade a database that nobody uses to the newest revision.

    Raises StorageFailure, with nothing changed, when a newer Aivista wrote it or it cannot be read.
    """
    engine = engine_of(path, is_writing=True)
    try:
        _bring_up_to_date(engine)
    except DatabaseError as error:
        raise _failure_of(error) from error
    finally:
        engine.dispose()


def _failure_of(error: DBAPIError | sqlite3.Error) -> StorageFailure:
    """Return the error for the operator after a failed statement, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    # SQLite only grows the shared-memory file: when there is no room for it, it reports this other error.
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE):
        return StorageFailure(ErrorCode.DISK_FULL)
    return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=str(cause))


def engine_of(path: Path, *, is_writing: bool, connections: int = 1) -> Engine:
    """Return an engine on an existing database file, for writing or read-only."""
    url = URL.create("sqlite", database=str(path))
    if not is_writing:
        url = URL.create("sqlite", database=path.absolute().as_uri(), query={"mode": "ro", "uri": "true"})
    # Bound values contain users' texts, and an error may reach a log.
    waiting = {"timeout": _BUSY_TIMEOUT_S}
    engine = create_engine(url, hide_parameters=True, pool_size=connections, max_overflow=0, connect_args=waiting)
    event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: Any, _record: object) -> None:
    # We begin each transaction ourselves: the driver would begin one only at the first write, after the reads for it.
    connection.isolation_level = None
    for pragma in ("foreign_keys=ON", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}").close()


@contextmanager
def transaction(engine: Engine, *, is_writing: bool, is_durable: bool = False) -> Iterator[Connection]:
    """Open a transaction: a read-only one sees a snapshot, a writing one takes the write lock first.

    So nobody else writes between its reads and its writes. A commit waits only for the operating system, a durable one
    (`is_durable`) for the disk, so that a power cut undoes nothing; with a write-ahead log, both survive the death of
    the process. Raises StorageFailure.
    """
    try:
        with engine.connect() as connection:
            if is_writing:
                # Bypasses SQLAlchemy, whose transaction around it would cost as much as a write.
                connection.connection.cursor().execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
            with connection.begin():
                connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")
                yield connection
    except (DBAPIError, sqlite3.Error) as error:
        raise _failure_of(error) from error


def _bring_up_to_date(engine: Engine) -> None:
    with engine.connect() as connection:
        revision = _revision(connection)
    if revision != HEAD:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            revision = _revision(connection)
            # Another process may have been faster.
            if revision != HEAD:
                bring_up_to_date(connection, revision)
            connection.commit()
    with engine.connect() as connection:
        # Only now: it writes to the file, and a newer Aivista's database must stay unchanged.
        _use_log_ahead(connection)


def _use_log_ahead(connection: Connection) -> None:
    """Switch the database to a write-ahead log.

    SQLite's own waiting does not cover this: it fails at once while another process opens the same new database.
    """
    end_s = monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if getattr(error.orig, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY or monotonic() > end_s:
                raise
        sleep(0.01)


def _revision(connection: Connection) -> str | None:
    """Return the revision of the database, None for an empty one."""
    names = inspect(connection).get_table_names()
    if not names:
        return None
    found = connection.scalar(text("SELECT version_num FROM alembic_version")) if "alembic_version" in names else None
    if found is None:
        raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{NAME} is not a database of Aivista")
    return str(found)


@dataclass
class _Write:
    """`work` writes to the database; `remember` receives its result after the commit and updates memory.

    With `is_durable`, it is on disk when done: a power cut does not undo it. With `is_spare`, no space is freed for it
    on a full disk.
    """

    work: Callable[[Connection], Any]
    remember: Callable[[Any], object]
    done: asyncio.Future[Any]
    is_durable: bool = False
    is_spare: bool = False
    result: Any = None


class Database:
    """The records of a home for asyncio code: each operation is a function of a connection.

    All writes that wait when the writing thread becomes free share one transaction: fifty turns need not wait for fifty
    commits. If that fails, each is tried alone, so that one bad write fails alone. When the disk is full, `make_room`
    is called, and failed writes are retried once if it freed any space. A submitted write is completed even when its
    caller is cancelled. Every call but `open` and `aclose` raises StorageFailure when the database cannot be read or
    written, and whatever the function raises.
    """

    def __init__(self, home: Path, make_room: Callable[[], bool]) -> None:
        self._home = home
        self._make_room = make_room
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._engine: Engine | None = None
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix="reader")
        self._readers = engine_of(home / NAME, is_writing=False, connections=_READERS)
        self._now: sqlite3.Connection | None = None
        self._waiting: deque[_Write] = deque()
        self._is_at_work = False
        self._unfinished: set[asyncio.Future[Any]] = set()
        # Where an unreadable database was moved when this one was opened.
        self.set_aside: Path | None = None

    async def open(self) -> None:
        """Open or create the database. Raises StorageFailure, also when a newer Aivista wrote it."""
        await self.call(self._open_now)

    def _open_now(self) -> None:
        self._engine, self.set_aside = open_database(self._home)
        self._now = sqlite3.connect(self._home / NAME, timeout=0.0, isolation_level=None, check_same_thread=False)
        self._now.execute("PRAGMA query_only=ON")

    async def aclose(self, release: Callable[[], None]) -> None:
        """Finish pending writes, then call `release` for what else is held, and close the database."""
        self._begin()
        while self._unfinished:
            await asyncio.wait(self._unfinished)
        await asyncio.to_thread(self._reading.shutdown)
        await self.call(lambda: self._close_now(release))
        self._thread.shutdown()

    def _close_now(self, release: Callable[[], None]) -> None:
        release()
        self._readers.dispose()
        if self._now is not None:
            self._now.close()
            self._now = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    async def call(self, work: Callable[[], T]) -> T:
        """Run the work on the writing thread and return its result."""
        return await on_thread(self._thread, work)

    async def durably(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work and return its result. It continues when the caller is cancelled; closing waits for it."""
        return await shielded(self._held(asyncio.create_task(work)))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run the work on a snapshot of the database and return its result; all writes awaited before are visible."""

        def read() -> T:
            with transaction(self._readers, is_writing=False) as connection:
                return work(connection)

        return await on_thread(self._reading, read)

    def values_now(self, statement: str, *values: str) -> list[Any]:
        """Return the first column of the statement's rows now; an empty list when it cannot be read now.

        This runs on the event loop itself: for a single value, a thread switch would cost more, and with a write-ahead
        log a reader waits for nobody.
        """
        if self._now is None:
            return []
        try:
            # All rows: an unfinished statement would keep the log from being checkpointed.
            return [row[0] for row in self._now.execute(statement, values).fetchall()]
        except sqlite3.Error:
            # Locked for a moment, or broken: the caller then reads in the normal way, which reports why.
            return []

    def value_now(self, statement: str, *values: str) -> Any:
        """Return the first of `values_now`, or None."""
        return next(iter(self.values_now(statement, *values)), None)

    async def write(
        self,
        work: Callable[[Connection], T],
        remember: Callable[[T], object] = lambda _: None,
        *,
        is_durable: bool = False,
        is_spare: bool = False,
    ) -> T:
        """Run the work in a transaction and return its result, once all of its writes are committed. It may run twice.

        It sees all writes submitted before. `remember` is called with the result on the database's thread, right after
        the commit. With `is_spare`, it takes nothing of the disk space reserved for paid answers.
        """
        one = _Write(work, remember, asyncio.get_running_loop().create_future(), is_durable, is_spare)
        self._waiting.append(one)
        self._begin()
        written: T = await shielded(self._held(one.done))
        return written

    def write_soon(self, work: Callable[[Connection], object], *, is_spare: bool = False) -> asyncio.Future[Any]:
        """Submit a write that nobody waits for: it joins the next batch, or runs alone a few milliseconds later.

        Later writes come after it. Return its future, which has the exception that the work raises.
        """
        loop = asyncio.get_running_loop()
        one = _Write(work, lambda _: None, loop.create_future(), is_spare=is_spare)
        self._waiting.append(one)
        if not self._is_at_work:
            loop.call_later(_SOON_S, self._begin)
        return self._held(one.done)

    def _held(self, done: asyncio.Future[T]) -> asyncio.Future[T]:
        self._unfinished.add(done)
        done.add_done_callback(self._unfinished.discard)
        return done

    def _begin(self) -> None:
        if self._waiting and not self._is_at_work:
            self._is_at_work = True
            self._thread.submit(self._work, asyncio.get_running_loop())

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        outcomes = self._written(batch)
        failed = [at for at, one in enumerate(batch) if not one.is_spare and _is_disk_full(outcomes[at])]
        if failed and self._make_room():
            for number, outcome in zip(failed, self._written([batch[one] for one in failed]), strict=True):
                outcomes[number] = outcome
        loop.call_soon_threadsafe(self._settle, batch, outcomes)

    def _written(self, batch: list[_Write]) -> list[Exception | None]:
        is_recorded = len(batch) > 1 and _failure(self._record, *batch) is None
        return [
            (None if is_recorded else _failure(self._record, one)) or _failure(one.remember, one.result)
            for one in batch
        ]

    def _record(self, *batch: _Write) -> None:
        if self._engine is None:
            raise RuntimeError("the store is not open")
        is_durable = any(one.is_durable for one in batch)
        with transaction(self._engine, is_writing=True, is_durable=is_durable) as connection:
            for one in batch:
                one.result = one.work(connection)

    def _settle(self, batch: list[_Write], outcomes: list[Exception | None]) -> None:
        for one, error in zip(batch, outcomes, strict=True):
            if one.done.cancelled():
                continue
            if error is None:
                one.done.set_result(one.result)
            else:
                one.done.set_exception(error)
        self._is_at_work = False
        self._begin()


def _is_disk_full(error: Exception | None) -> bool:
    return isinstance(error, StorageFailure) and error.code is ErrorCode.DISK_FULL


def _failure(work: Callable[..., object], *arguments: object) -> Exception | None:
    """Return the exception that the work raised: it belongs to one caller and must not block the others forever."""
    try:
        work(*arguments)
    except Exception as error:
        return error
    return None
