"""A turn's events as Server-Sent Events: what each is called, what stands in it, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_never

from agent import (
    ActionPanel,
    ConsentAsked,
    ErrorInfo,
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
    ThoughtLog,
    Turn,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
)
from webui.api.problems import problem_of_failure
from webui.api.views import picture_view
from webui.questions import question_sentence, target_sentence
from webui.step_lines import step_sentence
from webui.words import Words

HEARTBEAT = b": still here\n\n"
EVENTS = ("started", "thought_log", "text", "gen_ui_component", "image", "plan", "consent", "error", "done")


# JSON lets them stand as they are, and readers of lines break at them.
_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


class Frame(NamedTuple):
    """One Server-Sent Event without its id."""

    event: str
    data: dict[str, Any]


def written(frame: Frame, event_id: str) -> bytes:
    """Return the frame as it goes over the wire. JSON holds no line break, so that no text can begin another event."""
    data = json.dumps(frame.data, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS)
    return f"id: {event_id}\nevent: {frame.event}\ndata: {data}\n\n".encode("utf-8", "replace")


@dataclass(frozen=True)
class Teller:
    """Tells a turn's events in one language. `record` returns the turn as it is on record, or None."""

    words: Words
    conversation_id: str
    record: Callable[[str], Awaitable[Turn | None]]

    async def frames(self, event: TurnEvent, *, goes_on: bool = False) -> list[Frame]:
        """Return what tells the event: nothing, one frame or several. `goes_on`: what was told of the turn before
        stays; otherwise it begins anew with `started`."""
        match event:
            case TurnStarted():
                return [Frame("started", {**self._started(event), "goes_on": goes_on})]
            case ThoughtLog():
                told = event.model_dump(mode="json", exclude={"type"})
                return [Frame("thought_log", {**told, "text": step_sentence(self.words, event)})]
            case TextDelta():
                return [Frame("text", {"text": event.text})]
            case PictureReady():
                picture = picture_view(self.conversation_id, event.picture).model_dump(mode="json")
                return [Frame("image", {"index": event.index, **picture})]
            case PictureFailed():
                return [self._error(event.error, index=event.index, is_end=False)]
            case QuestionAsked():
                sentence = question_sentence(self.words, event.question, event.subject)
                component = {**event.model_dump(mode="json"), "type": "ask_back"}
                return [Frame("text", {"text": sentence}), Frame("gen_ui_component", component)]
            case TargetChanged():
                sentence = target_sentence(self.words, event)
                note = {"type": "target_note", "change": event.model_dump(mode="json")}
                return [Frame("text", {"text": sentence}), Frame("gen_ui_component", note)]
            case SearchFound():
                return [Frame("gen_ui_component", {**event.model_dump(mode="json"), "type": "search_note"})]
            case PaintingStarted() | PictureReviewed():
                return [Frame("gen_ui_component", event.model_dump(mode="json"))]
            case PlanReady():
                return [Frame("plan", event.model_dump(mode="json", exclude={"type"}))]
            case ConsentAsked():
                return [Frame("consent", event.model_dump(mode="json", exclude={"type"}))]
            case TurnDone() | TurnPaused() | TurnFailed() | TurnStopped():
                return await self._last(event)
            case StepTraced():
                return []
            case _:
                assert_never(event)

    async def _last(self, event: TurnDone | TurnPaused | TurnFailed | TurnStopped) -> list[Frame]:
        match event:
            case TurnDone():
                told = event.model_dump(mode="json", exclude={"type"})
                return [*await self._shown(event.turn_id), Frame("done", {"state": "done", **told})]
            case TurnPaused():
                state = "interrupted" if event.is_cut else "waiting"
                return [Frame("done", {"state": state, "turn_id": event.turn_id})]
            case TurnFailed():
                return [self._error(event.error, node=event.node, is_end=True), Frame("done", {"state": "failed"})]
            case TurnStopped():
                return [Frame("done", {"state": "stopped"})]
            case _:
                assert_never(event)

    async def _shown(self, turn_id: str) -> list[Frame]:
        """Return the components that only the record has: which pictures stand for the turn, what can be done next."""
        turn = await self.record(turn_id)
        shown = (one for one in (turn.components if turn else ()) if isinstance(one, SmartCanvas | ActionPanel))
        return [Frame("gen_ui_component", one.model_dump(mode="json")) for one in shown]

    def _started(self, event: TurnStarted) -> dict[str, Any]:
        uploads = [image.handle for image in event.uploads]
        return {"conversation_id": self.conversation_id, "turn_id": event.turn_id, "uploads": uploads}

    def _error(self, info: ErrorInfo, **more: object) -> Frame:
        problem = problem_of_failure(self.words, info)
        told = problem.model_dump(exclude_defaults=True) | {"can_retry": problem.can_retry}
        return Frame("error", {**told, **more})
