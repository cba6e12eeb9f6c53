"""A running turn: it continues without listeners, any number of listeners can follow it, and it can be cancelled."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from cachetools import TTLCache

from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.events import PictureReady, TurnDone, TurnEvent, TurnFailed, TurnPaused, TurnStarted, TurnStopped

logger = logging.getLogger(__name__)

KEPT_S = 600.0
MOST_KEPT = 500
_LAST = (TurnDone, TurnFailed, TurnStopped, TurnPaused)


class LiveTurn:
    """One running turn and its events, numbered from 1, so that a late listener can catch up.

    `work` publishes the turn's events; `on_stop` records a turn that ends early and returns its last event; `on_end` is
    called after every end. The turn starts immediately. `turn_id` is set by the TurnStarted event; `goes_on` is the id
    of a paused turn that resumes, `before` its earlier part if still kept: the event numbers continue from it.
    """

    def __init__(
        self,
        conversation_id: str,
        owner: str,
        work: Callable[[LiveTurn], Awaitable[None]],
        on_stop: Callable[[LiveTurn], Awaitable[TurnStopped | TurnPaused]],
        on_end: Callable[[LiveTurn], None],
        *,
        goes_on: str | None,
        before: LiveTurn | None,
    ) -> None:
        self.conversation_id = conversation_id
        self.owner = owner
        self.turn_id: str | None = None
        self.stopped = asyncio.Event()
        self.cut = asyncio.Event()
        # Set when no other turn of its conversation goes first in this process.
        self.is_first = asyncio.Event()
        # Callbacks for each end of the turn, added by its starter.
        self.when_ended: list[Callable[[LiveTurn], Coroutine[Any, Any, None]]] = before.when_ended if before else []
        self._told = before.events if before is not None else ()
        self._goes_on = goes_on
        self._events: list[TurnEvent] = []
        self._moved = asyncio.Event()
        self._work: Callable[[LiveTurn], Awaitable[None]] | None = work
        self._on_stop: Callable[[LiveTurn], Awaitable[TurnStopped | TurnPaused]] | None = on_stop
        self._on_end = on_end
        self._is_done = False
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._end)

    @property
    def events(self) -> tuple[TurnEvent, ...]:
        """The events published so far; event number N is at index N - 1."""
        return (*self._told, *self._events)

    @property
    def before(self) -> int:
        """The number of events before this part of the turn."""
        return len(self._told)

    @property
    def is_whole(self) -> bool:
        """Whether its events start at the turn's beginning: a part that another process ran is not known here."""
        return bool(self._told) or self._goes_on is None or self._goes_on != self.turn_id

    def goes_on_at(self, number: int) -> bool:
        """Whether the event of this number comes after a pause, so that the earlier events of the turn stay shown."""
        return not self.is_whole or any(isinstance(one, TurnStarted) for one in self.events[: number - 1])

    def publish(self, event: TurnEvent) -> None:
        """Publish an event to all current and later listeners."""
        if isinstance(event, PictureReady):
            # The answer's signature has megabytes and is recorded: listeners do not need it.
            event = event.model_copy(update={"picture": event.picture.model_copy(update={"answer": None})})
        self._events.append(event)
        if isinstance(event, TurnStarted):
            self.turn_id = event.turn_id
        self._wake()

    async def follow(self, after: int = 0) -> AsyncIterator[tuple[int, TurnEvent]]:
        """Stream the turn's events after a number, each with its own number; leaving does not stop the turn."""
        number = after
        while True:
            while number < len(self._told) + len(self._events):
                number += 1
                own = number - len(self._told)
                yield number, self._events[own - 1] if own > 0 else self._told[number - 1]
            if self.is_done:
                return
            await self._moved.wait()

    async def first(self) -> TurnEvent | None:
        """Wait for the first event of this part of the turn and return it; None if the turn ends without one."""
        async for _, event in self.follow(len(self._told)):
            return event
        return None

    @property
    def is_done(self) -> bool:
        """Whether the last event has been published."""
        return self._is_done

    async def stop(self) -> None:
        """Cancel the turn and wait until its progress is recorded. A second call only waits."""
        await self._end_early(self.stopped)

    async def cut_off(self) -> None:
        """Interrupt the turn because the studio ends, and wait until it is recorded for resuming at the next start."""
        await self._end_early(self.cut)

    async def wait(self) -> None:
        """Wait until the turn has ended in any way."""
        await asyncio.wait([self._task])

    async def _end_early(self, reason: asyncio.Event) -> None:
        # Only the first reason to end counts.
        if not self.stopped.is_set() and not self.cut.is_set():
            reason.set()
            self._task.cancel()
        await self.wait()

    async def _run(self) -> None:
        try:
            assert self._work is not None
            await self._work(self)
        except asyncio.CancelledError:
            if not self.has_ended:
                await self._record_end()
        except AivistaError as error:
            self.publish(TurnFailed(error=error.info))
        except Exception:
            # The last boundary: log an unexpected exception with its traceback, show the user one sentence.
            logger.exception("a turn failed")
            self.publish(TurnFailed(error=ErrorInfo(code=ErrorCode.INTERNAL)))

    @property
    def last(self) -> TurnEvent | None:
        """The newest event of this part of the turn."""
        return self._events[-1] if self._events else None

    @property
    def has_ended(self) -> bool:
        """Whether the turn has published a final event."""
        return isinstance(self.last, _LAST)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _end(self, _: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step never runs, but its listeners still need a final event.
        if not self.has_ended:
            closing = TurnFailed(error=ErrorInfo(code=ErrorCode.STUDIO_CLOSING))
            self.publish(closing if self.cut.is_set() else TurnStopped())
        self._is_done = True
        # The events are kept for a while; the callbacks and their objects are released.
        self._work = self._on_stop = None
        self._wake()
        self._on_end(self)

    async def _record_end(self) -> None:
        try:
            assert self._on_stop is not None
            self.publish(await self._on_stop(self))
        except AivistaError as error:
            self.publish(TurnFailed(error=error.info))


class RecentTurns:
    """The events of turns that ended or paused recently. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[str, LiveTurn] = TTLCache(MOST_KEPT, KEPT_S, clock)

    def keep(self, live: LiveTurn) -> None:
        """Keep a turn for ten minutes, unless it never started."""
        if live.turn_id is not None:
            self._kept[live.turn_id] = live

    def find(self, conversation_id: str, turn_id: str, owner: str) -> LiveTurn | None:
        """Return the newest part of a turn, which includes the earlier events, if it is this owner's and still kept."""
        live = self._kept.get(turn_id)
        return live if live and (live.conversation_id, live.owner) == (conversation_id, owner) else None
