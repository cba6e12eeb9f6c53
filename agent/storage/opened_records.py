"""The database of the records on a thread of its own: opened and closed, its abandoned turns found."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent.components import InterruptedNote, SmartCanvas
from agent.errors import AivistaError
from agent.messages import PromptMessage
from agent.storage.images import ImageStore
from agent.storage.journal import Journal
from agent.storage.liveness import LifeSign
from agent.storage.open_conversations import OpenConversations
from agent.storage.private_files import storage_failure
from agent.storage.signatures import Place, large_signatures, take_out
from agent.storage.traces import LIMIT_BYTES, Traces
from agent.storage.writing import Writing

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from agent.storage.records import Records, RunningTurn

T = TypeVar("T")

_PROBE_S = 2.0
# A picture of 4096 pixels and what belongs to it.
_ROOM_BYTES = 64 << 20


class OpenedRecords:
    """The records below `<home>/aivista.db`, one thread of its own under the event loop.

    What was handed over is written even when the caller is cancelled meanwhile. Every call but `open` and `aclose`
    raises StorageFailure when the database cannot be read or written, and RequestRefused(CONVERSATION_NOT_FOUND) for
    a conversation that is gone.
    """

    def __init__(self, home: Path, images: ImageStore, *, trace_limit_bytes: int = LIMIT_BYTES) -> None:
        self._home = home
        self._images = images
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._open = OpenConversations()
        self._writing = Writing(
            self._thread, lambda: self._records.together(), lambda is_durable: self._records.begin_batch(is_durable)
        )
        self._life = LifeSign(home / "running")
        self.journal = Journal(self._writing, lambda: self._records.calls, images)
        self.traces = Traces(self._writing, lambda: self._records.traces, trace_limit_bytes)
        # The turns that a dead process left running, found when this store was opened.
        self.abandoned: tuple[RunningTurn, ...] = ()
        self._opened: Records | None = None
        self._unfinished: set[asyncio.Task[None]] = set()

    @property
    def set_aside(self) -> Path | None:
        """Where an unreadable database was put when this one was opened."""
        return self._opened.set_aside if self._opened else None

    @property
    def _records(self) -> Records:
        if self._opened is None:
            raise RuntimeError("the store is not open")
        return self._opened

    async def open(self) -> None:
        """Open or create the database and close the turns that a dead process left behind.

        Raises StorageFailure when the home cannot be used or the database is that of a newer Aivista.
        """
        try:
            await self._call(self._open_now)
        except BaseException:
            await self.aclose()
            raise

    def _open_now(self) -> None:
        # SQLAlchemy takes 0.2 s to import, which the first page need not wait for.
        from agent.storage.records import Records

        self._opened = Records(self._home)
        try:
            self._life.hold()
        except OSError as error:
            raise storage_failure(error) from error
        self.abandoned = self._close_abandoned_now()
        self._opened.calls.let_go_of_all()

    async def aclose(self) -> None:
        """Finish what is being written and close the database."""
        while self._unfinished:
            await asyncio.wait(self._unfinished)
        await self.traces.aclose()
        await self._writing.finish()
        await self._call(self._close_now)
        self._thread.shutdown()

    def _close_now(self) -> None:
        self._life.release()
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    async def not_ready(self) -> tuple[str, ...]:
        """Return what cannot be worked with now: `records` that are not open or take no write, a full `disk`."""
        try:
            async with asyncio.timeout(_PROBE_S):
                await self.in_transaction(_write_nothing)
        except (AivistaError, RuntimeError, TimeoutError):
            return ("records",)
        usage = await asyncio.to_thread(shutil.disk_usage, self._home)
        return ("disk",) if usage.free < _ROOM_BYTES else ()

    async def close_abandoned(self) -> tuple[RunningTurn, ...]:
        """Return the turns that a dead process left running; they are now interrupted and show what they had made.

        Their calls that were on their way are `unknown` now.
        """
        return await self._call(self._close_abandoned_now)

    def _close_abandoned_now(self) -> tuple[RunningTurn, ...]:
        from agent.storage.rows import COMPONENTS

        closed = []
        for turn in self._records.running_turns():
            if self._life.is_alive(turn.runner):
                continue
            handles = self._records.made_in(turn)
            canvas = (SmartCanvas(handles=handles),) if handles else ()
            note = InterruptedNote(may_have_been_charged=self._records.calls.lose(turn.turn_id))
            if self._records.abandon(turn, COMPONENTS.dump_json((*canvas, note)).decode()):
                self._open.drop(turn.conversation_id)
                closed.append(turn)
        return tuple(closed)

    async def in_transaction(self, work: Callable[[Connection], T]) -> T:
        """Return what the work returns; all that it writes is on record then, or none of it."""
        return await self._call(self._in_transaction_now, work)

    async def after_writes(self, work: Callable[[Connection], T]) -> T:
        """Return what the work returns when all is on record that was handed over before, waited for or not."""
        found: list[T] = []
        await self._writing.write(lambda: found.append(self._in_transaction_now(work)), _nothing)
        # Tried once more when another write failed beside it.
        return found[-1]

    def _in_transaction_now(self, work: Callable[[Connection], T]) -> T:
        with self._records.transaction() as connection:
            return work(connection)

    def read_anew(self, conversation_id: str) -> None:
        """Forget what is remembered of a conversation: its record was changed."""
        self._open.drop(conversation_id)

    async def _call(self, work: Callable[..., T], *arguments: object) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        # Cancelling the caller must not take its work from the queue.
        return await asyncio.shield(future)

    async def _keep_signatures(
        self, messages: tuple[PromptMessage, ...]
    ) -> tuple[tuple[PromptMessage, ...], tuple[Place, ...]]:
        """Write large signatures as blobs, off the database's thread: others' turns wait for that one."""
        signatures = large_signatures(messages)
        if not signatures:
            return messages, ()
        return take_out(messages, [await self._images.write_blob(signature) for signature in signatures])


def _nothing() -> None:
    pass


def _write_nothing(connection: Connection) -> None:
    """Take the lock of a writer. Raises SQLAlchemy's error where the file cannot be written."""
    from sqlalchemy import false, update

    from agent.storage.tables import TURNS

    connection.execute(update(TURNS).where(false()).values(text=""))
