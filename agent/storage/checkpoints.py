"""Where turns stand: LangGraph's SQLite saver on the records' own database.

LangGraph's asynchronous form takes a commit and four changes of thread for every write. What a checkpoint would lose in
a power cut is asked of the journal again, without a call, so it need not wait for the disk.
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

# What a checkpoint holds stands in the journal as well: it may wait for the next one, which then takes its place.
_SOON_S = 0.1

# What earlier versions kept and no version asks for any more: nobody need be warned of it.
_GONE = (("agent.conversation", "Timing"),)

_log = logging.getLogger(__name__)


class _Serializer(JsonPlusSerializer):
    """Reads values under the modules where earlier versions had them, too; nobody need be warned of those."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        with moved.unsaid():
            return super().loads_typed(data)


class Checkpoints(SqliteSaver):
    """The newest checkpoint of each running, waiting and failed turn, a turn's id its thread.

    `values` are the types that may be read back; nothing else is ever made from what the database holds.
    """

    def __init__(self, db: Database, values: Sequence[type]) -> None:
        allowed = tuple(
            (module, value.__qualname__)
            for value in values
            for module in (value.__module__, *moved.modules_before(value.__module__))
        )
        # The connection comes with each transaction of the database, which has made the tables.
        serde = _Serializer(allowed_msgpack_modules=(*allowed, *_GONE))
        super().__init__(cast("sqlite3.Connection", None), serde=serde)
        self.is_setup = True
        self._db = db
        # The newest checkpoint of each turn that is not handed over yet.
        self._newest: dict[str, _Put] = {}
        # Turns that began here and have none yet, which most never get: to ask for it would be a change of thread.
        self._new: set[str] = set()

    def begin(self, turn_id: str) -> None:
        """Take note of a new turn, which has no checkpoint."""
        self._new.add(turn_id)

    def forget(self, turn_id: str) -> None:
        """Write no more of a turn that is over; what was written goes with its answers."""
        self._newest.pop(turn_id, None)
        self._new.discard(turn_id)

    async def written(self) -> None:
        """Return when everything that was handed over is on record."""
        self._hand_over()
        await self._db.write(lambda _: None)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Return a cursor of the transaction that the database is in."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the configuration names, or its thread's newest."""
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
        """Hand over a checkpoint, but none of a turn that has not come to its first node or has nothing left to do.

        It is written a moment later, and not at all when the next one comes before that.
        """
        turn_id = config["configurable"]["thread_id"]
        if metadata.get("step", 0) >= 0 and _has_next(checkpoint):
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


def _has_next(checkpoint: Checkpoint) -> bool:
    """Whether a node waits for its turn: LangGraph has a channel for each that was sent for."""
    return any(channel.startswith("branch:to:") for channel in checkpoint["channel_values"])


def _log_failure(written: asyncio.Future[None]) -> None:
    error = None if written.cancelled() else written.exception()
    if error is not None:
        # The turn itself goes on; only after a crash it would be taken up one step earlier.
        _log.warning("a checkpoint could not be written: %s", error)
