"""The records of a home: opened and closed, their abandoned turns found, the conversations that were read kept."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, false, update

from agent.conversation import Conversation
from agent.errors import AivistaError
from agent.messages import PromptMessage
from agent.storage.database import Database
from agent.storage.images import ImageStore
from agent.storage.journal import Journal, forget_answers, turns_with_old_answers
from agent.storage.liveness import ProcessLock
from agent.storage.private_files import storage_failure
from agent.storage.signatures import Place, large_signatures, take_out
from agent.storage.tables import TURNS
from agent.storage.traces import LIMIT_BYTES, Traces
from agent.storage.turn_order import RunningTurn, TurnOrder

_NAME = "aivista.db"
_VERSION = "SELECT version FROM conversations WHERE id = ?"
_TO_STOP = "SELECT id FROM turns WHERE runner = ? AND is_stop_requested = 1"
_OF_REQUEST = "SELECT id FROM turns WHERE conversation_id = ? AND request_id = ?"


class DirectReads:
    """Reads from the database of a home, which is there already. None says that it could not be told just now.

    Single values, read on the event loop itself: for so little a change of thread would cost more. A reader of SQLite's
    log ahead waits for nobody. A database elsewhere would be asked over the network: whoever calls these awaits them
    already.
    """

    def __init__(self, home: Path) -> None:
        self._connection = sqlite3.connect(home / _NAME, timeout=0.0, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA query_only=ON")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def version(self, conversation_id: str) -> int | None:
        """Return the version of a conversation, None also where there is none."""
        found: int | None = self._one(_VERSION, conversation_id)
        return found

    def turn_of_request(self, conversation_id: str, request_id: str) -> str | None:
        """Return the turn that was sent under this name, None also where there is none."""
        found: str | None = self._one(_OF_REQUEST, conversation_id, request_id)
        return found

    def turns_to_stop(self, runner: str) -> tuple[str, ...]:
        """Return the turns of a process that somebody stopped in another one."""
        return tuple(row[0] for row in self._rows(_TO_STOP, runner))

    def changes(self) -> int | None:
        """Return a number that is another one after anybody has written to the database."""
        found: int | None = self._one("PRAGMA data_version")
        return found

    def _one(self, statement: str, *values: str) -> Any:
        rows = self._rows(statement, *values)
        return rows[0][0] if rows else None

    def _rows(self, statement: str, *values: str) -> list[Any]:
        try:
            # All of them: a statement that is not read to its end keeps the log from being folded in.
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error:
            # Locked for a moment, or broken: whoever asks takes the way that tells why.
            return []


_LIMIT = 64
_LIMIT_BYTES = 64 << 20


class OpenConversations:
    """At most `limit` conversations, and `limit_bytes` of large signatures in them; the least used goes first. A turn
    does not read and check its whole past again.

    Written on the thread of the database right after each commit, read from any thread.
    """

    def __init__(self, limit: int = _LIMIT, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[str, tuple[Conversation, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, conversation_id: str) -> Conversation | None:
        """Return the conversation as it was on record when this process last read or wrote it, if it is kept."""
        with self._lock:
            kept = self._kept.get(conversation_id)
            if kept is None:
                return None
            self._kept.move_to_end(conversation_id)
            return kept[0]

    def put(self, conversation: Conversation) -> None:
        """Keep a conversation that was just read or created."""
        with self._lock:
            self._drop(conversation.id)
            self._keep(conversation, _weight(conversation))

    def change(
        self,
        conversation_id: str,
        version: int,
        change: Callable[[Conversation], Conversation | None],
        added_bytes: int = 0,
    ) -> None:
        """Apply what was just recorded, if the conversation is kept; `added_bytes` of signatures came with it.

        It is read anew when it is next used, where it was not kept as it was one `version` before: another process has
        written, too. So it is after a change that gives None: that cannot be told from what is kept.
        """
        with self._lock:
            kept = self._drop(conversation_id)
            changed = change(kept[0]) if kept is not None and kept[0].version == version - 1 else None
            if kept is not None and changed is not None:
                self._keep(changed.model_copy(update={"version": version}), kept[1] + added_bytes)

    def drop(self, conversation_id: str) -> None:
        """Forget the conversation."""
        with self._lock:
            self._drop(conversation_id)

    def _drop(self, conversation_id: str) -> tuple[Conversation, int] | None:
        kept = self._kept.pop(conversation_id, None)
        if kept is not None:
            self._bytes -= kept[1]
        return kept

    def _keep(self, conversation: Conversation, weight: int) -> None:
        self._kept[conversation.id] = (conversation, weight)
        self._bytes += weight
        while len(self._kept) > self._limit or self._bytes > self._limit_bytes:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed


def _weight(conversation: Conversation) -> int:
    return sum(len(signature) for signature in large_signatures(conversation.messages))


T = TypeVar("T")

_PROBE_S = 2.0
# How often whoever waits for another process looks whether anything was written: it takes microseconds.
_LOOK_S = 0.1
# An interrupted turn that is older goes on only when somebody says so: nobody waits for it any more.
_RESUMED_FOR = timedelta(days=1)
# A picture of 4096 pixels and what belongs to it.
_ROOM_BYTES = 64 << 20


class OpenedRecords:
    """The records below `<home>/aivista.db`.

    What was handed over is written even when the caller is cancelled meanwhile. Every call but `open` and `aclose`
    raises StorageFailure when the database cannot be read or written, and RequestRefused(CONVERSATION_NOT_FOUND) for
    a conversation that is gone. Nothing was charged for calls of `free_models` that a dead process left.
    """

    def __init__(
        self, home: Path, images: ImageStore, *, trace_limit_bytes: int = LIMIT_BYTES, free_models: Collection[str] = ()
    ) -> None:
        self._home = home
        self._images = images
        self._open = OpenConversations()
        self.db = Database(home, images.reserve.give_back)
        self._process = ProcessLock(home / "running")
        self._order = TurnOrder(self._process.name, self._process.is_alive, free_models)
        self.journal = Journal(self.db, images)
        self.traces = Traces(self.db, trace_limit_bytes)
        # The turns that dead processes left and nobody has taken up, found when this store was opened.
        self.abandoned: tuple[RunningTurn, ...] = ()
        self._closed: tuple[RunningTurn, ...] = ()
        self._direct: DirectReads | None = None
        self._unfinished: set[asyncio.Task[Any]] = set()
        # Turns that are over and whose answers are still in the journal.
        self._over: list[str] = []

    @property
    def set_aside(self) -> Path | None:
        """Where an unreadable database was put when this one was opened."""
        return self.db.set_aside

    async def open(self) -> None:
        """Open or create the database and close the turns that a dead process left behind.

        Raises StorageFailure when the home cannot be used or the database is that of a newer Aivista.
        """
        try:
            await self.db.open()
            await self.db.call(self._hold)
            await self._close_abandoned()
            # Those that no process could have go on so far as well: it may have had another provider.
            since = datetime.now(UTC) - _RESUMED_FOR
            self.abandoned = await self.db.read(lambda on: self._order.resumable(on, since))
            if old := await self.db.read(turns_with_old_answers):
                await self.db.write(lambda on: forget_answers(on, old))
        except BaseException:
            await self.aclose()
            raise

    def _hold(self) -> None:
        try:
            self._process.hold()
        except OSError as error:
            raise storage_failure(error) from error
        self._direct = DirectReads(self._home)

    async def aclose(self) -> None:
        """Finish what is being written and close the database."""
        while self._unfinished:
            await asyncio.wait(self._unfinished)
        await self.traces.aclose()
        await self.db.aclose(self._release)

    def _release(self) -> None:
        self._process.release()
        if self._direct is not None:
            self._direct.close()
            self._direct = None

    async def not_ready(self) -> tuple[str, ...]:
        """Return what cannot be worked with now: `records` that are not open or take no write, a full `disk`."""
        try:
            async with asyncio.timeout(_PROBE_S):
                await self.db.write(_write_nothing)
        except (AivistaError, RuntimeError, TimeoutError):
            return ("records",)
        usage = await asyncio.to_thread(shutil.disk_usage, self._home)
        return ("disk",) if usage.free < _ROOM_BYTES else ()

    async def _close_abandoned(self) -> tuple[RunningTurn, ...]:
        if not await self.db.read(self._order.has_abandoned):
            return ()
        return await self.db.write(self._order.close_abandoned)

    async def close_abandoned(self) -> tuple[RunningTurn, ...]:
        """Return the turns that a dead process left running; they are now interrupted and show what they had made.

        Their calls that were on their way are `unknown` now.
        """
        closed = await self._close_abandoned()
        self._closed += closed
        return closed

    async def newly_abandoned(self) -> tuple[RunningTurn, ...]:
        """Return the turns of processes that have died since this was asked the last time; they are closed now."""
        await self.close_abandoned()
        closed, self._closed = self._closed, ()
        return closed

    def _remembered(self, conversation_id: str) -> Conversation | None:
        """Return what is remembered of a conversation, where nobody has changed it since."""
        kept = self._open.get(conversation_id)
        if kept is None or self._direct is None or self._direct.version(conversation_id) != kept.version:
            return None
        return kept

    def changes(self) -> int | None:
        """Return a number that is another one after any process, this one too, has written to the database."""
        return self._direct.changes() if self._direct is not None else None

    async def changed(self, since: int | None, timeout_s: float) -> None:
        """Return when anybody has written to the database since `changes` was asked, or after the timeout."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            if self.changes() == since:
                timer = loop.call_later(_LOOK_S, look)
            else:
                changed.set()

        look()
        try:
            async with asyncio.timeout(timeout_s):
                await changed.wait()
        except TimeoutError:
            return
        finally:
            if timer is not None:
                timer.cancel()

    async def _keep_signatures(
        self, messages: tuple[PromptMessage, ...]
    ) -> tuple[tuple[PromptMessage, ...], tuple[Place, ...]]:
        """Write large signatures as blobs, off the database's thread: others' turns wait for that one."""
        signatures = large_signatures(messages)
        if not signatures:
            return messages, ()
        return take_out(messages, [await self._images.write_blob(signature) for signature in signatures])


def _write_nothing(connection: Connection) -> None:
    """Take the lock of a writer. Raises SQLAlchemy's error where the file cannot be written."""
    connection.execute(update(TURNS).where(false()).values(text=""))
