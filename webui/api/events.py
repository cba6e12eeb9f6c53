"""A turn's events as Server-Sent Events: live from an event on, or replayed from the turn's record."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from fastapi.responses import Response, StreamingResponse

from agent import (
    ActionPanel,
    AivistaError,
    ConsentAsked,
    ErrorInfo,
    LiveTurn,
    PaintingStarted,
    PictureFailed,
    PictureReady,
    PictureReviewed,
    PlanReady,
    QuestionAsked,
    SearchFound,
    SmartCanvas,
    StepTraced,
    TargetChanged,
    TextDelta,
    ThoughtDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
    error_from_info,
)
from webui.api.calls import Call
from webui.api.models import picture_view
from webui.api.problems import HEADERS, problem_of_failure
from webui.features.thread.steps import question_sentence, step_sentence, target_sentence
from webui.http.event_stream import event_stream

EVENTS = ("started", "thought_log", "text", "gen_ui_component", "image", "plan", "consent", "error", "done")
_RECORD = "record-"
# Line separators that JSON allows unescaped and at which readers of lines break.
_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})
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

# A Server-Sent Event without its id: name and data.
Frame = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Cursor:
    """The position of a stream: after which event of a turn, live or replayed from the record."""

    turn_id: str
    number: int
    is_record: bool = False

    @classmethod
    def read(cls, last_event_id: str) -> Cursor | None:
        """Return the position named by an id, None when the id is not ours."""
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

    call: Call
    conversation_id: str

    async def begun(self, live: LiveTurn, after: int | None = None) -> StreamingResponse:
        """Return the stream of a turn that has begun, after an event; without one, from where it began or resumed.

        Raises AivistaError when the turn was refused before that.
        """
        first = await live.first()
        if isinstance(first, TurnFailed):
            raise error_from_info(first.error)
        return self._follow(live, live.before if after is None else after)

    async def resumed(self, last_event_id: str, turn_id: str | None) -> Response | None:
        """Return the stream after an event: of a turn, or of the running one; None when nothing follows.

        A turn that this process no longer remembers is replayed from the record, from its beginning. Raises
        RequestRefused when the owner has no such conversation or turn.
        """
        turns, owner = self.call.studio.turns, self.call.owner
        await self.call.studio.conversations.get(self.conversation_id, owner)
        cursor = Cursor.read(last_event_id)
        if cursor is not None and not cursor.is_record and turn_id in (None, cursor.turn_id):
            live = turns.find(self.conversation_id, cursor.turn_id, owner)
            if live is not None:
                is_over = live.is_done and cursor.number >= len(live.events)
                return None if is_over else self._follow(live, cursor.number)
        if turn_id is None:
            running = turns.running(self.conversation_id, owner)
            return self._follow(running, 0) if running is not None else None
        live = turns.find(self.conversation_id, turn_id, owner)
        if live is not None and (live.is_whole or not live.is_done):
            return self._follow(live, 0)
        return await self._record_frames(turn_id, cursor)

    async def _live_frames(self, live: LiveTurn, after: int) -> AsyncIterator[bytes]:
        async for number, event in live.follow(after):
            frames = await self._frames(event, goes_on=live.goes_on_at(number))
            cursor = Cursor(live.turn_id, number) if live.turn_id is not None else None
            if frames:
                yield _encoded(frames, cursor)

    async def _record_frames(self, turn_id: str, cursor: Cursor | None) -> Response | None:
        after = cursor.number if cursor is not None and cursor.is_record and cursor.turn_id == turn_id else 0
        events = await self.call.studio.turns.on_record(self.conversation_id, turn_id, self.call.owner)
        parts = [
            _encoded(await self._frames(event), Cursor(turn_id, number, is_record=True))
            for number, event in enumerate(events[after:], after + 1)
        ]
        return Response(b"".join(parts), media_type="text/event-stream", headers=HEADERS) if any(parts) else None

    def _follow(self, live: LiveTurn, after: int) -> StreamingResponse:
        return event_stream(self._live_frames(live, after))

    async def _frames(self, event: TurnEvent, *, goes_on: bool = False) -> list[Frame]:
        """Return the frames of an event: none, one or several. With `goes_on`, what was sent of the turn stays
        valid; otherwise the turn begins anew with `started`."""
        words = self.call.words
        match event:
            case TurnStarted():
                uploads = [image.handle for image in event.uploads]
                ids = {"conversation_id": self.conversation_id, "turn_id": event.turn_id}
                return [("started", {**ids, "uploads": uploads, "goes_on": goes_on})]
            case ThoughtLog():
                return [("thought_log", {**_data(event), "text": step_sentence(words, event)})]
            case TextDelta():
                return [("text", {"text": event.text})]
            case PictureReady():
                picture = picture_view(self.conversation_id, event.picture).model_dump(mode="json")
                return [("image", {"index": event.index, **picture})]
            case PictureFailed():
                return [("error", self._problem(event.error) | {"index": event.index, "is_end": False})]
            case QuestionAsked():
                sentence = question_sentence(words, event.question, event.subject)
                return [("text", {"text": sentence}), ("gen_ui_component", _data(event) | {"type": "ask_back"})]
            case TargetChanged():
                note = {"type": "target_note", "change": event.model_dump(mode="json")}
                return [("text", {"text": target_sentence(words, event)}), ("gen_ui_component", note)]
            case SearchFound():
                return [("gen_ui_component", _data(event) | {"type": "search_note"})]
            case PaintingStarted() | PictureReviewed():
                return [("gen_ui_component", event.model_dump(mode="json"))]
            case PlanReady():
                return [("plan", _data(event))]
            case ConsentAsked():
                return [("consent", _data(event))]
            case TurnDone():
                return [*await self._shown(event.turn_id), ("done", {"state": "done", **_data(event)})]
            case TurnPaused():
                state = "interrupted" if event.is_cut else "waiting"
                return [("done", {"state": state, "turn_id": event.turn_id})]
            case TurnFailed():
                problem = self._problem(event.error) | {"node": event.node, "is_end": True}
                return [("error", problem), ("done", {"state": "failed"})]
            case TurnStopped():
                return [("done", {"state": "stopped"})]
            case ThoughtDelta() | StepTraced():
                # Thoughts are for viewers: programs get the answer.
                return []
            case _:
                assert_never(event)

    async def _shown(self, turn_id: str) -> list[Frame]:
        """Return the components that only the record has: the pictures of the turn, and what can be done next."""
        try:
            conversation = await self.call.studio.conversations.get(self.conversation_id, self.call.owner)
        except AivistaError:
            return []
        turn = conversation.turn(turn_id)
        shown = (one for one in (turn.components if turn else ()) if isinstance(one, SmartCanvas | ActionPanel))
        return [("gen_ui_component", one.model_dump(mode="json")) for one in shown]

    def _problem(self, info: ErrorInfo) -> dict[str, Any]:
        return problem_of_failure(self.call.words, info).as_json


def _data(event: TurnEvent) -> dict[str, Any]:
    return event.model_dump(mode="json", exclude={"type"})


def _encoded(frames: Sequence[Frame], cursor: Cursor | None) -> bytes:
    """Return the frames of an event as bytes; JSON holds no line break, so no text can begin another event.

    All frames but the last have the previous event's id, so that an interrupted event is sent again from its first
    frame. Before the turn has an id, while it waits in the queue, its frames have none: it is followed from its
    beginning.
    """
    before = replace(cursor, number=cursor.number - 1) if cursor is not None else ""
    lines = []
    for frame in frames:
        name, data = frame
        payload = json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS)
        event_id = (cursor or "") if frame is frames[-1] else before
        lines.append(f"id: {event_id}\nevent: {name}\ndata: {payload}\n\n")
    return "".join(lines).encode("utf-8", "replace")
