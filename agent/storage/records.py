"""The database stores of a home: they are opened and closed together, and changes by any process are noticed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, false, update

from agent.errors import AivistaError
from agent.storage.conversation_cache import ConversationCache
from agent.storage.conversations import ConversationStore
from agent.storage.database import Database
from agent.storage.images import ImageStore
from agent.storage.journal import Journal
from agent.storage.process_lock import ProcessLock
from agent.storage.tables import TURNS
from agent.storage.traces import LIMIT_BYTES, Traces
from agent.storage.turns import RunningTurn, TurnStore

_VERSION = "SELECT version FROM conversations WHERE id = ?"
_TO_STOP = "SELECT id FROM turns WHERE runner = ? AND is_stop_requested = 1"
_OF_REQUEST = "SELECT id FROM turns WHERE conversation_id = ? AND request_id = ?"
_PROBE_S = 2.0
# How often `changed` checks whether another process has written: one check takes microseconds.
_LOOK_S = 0.1
# An older interrupted turn resumes only on request: nobody waits for it any more.
_RESUMED_FOR = timedelta(days=1)
# Enough for a picture of 4096 pixels and its other files.
_ROOM_BYTES = 64 << 20


class Records:
    """The records in `<home>/aivista.db`, each kind in its own store.

    A write that was started is finished even when the caller is cancelled. Every call of a store raises StorageFailure
    when the database cannot be read or written, and RequestRefused(CONVERSATION_NOT_FOUND) for a conversation that is
    gone. Calls of `free_models` that a dead process left unfinished count as free of charge.
    """

    def __init__(
        self, home: Path, images: ImageStore, *, trace_limit_bytes: int = LIMIT_BYTES, free_models: Collection[str] = ()
    ) -> None:
        self._home = home
        self._process = ProcessLock(home / "running")
        self.db = Database(home, images.reserve.give_back)
        cache = ConversationCache(lambda conversation_id: self.db.value_now(_VERSION, conversation_id))
        self.turns = TurnStore(self.db, cache, self._process, free_models)
        self.conversations = ConversationStore(self.db, images, cache, self.turns, self._process)
        self.journal = Journal(self.db)
        self.traces = Traces(self.db, trace_limit_bytes)
        # The turns that dead processes left and no process has resumed, found when this store was opened.
        self.abandoned: tuple[RunningTurn, ...] = ()

    async def open(self) -> None:
        """Open or create the database, and close the turns that a dead process left running.

        Raises StorageFailure when the home cannot be used, or a newer Aivista wrote the database.
        """
        try:
            await self.db.open()
            await self.db.call(self._process.hold)
            # `abandoned` reports these turns, together with turns that no process could resume so far: this process may
            # have another provider.
            await self.turns.newly_abandoned()
            self.abandoned = await self.turns.resumable(datetime.now(UTC) - _RESUMED_FOR)
            await self.turns.forget_steps()
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Finish pending writes and close the database."""
        await self.traces.aclose()
        await self.db.aclose(self._process.release)

    async def not_ready(self) -> tuple[str, ...]:
        """Return why the home is not usable: `records` (closed or not writable), `disk` (full); empty when it is."""
        try:
            async with asyncio.timeout(_PROBE_S):
                await self.db.write(_write_nothing)
        except (AivistaError, RuntimeError, TimeoutError):
            return ("records",)
        usage = await asyncio.to_thread(shutil.disk_usage, self._home)
        return ("disk",) if usage.free < _ROOM_BYTES else ()

    def changes(self) -> int | None:
        """Return a number that changes whenever any process, this one included, writes to the database."""
        changes: int | None = self.db.value_now("PRAGMA data_version")
        return changes

    def requested_turn(self, conversation_id: str, request_id: str) -> str | None:
        """Return the id of the turn with this request id, or None."""
        found: str | None = self.db.value_now(_OF_REQUEST, conversation_id, request_id)
        return found

    def turns_to_stop(self) -> tuple[str, ...]:
        """Return the turns of this process that another process asked to stop."""
        return tuple(self.db.values_now(_TO_STOP, self._process.name))

    async def changed(self, since: int | None, timeout_s: float) -> None:
        """Return when any process has written to the database since `changes` gave `since`, or after the timeout."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.changes() == since:  # noqa: ASYNC110 - another process sets no event
                    await asyncio.sleep(_LOOK_S)


def _write_nothing(connection: Connection) -> None:
    """Take the write lock. Raises SQLAlchemy's error where the file cannot be written."""
    connection.execute(update(TURNS).where(false()).values(text=""))
