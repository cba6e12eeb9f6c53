"""Transactions on the database of the records: one connection, for the one thread that may use it.

Several processes share a home, so a transaction that writes takes the write lock before it reads: what it read is
still true when it writes. One that only reads sees one state of the database and waits for nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from agent.storage.database import begin_reading, begin_writing, record_failure, set_durability


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
