"""Checkpoints of turns: LangGraph's SQLite saver on the records' own database.

LangGraph's asynchronous saver needs a commit and four thread switches for every write. What a power cut would remove
from a checkpoint is read again from the journal, without a paid call, so a checkpoint need not wait for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from sqlalchemy import Connection

from agent import moved
from agent.storage.database import Database

T = TypeVar("T")
_Put = tuple[RunnableConfig, Checkpoint, CheckpointMetadata, ChannelVersions]

# The journal holds a checkpoint's content as well: the write may wait for the next checkpoint, which then replaces it.
_SOON_S = 0.1

# Types that earlier versions stored and no version uses any more: no warning about them is needed.
_GONE = (("agent.conversation", "Timing"),)

_log = logging.getLogger(__name__)


class _Serializer(JsonPlusSerializer):
    """Also reads values under the module names of earlier versions, without a warning."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        with moved.unsaid():
            return super().loads_typed(data)


class Checkpoints(SqliteSaver):
    """The newest checkpoint of each running, waiting and failed turn; the thread id is the turn's id.

    `values` are the types that may be loaded; nothing else is ever constructed from the database.
    """

    def __init__(self, db: Database, values: Sequence[type]) -> None:
        allowed = tuple(
            (module, value.__qualname__)
            for value in values
            for module in (value.__module__, *moved.modules_before(value.__module__))
        )
        # The connection comes with each transaction of the database, where the tables already exist.
        serde = _Serializer(allowed_msgpack_modules=(*allowed, *_GONE))
        super().__init__(cast("sqlite3.Connection", None), serde=serde)
        self.is_setup = True
        self._db = db
        # The newest checkpoint of each turn that is not submitted yet.
        self._newest: dict[str, _Put] = {}
        # Turns that began here and have no checkpoint yet, which most never get: asking for one would cost a thread
        # switch.
        self._new: set[str] = set()

    def begin(self, turn_id: str) -> None:
        """Register a new turn, which has no checkpoint."""
        self._new.add(turn_id)

    def forget(self, turn_id: str) -> None:
        """Stop writing checkpoints of an ended turn; those in the database are deleted with its answers."""
        self._newest.pop(turn_id, None)
        self._new.discard(turn_id)

    async def written(self) -> None:
        """Return when every submitted checkpoint is on record."""
        self._hand_over()
        await self._db.write(lambda _: None)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Yield a cursor in the current transaction of the database."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the configuration names, or the newest of its thread."""
        if config["configurable"]["thread_id"] in self._new:
            return None
        self._hand_over()
        return await self._db.write(self._work(lambda: self.get_tuple(config)))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Submit a checkpoint, unless the turn has not reached its first node or has nothing left to do.

        It is written a moment later, and not at all when the next one comes before that.
        """
        turn_id = config["configurable"]["thread_id"]
        # LangGraph has a channel for each node that is to run.
        has_next = any(channel.startswith("branch:to:") for channel in checkpoint["channel_values"])
        if metadata.get("step", 0) >= 0 and has_next:
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
        """Submit special writes, such as an interrupt; a node's results come with the next checkpoint."""
        if any(channel in WRITES_IDX_MAP for channel, _ in writes):
            self._new.discard(config["configurable"]["thread_id"])
            self._hand_over()
            self._soon(lambda: self.put_writes(config, writes, task_id, task_path))

    def _hand_over(self) -> None:
        newest, self._newest = self._newest, {}
        for turn_id, put in newest.items():
            self._soon(partial(self._replace, turn_id, put))

    def _replace(self, turn_id: str, put: _Put) -> None:
        self.delete_thread(turn_id)
        self.put(*put)

    def _soon(self, work: Callable[[], None]) -> None:
        self._db.write_soon(self._work(work)).add_done_callback(_log_failure)

    def _work(self, work: Callable[[], T]) -> Callable[[Connection], T]:
        def run(on: Connection) -> T:
            self.conn = cast("sqlite3.Connection", on.connection.driver_connection)
            return work()

        return run


def _log_failure(written: asyncio.Future[None]) -> None:
    error = None if written.cancelled() else written.exception()
    if error is not None:
        # The turn itself continues; only after a crash it would resume one step earlier.
        _log.warning("a checkpoint could not be written: %s", error)
