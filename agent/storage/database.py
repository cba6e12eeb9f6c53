"""The database of the records: opened, brought up to date, or set aside when it cannot be read; its transactions; the
one thread that it is written on, and the few that read it.

Several processes share a home, so a transaction that writes takes the write lock before it reads: what it read is
still true when it writes. One that only reads sees one state of the database and waits for nobody: neither a list of
conversations nor a search of the gallery keeps a turn from its next write.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError

from agent.errors import ErrorCode, StorageFailure
from agent.storage.private_files import make_private_folder, storage_failure
from agent.storage.tables import CHECKPOINTS, FULL_TEXT, METADATA

HEAD = "0011"
NAME = "aivista.db"
_MIGRATIONS = Path(__file__).parent / "migrations"
# Other processes write, too: rather a turn waits than a picture that was paid for is not recorded.
_BUSY_TIMEOUT_S = 20.0
# Each has a connection. A page need not wait until all pictures are counted for it.
_READERS = 4
# What nobody waits for waits this long for company: a turn writes something every few milliseconds.
_SOON_S = 0.02

T = TypeVar("T")

_log = logging.getLogger(__name__)


def open_database(home: Path) -> tuple[Engine, Path | None]:
    """Return the engine on `<home>/aivista.db` at the newest revision, and where an unreadable one was set aside.

    Blocks. Raises StorageFailure when the home cannot be used, or the database is that of a newer Aivista.
    """
    path = home / NAME
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
    engine = engine_of(path, is_writing=True)
    try:
        _bring_up_to_date(engine)
        for ending in ("", "-wal", "-shm"):
            # Of earlier versions; what it told is in this database by now.
            path.with_name(f"checkpoints.db{ending}").unlink(missing_ok=True)
    except BaseException:
        engine.dispose()
        raise
    return engine


def upgrade(path: Path) -> None:
    """Bring a database that nobody uses to the newest revision.

    Raises StorageFailure, with nothing changed, when it is that of a newer Aivista or cannot be read.
    """
    engine = engine_of(path, is_writing=True)
    try:
        _bring_up_to_date(engine)
    except DatabaseError as error:
        raise record_failure(error) from error
    finally:
        engine.dispose()


def record_failure(error: DBAPIError) -> StorageFailure:
    """Return what the operator reads of a failed statement: nothing of the statement or its values."""
    return broken_or_full(error.orig)


def broken_or_full(error: BaseException | None) -> StorageFailure:
    """Return what the operator reads of an error of SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)
    # The file that processes share is grown, not written: where there is no room for it, SQLite calls it another error.
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE):
        return StorageFailure(ErrorCode.DISK_FULL)
    return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=str(error))


def _make_private(path: Path) -> None:
    try:
        make_private_folder(path.parent)
        # SQLite gives its journals the mode of the database.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise storage_failure(error) from error


def engine_of(path: Path, *, is_writing: bool, connections: int = 1) -> Engine:
    """Return an engine on a database whose file is there; it may write, or only read."""
    url = URL.create("sqlite", database=str(path))
    if not is_writing:
        url = URL.create("sqlite", database=path.absolute().as_uri(), query={"mode": "ro", "uri": "true"})
    # What is bound to a statement is what people said, and an error may reach a log.
    waiting = {"timeout": _BUSY_TIMEOUT_S}
    engine = create_engine(url, hide_parameters=True, pool_size=connections, max_overflow=0, connect_args=waiting)
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
        # Past SQLAlchemy, whose transaction around it costs as much as a write: every call of a turn asks for this.
        connection.connection.cursor().execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
    except sqlite3.DatabaseError as error:
        raise broken_or_full(error) from error


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
        _use_log_ahead(connection)


def _use_log_ahead(connection: Connection) -> None:
    """Have the database write its log ahead. SQLite's own waiting does not cover this: while another process opens the
    same new database it fails at once."""
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


def _upgrade(connection: Connection, revision: str | None) -> None:
    if revision == HEAD:
        return
    if revision is not None:
        migrate(connection, revision)
        return
    # A first start need not wait for Alembic to load; a test holds that both ways lead to the same tables.
    METADATA.create_all(connection)
    for statement in (*FULL_TEXT, *CHECKPOINTS):
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
        detail = f"{NAME} was written by a newer Aivista (revision {revision})"
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


class Transactions:
    """The transactions of one engine, all on the same thread: one connection is kept for them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # To take it from the pool each time costs as much as a statement.
        self._connection: Connection | None = None
        self._joint: Connection | None = None
        self._is_durable = False

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()

    def begin_batch(self, is_durable: bool) -> None:
        """Have the next transactions be on the disk itself when they are committed, or only in the system's hands."""
        if is_durable != self._is_durable:
            set_durability(self._connected(), is_durable)
            self._is_durable = is_durable

    @contextmanager
    def together(self) -> Iterator[None]:
        """Put every write of the block into one transaction: all of them are on record, or none."""
        with self.writing() as connection:
            self._joint = connection
            try:
                yield
            finally:
                self._joint = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that only reads, or join the one that several writes share."""
        with self._transaction(is_writing=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that may write, or join the one that several writes share."""
        with self._transaction(is_writing=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, is_writing: bool) -> Iterator[Connection]:
        if self._joint is not None:
            yield self._joint
            return
        try:
            connection = self._connected()
            with connection.begin():
                (begin_writing if is_writing else begin_reading)(connection)
                yield connection
        except DBAPIError as error:
            raise record_failure(error) from error

    def _connected(self) -> Connection:
        if self._connection is None:
            try:
                self._connection = self._engine.connect()
            except DBAPIError as error:
                raise record_failure(error) from error
        return self._connection


@dataclass
class _Write:
    """`record` writes to the database, `remember` what it returned to memory once it is committed.

    One that is `durable` is on the disk itself when it is done: a power cut does not take it back. For one that is
    `spare` no room is made on a full disk.
    """

    record: Callable[[], Any]
    remember: Callable[[Any], None] | None
    done: asyncio.Future[Any]
    is_durable: bool = False
    is_spare: bool = False
    result: Any = None


class WriteBatcher:
    """A queue of writes in front of one thread; each is on record when its `write` returns.

    What waits when the thread is free goes into one transaction (`together`): fifty turns need not wait for fifty
    commits. If that fails, each is tried by itself, so that one bad write fails alone. `begin` hears before each batch
    whether it must be durable. When the disk is full, `make_room` is called, and what failed is tried once more if it
    made any.
    """

    def __init__(
        self,
        thread: Executor,
        together: Callable[[], AbstractContextManager[None]],
        begin: Callable[[bool], None] | None = None,
        make_room: Callable[[], bool] | None = None,
    ) -> None:
        self._thread = thread
        self._together = together
        self._begin_batch = begin
        self._make_room = make_room
        self._waiting: deque[_Write] = deque()
        self._is_at_work = False
        self._unfinished: set[asyncio.Future[Any]] = set()

    async def write(
        self,
        record: Callable[[], T],
        remember: Callable[[T], None] | None = None,
        *,
        is_durable: bool = False,
        is_spare: bool = False,
    ) -> T:
        """Write, then remember, and return what was written. Raises what `record` raises; it may be called twice.

        Cancelling the caller does not take its write back.
        """
        loop = asyncio.get_running_loop()
        one = _Write(record, remember, loop.create_future(), is_durable, is_spare)
        self._hand_over(one)
        self._begin(loop)
        written: T = await asyncio.shield(one.done)
        return written

    def write_soon(self, record: Callable[[], object], *, is_spare: bool = False) -> asyncio.Future[Any]:
        """Hand over a write that nobody waits for: it goes along with the next one, or alone a few milliseconds later.

        What is written afterwards comes after it. Return its end, which raises what `record` raises.
        """
        loop = asyncio.get_running_loop()
        one = _Write(record, None, loop.create_future(), is_spare=is_spare)
        self._hand_over(one)
        if not self._is_at_work:
            loop.call_later(_SOON_S, self._begin, loop)
        return one.done

    def _hand_over(self, one: _Write) -> None:
        self._waiting.append(one)
        self._unfinished.add(one.done)
        one.done.add_done_callback(self._unfinished.discard)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._waiting and not self._is_at_work:
            self._is_at_work = True
            self._thread.submit(self._work, loop)

    async def finish(self) -> None:
        """Return when nothing waits any more."""
        self._begin(asyncio.get_running_loop())
        while self._unfinished:
            await asyncio.wait(self._unfinished)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        outcomes = self._written(batch)
        failed = [at for at, one in enumerate(batch) if not one.is_spare and _is_disk_full(outcomes[at])]
        if failed and self._make_room is not None and self._make_room():
            for number, outcome in zip(failed, self._written([batch[one] for one in failed]), strict=True):
                outcomes[number] = outcome
        loop.call_soon_threadsafe(self._settle, loop, batch, outcomes)

    def _written(self, batch: list[_Write]) -> list[Exception | None]:
        if (begin := self._begin_batch) is not None:
            is_durable = any(one.is_durable for one in batch)
            error = _failure(lambda: begin(is_durable))
            if error is not None:
                return [error] * len(batch)

        def record_all() -> None:
            with self._together():
                for one in batch:
                    one.result = one.record()

        is_recorded = len(batch) > 1 and _failure(record_all) is None
        return [(None if is_recorded else _failure(_record, one)) or _failure(_remember, one) for one in batch]

    def _settle(self, loop: asyncio.AbstractEventLoop, batch: list[_Write], outcomes: list[Exception | None]) -> None:
        for one, error in zip(batch, outcomes, strict=True):
            if one.done.cancelled():
                continue
            if error is None:
                one.done.set_result(one.result)
            else:
                one.done.set_exception(error)
        self._is_at_work = bool(self._waiting)
        if self._is_at_work:
            self._thread.submit(self._work, loop)


def _record(one: _Write) -> None:
    one.result = one.record()


def _remember(one: _Write) -> None:
    if one.remember is not None:
        one.remember(one.result)


def _is_disk_full(error: Exception | None) -> bool:
    return isinstance(error, StorageFailure) and error.code is ErrorCode.DISK_FULL


def _failure(work: Callable[..., object], *arguments: object) -> Exception | None:
    """Return what the work raised: it belongs to the one who waits, and must not leave the others waiting for ever."""
    try:
        work(*arguments)
    except Exception as error:
        return error
    return None


class Database:
    """The records of a home under the event loop: what is asked of it is a function of a connection.

    What was handed over is written even when the caller is cancelled meanwhile. Every call but `open` and `aclose`
    raises StorageFailure when the database cannot be read or written, and what the function raises.
    """

    def __init__(self, home: Path, make_room: Callable[[], bool]) -> None:
        self._home = home
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._opened: Transactions | None = None
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix="reader")
        self._readers = engine_of(home / NAME, is_writing=False, connections=_READERS)
        self._now: sqlite3.Connection | None = None
        self._batcher = WriteBatcher(
            self._thread,
            lambda: self._transactions.together(),
            lambda is_durable: self._transactions.begin_batch(is_durable),
            make_room,
        )
        self._unfinished: set[asyncio.Task[Any]] = set()
        # Where an unreadable database was put when this one was opened.
        self.set_aside: Path | None = None

    @property
    def _transactions(self) -> Transactions:
        if self._opened is None:
            raise RuntimeError("the store is not open")
        return self._opened

    async def open(self) -> None:
        """Open or create the database. Raises StorageFailure, also when it is that of a newer Aivista."""
        await self.call(self._open_now)

    def _open_now(self) -> None:
        engine, self.set_aside = open_database(self._home)
        self._opened = Transactions(engine)
        self._now = sqlite3.connect(self._home / NAME, timeout=0.0, isolation_level=None, check_same_thread=False)
        self._now.execute("PRAGMA query_only=ON")

    async def aclose(self, release: Callable[[], None]) -> None:
        """Finish what is being written, then `release` what else is held, and close the database."""
        while self._unfinished:
            await asyncio.wait(self._unfinished)
        await self._batcher.finish()
        await asyncio.to_thread(self._reading.shutdown)
        await self.call(lambda: self._close_now(release))
        self._thread.shutdown()

    def _close_now(self, release: Callable[[], None]) -> None:
        release()
        self._readers.dispose()
        if self._now is not None:
            self._now.close()
            self._now = None
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    async def call(self, work: Callable[[], T]) -> T:
        """Return what the work returns on the thread that writes."""
        return await _on(self._thread, work)

    async def durably(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work returns. It goes on when the caller is cancelled; the database is closed after it."""
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return await asyncio.shield(task)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what the work finds in one state of the database, with all that whoever asks knows to be written."""
        return await _on(self._reading, lambda: self._read_now(work))

    def _read_now(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._readers.begin() as connection:
                begin_reading(connection)
                return work(connection)
        except DBAPIError as error:
            raise record_failure(error) from error

    def values_now(self, statement: str, *values: str) -> list[Any]:
        """Return what the statement's first column holds at this moment, nothing where that cannot be told just now.

        This is done on the event loop itself: for a single value a change of thread would cost more, and a reader of
        SQLite's log ahead waits for nobody.
        """
        if self._now is None:
            return []
        try:
            # All rows: a statement that is not read to its end keeps the log from being folded in.
            return [row[0] for row in self._now.execute(statement, values).fetchall()]
        except sqlite3.Error:
            # Locked for a moment, or broken: whoever asks takes the way that tells why.
            return []

    def value_now(self, statement: str, *values: str) -> Any:
        """Return the first of `values_now`, None where there is none."""
        return next(iter(self.values_now(statement, *values)), None)

    async def write(
        self,
        work: Callable[[Connection], T],
        remember: Callable[[T], None] | None = None,
        *,
        is_durable: bool = False,
        is_spare: bool = False,
    ) -> T:
        """Return what the work returns; all that it writes is on record then, or none of it. It may be called twice.

        It sees all that was handed over before. `remember` is called on the thread of the database with what the work
        returned, right after it is committed. What `is_spare` takes nothing of the room that is set aside on the disk
        for answers that were paid for.
        """
        return await self._batcher.write(
            lambda: self._write_now(work), remember, is_durable=is_durable, is_spare=is_spare
        )

    def write_soon(self, work: Callable[[Connection], object], *, is_spare: bool = False) -> asyncio.Future[Any]:
        """Hand over a write that nobody waits for; return its end, which raises what the work raises."""
        return self._batcher.write_soon(lambda: self._write_now(work), is_spare=is_spare)

    def _write_now(self, work: Callable[[Connection], T]) -> T:
        with self._transactions.writing() as connection:
            return work(connection)


async def _on(threads: Executor, work: Callable[[], T]) -> T:
    # Cancelling the caller must not take its work from the queue.
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(threads, work))
