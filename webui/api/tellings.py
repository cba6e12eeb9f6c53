"""Turns as they are told to programs: each telling keeps its events, so that a stream that was cut goes on exactly."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agent import AivistaError, ErrorCode, ErrorInfo, PictureReady, StepTraced, TurnEvent, TurnFailed, TurnStarted

KEPT_S = 600.0
MOST_KEPT = 500

_log = logging.getLogger(__name__)

Ended = Callable[["Telling"], Awaitable[None]]


class Telling:
    """One part of a turn: from its beginning, or from where it went on, until it ended or came to rest.

    It listens whoever else does, and holds no signature of a picture: those are megabytes.
    """

    def __init__(
        self, conversation_id: str, owner: str, *, after: str | None = None, ended: Ended | None = None
    ) -> None:
        self.id = secrets.token_hex(8)
        self.conversation_id = conversation_id
        self.owner = owner
        self.ended = ended
        self.turn_id: str | None = None
        self.events: list[TurnEvent] = []
        self.is_over = False
        self._after = after
        self._moved = asyncio.Event()

    @property
    def goes_on(self) -> bool:
        """Whether it takes up a turn that had rested; one that is sent again as a new one begins anew."""
        return self._after is not None and self._after == self.turn_id

    async def take(self, events: AsyncIterator[TurnEvent]) -> None:
        """Listen to the end of the events."""
        try:
            async for event in events:
                self._add(event)
        except AivistaError as error:
            self._add(TurnFailed(error=error.info))
        except Exception:
            # Whoever listens must hear of an end, whatever happens.
            _log.exception("a turn could not be told")
            self._add(TurnFailed(error=ErrorInfo(code=ErrorCode.INTERNAL)))
        finally:
            self.is_over = True
            self._moved.set()
        if self.ended is not None:
            await self.ended(self)

    async def first(self) -> TurnEvent | None:
        """Return the first event once there is one; None when it ended without any."""
        while not self.events and not self.is_over:
            await self._next(None)
        return self.events[0] if self.events else None

    async def follow(self, start: int, patience_s: float) -> AsyncIterator[tuple[int, TurnEvent] | None]:
        """Stream the events with their places from one on; None whenever nothing has come for so long."""
        place = start
        while True:
            while place < len(self.events):
                yield place, self.events[place]
                place += 1
            if self.is_over:
                return
            if not await self._next(patience_s):
                yield None

    def _add(self, event: TurnEvent) -> None:
        if isinstance(event, StepTraced):
            # The trace tells it, with all that was sent.
            return
        if isinstance(event, TurnStarted):
            self.turn_id = event.turn_id
        if isinstance(event, PictureReady):
            event = event.model_copy(update={"picture": event.picture.model_copy(update={"answer": None})})
        self.events.append(event)
        self._moved.set()
        self._moved = asyncio.Event()

    async def _next(self, patience_s: float | None) -> bool:
        """Return whether anything came within the time."""
        try:
            async with asyncio.timeout(patience_s):
                await self._moved.wait()
        except TimeoutError:
            return False
        return True


@dataclass
class Tellings:
    """The tellings of late: those that go on, and those that ended a while ago. `clock` tells seconds."""

    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, tuple[Telling, asyncio.Task[None]]] = field(default_factory=dict)
    _over_at_s: dict[str, float] = field(default_factory=dict)

    def begin(
        self,
        conversation_id: str,
        owner: str,
        events: AsyncIterator[TurnEvent],
        *,
        after: str | None = None,
        ended: Ended | None = None,
    ) -> Telling:
        """Begin to listen to a turn. With `after`, the id of a turn, it is that one which goes on."""
        self._let_go()
        parts = self.parts(conversation_id, owner, after) if after is not None else []
        telling = Telling(
            conversation_id,
            owner,
            after=after,
            ended=ended or next((part.ended for part in parts if part.ended is not None), None),
        )
        task = asyncio.create_task(telling.take(events))
        task.add_done_callback(lambda _: self._over_at_s.setdefault(telling.id, self.clock()))
        self._kept[telling.id] = (telling, task)
        return telling

    def forget(self, telling: Telling) -> None:
        """Let go of a telling that never became a turn."""
        self._kept.pop(telling.id, None)
        self._over_at_s.pop(telling.id, None)

    def find(self, telling_id: str, conversation_id: str, owner: str) -> Telling | None:
        """Return the telling, if it is this owner's and still kept."""
        kept = self._kept.get(telling_id)
        if kept is None or (kept[0].conversation_id, kept[0].owner) != (conversation_id, owner):
            return None
        return kept[0]

    def parts(self, conversation_id: str, owner: str, turn_id: str) -> Sequence[Telling]:
        """Return what is kept of a turn, the oldest part first."""
        return [
            telling
            for telling, _ in self._kept.values()
            if (telling.conversation_id, telling.owner, telling.turn_id) == (conversation_id, owner, turn_id)
        ]

    def running(self, conversation_id: str, owner: str) -> Telling | None:
        """Return the oldest telling of the conversation that goes on."""
        of_it = (one for one, _ in self._kept.values() if (one.conversation_id, one.owner) == (conversation_id, owner))
        return next((one for one in of_it if not one.is_over), None)

    def _let_go(self) -> None:
        now = self.clock()
        over = list(self._over_at_s.items())
        late = [name for name, then in over if now - then > KEPT_S]
        for name in late or [name for name, _ in over[: max(0, len(over) - MOST_KEPT)]]:
            self._kept.pop(name, None)
            self._over_at_s.pop(name, None)
