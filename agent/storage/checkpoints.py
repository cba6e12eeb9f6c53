"""Where turns stand: LangGraph's SQLite saver, its writes committed together on a thread of their own.

Its own asynchronous form takes a commit and four changes of thread for every write. What a checkpoint would lose in a
power cut is asked of the journal again, without a call, so it need not wait for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from agent import moved
from agent.errors import ErrorCode, StorageFailure
from agent.storage.database import WriteBatcher, use_log_ahead
from agent.storage.private_files import make_private_folder, storage_failure

T = TypeVar("T")
_Put = tuple[RunnableConfig, Checkpoint, CheckpointMetadata, ChannelVersions]

NAME = "checkpoints.db"
# What a checkpoint holds stands in the journal as well: it may wait for the next one, which then takes its place.
_SOON_S = 0.1
# Deleting costs as much for many turns as for one.
_TOGETHER = 32

_log = logging.getLogger(__name__)


class _Serializer(JsonPlusSerializer):
    """Reads values under the modules where earlier versions had them, too; nobody need be warned of those."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        with moved.unsaid():
            return super().loads_typed(data)


class Checkpoints(SqliteSaver):
    """The checkpoints of running, waiting and failed turns below `<home>/checkpoints.db`, a turn's id its thread.

    `values` are the types that may be read back; nothing else is ever made from what the file holds. Use `opened`.
    """

    def __init__(self, connection: sqlite3.Connection, values: Sequence[type], thread: ThreadPoolExecutor) -> None:
        allowed = tuple(
            (module, value.__qualname__)
            for value in values
            for module in (value.__module__, *moved.modules_before(value.__module__))
        )
        super().__init__(connection, serde=_Serializer(allowed_msgpack_modules=allowed))
        self._thread = thread
        self._joint: sqlite3.Cursor | None = None
        self._over: list[str] = []
        # The newest checkpoint of each turn that is not handed over yet.
        self._newest: dict[str, _Put] = {}
        # Turns that began here and have none yet, which most never get: to ask the file would be a change of thread.
        self._new: set[str] = set()
        self._writing = WriteBatcher(thread, self._together)

    @classmethod
    async def opened(cls, home: Path, values: Sequence[type]) -> Checkpoints:
        """Return the checkpoints of a home. Raises StorageFailure when they can be neither read nor made anew."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")

        def open_now() -> Checkpoints:
            connection = _connection(home / NAME)
            try:
                saver = cls(connection, values, thread)
                saver.setup()
            except sqlite3.Error as error:
                connection.close()
                raise _failure_of(error) from error
            return saver

        try:
            return await asyncio.get_running_loop().run_in_executor(thread, open_now)
        except BaseException:
            thread.shutdown(wait=False)
            raise

    async def aclose(self) -> None:
        """Let go of what is over, finish what is being written and close the file."""
        over, self._over = self._over, []
        if over:
            self._soon(lambda: self._delete(over))
        await self.written()
        await self._call(self.conn.close)
        self._thread.shutdown()

    def begin(self, turn_id: str) -> None:
        """Take note of a new turn, which has no checkpoint."""
        self._new.add(turn_id)

    def forget(self, turn_id: str) -> None:
        """Let go, sooner or later, of the checkpoints of a turn that is over."""
        self._newest.pop(turn_id, None)
        if turn_id in self._new:
            self._new.discard(turn_id)
            return
        self._over.append(turn_id)
        if len(self._over) >= _TOGETHER:
            over, self._over = self._over, []
            self._soon(lambda: self._delete(over))

    async def keep_only(self, may_go_on: Callable[[Sequence[str]], Awaitable[set[str]]]) -> None:
        """Remove the checkpoints of every turn but those that may go on."""
        await self.written()
        # In this order: one that another process begins now has no checkpoint yet, and is not among them.
        there = await self._call(self._kept_threads)
        over = sorted(there - await may_go_on(sorted(there))) if there else []
        if over:
            await self._writing.write(lambda: self._delete(over))

    def _kept_threads(self) -> set[str]:
        with self.cursor() as cursor:
            return {name for (name,) in cursor.execute("SELECT DISTINCT thread_id FROM checkpoints")}

    async def written(self) -> None:
        """Return when everything that was handed over is in the file."""
        self._hand_over()
        await self._writing.finish()

    def _delete(self, turn_ids: Sequence[str]) -> None:
        for turn_id in turn_ids:
            self.delete_thread(turn_id)

    def _soon(self, work: Callable[[], None]) -> None:
        self._writing.write_soon(work).add_done_callback(_tell)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Return a cursor: that of the joint transaction while there is one."""
        if self._joint is not None:
            yield self._joint
            return
        with super().cursor(transaction) as cursor:
            yield cursor

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the configuration names, or its thread's newest."""
        if config["configurable"]["thread_id"] in self._new:
            return None
        await self.written()
        return await self._call(lambda: self.get_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return the checkpoints of a thread that were not overtaken by the next, the newest first."""
        await self.written()
        for one in await self._call(lambda: list(self.list(config, filter=filter, before=before, limit=limit))):
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Hand over a checkpoint, but none of a turn in which nothing is done yet or nothing is left to do.

        It is written a moment later, and not at all when the next one comes before that.
        """
        turn_id = config["configurable"]["thread_id"]
        if metadata.get("step", 0) > 0 and _has_next(checkpoint):
            self._new.discard(turn_id)
            if not self._newest:
                asyncio.get_running_loop().call_later(_SOON_S, self._hand_over)
            self._newest[turn_id] = (config, checkpoint, metadata, new_versions)
        return {
            "configurable": {
                "thread_id": turn_id,
                "checkpoint_ns": config["configurable"]["checkpoint_ns"],
                "checkpoint_id": checkpoint["id"],
            }
        }

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Hand over where a turn rests. What a node brought comes with the next checkpoint: one runs at a time."""
        if any(channel in WRITES_IDX_MAP for channel, _ in writes):
            self._new.discard(config["configurable"]["thread_id"])
            self._hand_over()
            self._soon(lambda: self.put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread."""
        self._newest.pop(thread_id, None)
        await self._writing.write(lambda: self.delete_thread(thread_id))

    def _hand_over(self) -> None:
        newest, self._newest = self._newest, {}
        for put in newest.values():
            self._soon(partial(self._put, put))

    def _put(self, put: _Put) -> None:
        self.put(*put)

    @contextmanager
    def _together(self) -> Iterator[None]:
        with super().cursor() as cursor:
            self._joint = cursor
            try:
                yield
            finally:
                self._joint = None

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _connection(path: Path) -> sqlite3.Connection:
    try:
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise storage_failure(error) from error
    try:
        return _checked(path)
    except sqlite3.OperationalError as error:
        raise _failure_of(error) from error
    except sqlite3.DatabaseError:
        # Only unfinished turns stand here; the conversations do not need this file.
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return _checked(path)


def _failure_of(error: sqlite3.Error) -> StorageFailure:
    if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE):
        return StorageFailure(ErrorCode.DISK_FULL)
    return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=str(error))


def _checked(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=5.0)
    try:
        use_log_ahead(connection.execute)
        connection.execute("PRAGMA synchronous=NORMAL")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _has_next(checkpoint: Checkpoint) -> bool:
    """Whether a node waits for its turn: LangGraph has a channel for each that was sent for."""
    return any(channel.startswith("branch:to:") for channel in checkpoint["channel_values"])


def _tell(written: asyncio.Future[None]) -> None:
    error = None if written.cancelled() else written.exception()
    if error is not None:
        # The turn itself goes on; only after a crash it would be taken up one step earlier.
        _log.warning("a checkpoint could not be written: %s", error)
