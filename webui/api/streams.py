"""The streams themselves: from an event on, with heartbeats, through every part of a turn; or told from its record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.responses import StreamingResponse

from agent import (
    AivistaError,
    ErrorCode,
    RequestRefused,
    Studio,
    Turn,
    TurnEvent,
    TurnFailed,
    TurnState,
    error_from_info,
    told_again,
)
from webui.api.door import Caller, Door
from webui.api.frames import EVENTS, HEARTBEAT, Teller, written
from webui.api.tellings import Ended, Telling

HEARTBEAT_S = 15.0
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
        "id": {"type": "string", "description": "What `Last-Event-ID` takes, to go on after this event."},
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
    """Where a stream was cut: after which frame of which event of which telling."""

    telling_id: str
    place: int
    frame: int

    @classmethod
    def read(cls, last_event_id: str) -> Cursor | None:
        """Return the place that an id names, None when it is none of ours."""
        name, _, rest = last_event_id.strip().partition("-")
        place, _, frame = rest.partition(".")
        is_ours = all(one.isascii() and one.isdecimal() and len(one) < 9 for one in (place, frame))
        return cls(name, int(place), int(frame)) if name and is_ours else None

    def __str__(self) -> str:
        return f"{self.telling_id}-{self.place}.{self.frame}"


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

    async def begin(
        self, events: AsyncIterator[TurnEvent], *, after: str | None = None, ended: Ended | None = None
    ) -> Telling:
        """Have a turn told, whoever listens. Raises AivistaError when it was refused before it began."""
        tellings = self.door.tellings
        telling = tellings.begin(self.conversation_id, self.caller.owner, events, after=after, ended=ended)
        first = await telling.first()
        if isinstance(first, TurnFailed):
            tellings.forget(telling)
            raise error_from_info(first.error)
        if first is None:
            tellings.forget(telling)
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return telling

    def answer(self, telling: Telling) -> StreamingResponse:
        """Return the stream of a telling from its beginning."""
        return self._response(self._of([telling], 0, None))

    async def resumed(self, last_event_id: str, turn_id: str | None) -> StreamingResponse | None:
        """Return the stream from after an event on: of a turn, or of whatever runs; None when there is no more of it.

        What this process no longer remembers is told from the record, from its beginning. Raises RequestRefused when
        the owner has no such conversation or turn.
        """
        conversation = await self.studio.conversations.get(self.conversation_id, self.caller.owner)
        cursor = Cursor.read(last_event_id)
        cut = self._cut(cursor)
        if cut is not None and cursor is not None and turn_id in (None, cut.turn_id):
            return await self._rest_of(cut, cursor)
        if turn_id is None:
            live = await self._live()
            return self.answer(live) if live is not None else None
        turn = conversation.turn(turn_id)
        if turn is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        parts = list(self.door.tellings.parts(self.conversation_id, self.caller.owner, turn_id))
        if parts and not parts[0].goes_on:
            return self._response(self._of(parts, 0, None))
        if turn.state is TurnState.RUNNING:
            live = await self._live()
            if live is not None and live.turn_id == turn_id:
                return self.answer(live)
        return await self._recorded(turn, cursor)

    def _cut(self, cursor: Cursor | None) -> Telling | None:
        if cursor is None:
            return None
        return self.door.tellings.find(cursor.telling_id, self.conversation_id, self.caller.owner)

    async def _rest_of(self, cut: Telling, cursor: Cursor) -> StreamingResponse | None:
        parts = [cut]
        if cut.turn_id is not None:
            known = list(self.door.tellings.parts(self.conversation_id, self.caller.owner, cut.turn_id))
            parts = known[known.index(cut) :] if cut in known else parts
        is_last_event = cut.is_over and cursor.place >= len(cut.events) - 1
        if is_last_event and len(parts) == 1:
            frames = await self._teller.frames(cut.events[-1]) if cut.events else []
            if cursor.frame >= len(frames) - 1:
                return None
        return self._response(self._of(parts, cursor.place, cursor.frame))

    async def _live(self) -> Telling | None:
        """Return what runs in the conversation, whoever began it."""
        known = self.door.tellings.running(self.conversation_id, self.caller.owner)
        if known is not None or not self.studio.turns.is_running(self.conversation_id, self.caller.owner):
            return known
        return await self.begin(self.studio.attach(self.conversation_id, self.caller.owner))

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

    async def words_of(self, parts: Sequence[Telling]) -> str:
        """Return all words of the agent's that were told in these parts."""
        frames = [frame for part in parts for event in part.events for frame in await self._teller.frames(event)]
        return "".join(str(frame.data["text"]) for frame in frames if frame.event == "text")

    async def _of(self, parts: Sequence[Telling], place: int, frame: int | None) -> AsyncIterator[bytes]:
        """Stream the parts, the first from after a frame of one of its events on."""
        for number, telling in enumerate(parts):
            start, told = (place, frame) if number == 0 else (0, None)
            async for found in telling.follow(start, self.heartbeat_s):
                if found is None:
                    yield HEARTBEAT
                    continue
                for written_frame in await self._written(telling, *found, told if found[0] == start else None):
                    yield written_frame

    async def _written(self, telling: Telling, place: int, event: TurnEvent, told: int | None) -> list[bytes]:
        frames = await self._teller.frames(event, goes_on=telling.goes_on)
        first = 0 if told is None else told + 1
        return [
            written(one, str(Cursor(telling.id, place, number))) for number, one in enumerate(frames) if number >= first
        ]

    async def _recorded(self, turn: Turn, cursor: Cursor | None) -> StreamingResponse | None:
        conversation = await self.studio.conversations.get(self.conversation_id, self.caller.owner)
        name = f"record{turn.id}"
        lines: list[bytes] = []
        last: Cursor | None = None
        is_known = cursor is not None and cursor.telling_id == name
        for place, event in enumerate(told_again(conversation, turn)):
            for number, frame in enumerate(await self._teller.frames(event)):
                last = Cursor(name, place, number)
                if not is_known or cursor is None or (place, number) > (cursor.place, cursor.frame):
                    lines.append(written(frame, str(last)))

        async def told() -> AsyncIterator[bytes]:
            for line in lines:
                yield line

        return self._response(told()) if lines else None

    def _response(self, lines: AsyncIterator[bytes]) -> StreamingResponse:
        return StreamingResponse(lines, media_type="text/event-stream", headers=HEADERS)
