"""A turn while it runs: it goes on without listeners, is followed by any number of them, and can be stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.events import (
    AgentMessage,
    PictureReady,
    SmartCanvas,
    StoppedNote,
    TextDelta,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
)
from agent.messages import PromptMessage, Role, TextPart
from agent.workflow.state import Spend, TurnProgress

logger = logging.getLogger(__name__)

_LAST = (TurnDone, TurnFailed, TurnStopped, TurnPaused)


class LiveTurn:
    """One running turn and what it has said so far, so that a page that comes back can catch up.

    `work` publishes the turn's events; `on_stop` puts a turn on record that ends early and returns its last event,
    `on_end` hears of any end. The turn starts at once. `turn_id` is there once it is told.
    """

    def __init__(
        self,
        conversation_id: str,
        owner: str,
        work: Callable[[LiveTurn], Awaitable[None]],
        on_stop: Callable[[LiveTurn], Awaitable[TurnStopped | TurnPaused]],
        on_end: Callable[[LiveTurn], None],
    ) -> None:
        self.conversation_id = conversation_id
        self.owner = owner
        self.turn_id: str | None = None
        self.stopped = asyncio.Event()
        self.cut = asyncio.Event()
        # No other turn of its conversation goes first in this process.
        self.is_first = asyncio.Event()
        self.progress: Progress | None = None
        self._events: list[TurnEvent] = []
        self._followers: set[asyncio.Queue[TurnEvent | None]] = set()
        self._work = work
        self._on_stop = on_stop
        self._on_end = on_end
        self._is_done = False
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._end)

    def publish(self, event: TurnEvent) -> None:
        """Give an event to everyone who follows, now and later."""
        self._events.append(event)
        if isinstance(event, TurnStarted):
            self.turn_id = event.turn_id
        if self.progress is not None:
            self.progress.take_event(event)
        for queue in self._followers:
            queue.put_nowait(event)

    async def follow(self) -> AsyncIterator[TurnEvent]:
        """Stream the turn's events from its first one; leaving does not stop the turn."""
        queue: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        for event in self._events:
            queue.put_nowait(event)
        if self.is_done:
            queue.put_nowait(None)
        self._followers.add(queue)
        try:
            while (event_or_end := await queue.get()) is not None:
                yield event_or_end
        finally:
            self._followers.discard(queue)

    @property
    def is_done(self) -> bool:
        """Whether the last event has been published."""
        return self._is_done

    async def stop(self) -> None:
        """Stop the turn and wait until it is on record as far as it came. A second Stop only waits."""
        await self._end_early(self.stopped)

    async def cut_off(self) -> None:
        """End the turn as the studio ends, and wait until it is on record as one that goes on at the next start."""
        await self._end_early(self.cut)

    async def wait(self) -> None:
        """Wait until the turn has ended, whatever way."""
        await asyncio.wait([self._task])

    async def _end_early(self, reason: asyncio.Event) -> None:
        # It ends once, for whichever reason came first.
        if not self.stopped.is_set() and not self.cut.is_set():
            reason.set()
            self._task.cancel()
        await self.wait()

    async def _run(self) -> None:
        try:
            await self._work(self)
        except asyncio.CancelledError:
            if not self.has_ended:
                await self._record_end()
        except AivistaError as error:
            self.publish(TurnFailed(error=error.info))
        except Exception:
            # The last boundary: whatever we did not foresee reaches the log whole and the person as one sentence.
            logger.exception("a turn failed")
            self.publish(TurnFailed(error=ErrorInfo(code=ErrorCode.INTERNAL)))

    @property
    def last(self) -> TurnEvent | None:
        """The newest event."""
        return self._events[-1] if self._events else None

    @property
    def has_ended(self) -> bool:
        """Whether the turn has said its last word."""
        return isinstance(self.last, _LAST)

    def _end(self, _: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step never runs: whoever follows must hear of the end all the same.
        if not self.has_ended:
            self.publish(self._nowhere_on_record())
        self._is_done = True
        for queue in self._followers:
            queue.put_nowait(None)
        self._on_end(self)

    async def _record_end(self) -> None:
        try:
            last = await self._on_stop(self)
        except AivistaError as error:
            self.publish(TurnFailed(error=error.info))
        else:
            self.publish(last)

    def _nowhere_on_record(self) -> TurnStopped | TurnFailed:
        if self.cut.is_set():
            return TurnFailed(error=ErrorInfo(code=ErrorCode.STUDIO_CLOSING))
        return TurnStopped()


class Progress:
    """What a turn has brought so far, kept outside the graph so that a stopped turn loses nothing."""

    def __init__(self, first: TurnProgress) -> None:
        self._state = first
        self._text = ""
        self._handles: list[str] = []

    def take_update(self, update: TurnProgress) -> None:
        """Add what a node has finished with."""
        before = self._state
        added: TurnProgress = {
            "messages": before["messages"] + update.get("messages", []),
            "components": before["components"] + update.get("components", []),
            "steps": before["steps"] + update.get("steps", []),
            "spend": before["spend"] + update.get("spend", Spend()),
            "timings": before["timings"] + update.get("timings", []),
        }
        self._state = {**before, **update, **added}
        self._text = ""
        if any(isinstance(one, SmartCanvas) for one in update.get("components", [])):
            self._handles = []

    def take_event(self, event: TurnEvent) -> None:
        """Remember what a node that is still at work has shown."""
        if isinstance(event, TextDelta):
            self._text += event.text
        elif isinstance(event, PictureReady):
            self._handles.append(event.picture.handle)

    def stopped(self) -> TurnProgress:
        """Return the state with what was half done and the note that it was stopped; a plan that waited is dropped."""
        state = self.so_far()
        state["components"] = [*state["components"], StoppedNote()]
        plan = state["plan"]
        if plan is not None and plan.state == "pending":
            state["plan"] = plan.model_copy(update={"state": "dropped"})
        return state

    def so_far(self) -> TurnProgress:
        """Return the state with what was half done: words shown, pictures stored."""
        state = self._state.copy()
        components = list(state["components"])
        if self._text.strip():
            part = TextPart(text=self._text)
            state["messages"] = [*state["messages"], PromptMessage(role=Role.MODEL, parts=(part,))]
            components.append(AgentMessage(text=self._text.strip()))
        if self._handles:
            components.append(SmartCanvas(handles=tuple(self._handles)))
        state["components"] = components
        return state
