"""The streams themselves: from an event on, with heartbeats, through every part of a turn; or told from its record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fastapi.responses import StreamingResponse

from agent import (
    AivistaError,
    LiveTurn,
    Studio,
    Turn,
    TurnEvent,
    TurnFailed,
    error_from_info,
)
from webui.api.door import Caller, Door
from webui.api.frames import EVENTS, HEARTBEAT, Frame, Teller, written

T = TypeVar("T")

HEARTBEAT_S = 15.0
_RECORD = "record-"
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    # Proxies that gather answers would hold the stream back.
    "X-Accel-Buffering": "no",
}
_EVENT = {
    "type": "object",
    "description": "One Server-Sent Event; the body is a stream of them.",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {
            "type": "string",
            "description": "What `Last-Event-ID` takes, to go on after this event.",
        },
        "event": {"type": "string", "enum": list(EVENTS)},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": {"type": "object"}},
    },
}
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-Sent Events: `started`, `thought_log`, `text`, `gen_ui_component`, `image`, `plan`, "
        "`consent`, `error`, and `done` as the last. Each has an id, and JSON as its data.",
        "content": {"text/event-stream": {"schema": _EVENT}},
    }
}


@dataclass(frozen=True)
class Cursor:
    """Where a stream was cut: after which event of a turn, as it was told or as its record tells it."""

    turn_id: str
    number: int
    is_record: bool = False

    @classmethod
    def read(cls, last_event_id: str) -> Cursor | None:
        """Return the place that an id names, None when it is none of ours."""
        name, _, number = last_event_id.strip().rpartition("-")
        is_ours = number.isascii() and number.isdecimal() and len(number) < 9
        if not name or not is_ours:
            return None
        return cls(name.removeprefix(_RECORD), int(number), name.startswith(_RECORD))

    def __str__(self) -> str:
        return f"{_RECORD if self.is_record else ''}{self.turn_id}-{self.number}"


@dataclass(frozen=True)
class Streams:
    """The streams of one caller in one conversation."""

    door: Door
    caller: Caller
    conversation_id: str
    heartbeat_s: float = HEARTBEAT_S

    @property
    def studio(self) -> Studio:
        """The studio."""
        return self.door.studio()

    async def begun(self, live: LiveTurn) -> LiveTurn:
        """Return a turn that has begun. Raises AivistaError when it was refused before that."""
        first = await live.first()
        if isinstance(first, TurnFailed):
            raise error_from_info(first.error)
        return live

    def answer(self, live: LiveTurn, after: int | None = None) -> StreamingResponse:
        """Return the stream of a turn after an event; without one, from where it began or went on."""
        return self._response(self._told(live, live.before if after is None else after))

    async def resumed(self, last_event_id: str, turn_id: str | None) -> StreamingResponse | None:
        """Return the stream from after an event on: of a turn, or of whatever runs; None when there is no more of it.

        What this process no longer remembers is told from the record, from its beginning. Raises RequestRefused when
        the owner has no such conversation or turn.
        """
        turns, owner = self.studio.turns, self.caller.owner
        await self.studio.conversations.get(self.conversation_id, owner)
        cursor = Cursor.read(last_event_id)
        if cursor is not None and not cursor.is_record and turn_id in (None, cursor.turn_id):
            live = turns.find(self.conversation_id, cursor.turn_id, owner)
            if live is not None:
                is_over = live.is_done and cursor.number >= len(live.events)
                return None if is_over else self.answer(live, cursor.number)
        if turn_id is None:
            running = turns.running(self.conversation_id, owner)
            return self.answer(running, 0) if running is not None else None
        live = turns.find(self.conversation_id, turn_id, owner)
        if live is not None and (live.is_whole or not live.is_done):
            return self.answer(live, 0)
        return await self._recorded(turn_id, cursor)

    @property
    def _teller(self) -> Teller:
        return Teller(self.caller.words, self.conversation_id, self.turn)

    async def turn(self, turn_id: str) -> Turn | None:
        """Return a turn of the branch that is shown as it is on record, or None."""
        try:
            conversation = await self.studio.conversations.get(self.conversation_id, self.caller.owner)
        except AivistaError:
            return None
        return conversation.turn(turn_id)

    async def words_of(self, events: Sequence[TurnEvent]) -> str:
        """Return all words of the agent's that these events tell."""
        frames = [frame for event in events for frame in await self._teller.frames(event)]
        return "".join(str(frame.data["text"]) for frame in frames if frame.event == "text")

    async def _told(self, live: LiveTurn, after: int) -> AsyncIterator[bytes]:
        async for found in with_pauses(live.follow(after), self.heartbeat_s):
            if found is None:
                yield HEARTBEAT
                continue
            number, event = found
            frames = await self._teller.frames(event, goes_on=live.goes_on_at(number))
            cursor = Cursor(live.turn_id, number) if live.turn_id is not None else None
            for line in _lines(frames, cursor):
                yield line

    async def _recorded(self, turn_id: str, cursor: Cursor | None) -> StreamingResponse | None:
        after = cursor.number if cursor is not None and cursor.is_record and cursor.turn_id == turn_id else 0
        events = await self.studio.turns.on_record(self.conversation_id, turn_id, self.caller.owner)
        lines: list[bytes] = []
        for number, event in enumerate(events[after:], after + 1):
            lines += _lines(await self._teller.frames(event), Cursor(turn_id, number, is_record=True))

        async def told() -> AsyncIterator[bytes]:
            for line in lines:
                yield line

        return self._response(told()) if lines else None

    def _response(self, lines: AsyncIterator[bytes]) -> StreamingResponse:
        return StreamingResponse(lines, media_type="text/event-stream", headers=HEADERS)


def _lines(frames: Sequence[Frame], cursor: Cursor | None) -> list[bytes]:
    """Return the frames of an event as they are sent. One that was cut among them is told again from its first.

    Before the turn has an id, while it waits in line, so have its frames none: it is followed from its beginning.
    """
    if cursor is None:
        return [written(frame, "") for frame in frames]
    before = replace(cursor, number=cursor.number - 1)
    return [written(frame, str(cursor if frame is frames[-1] else before)) for frame in frames]


async def with_pauses(events: AsyncIterator[T], pause_s: float) -> AsyncIterator[T | None]:
    """Pass the events on, and None whenever nothing has come for so long."""
    while True:
        coming = asyncio.ensure_future(anext(events))
        try:
            while not (await asyncio.wait([coming], timeout=pause_s))[0]:
                yield None
            yield coming.result()
        except StopAsyncIteration:
            return
        finally:
            coming.cancel()
