"""A turn followed to its end, or until it rests; whoever cancels the call stops the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import anyio

from agent import (
    Ask,
    ConsentAsked,
    ErrorInfo,
    Picture,
    PictureFailed,
    PictureReady,
    Plan,
    PlanReady,
    QuestionAsked,
    TargetChanged,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
)
from webui.mcp_door.callers import Call
from webui.questions import question_sentence, target_sentence
from webui.step_lines import step_sentence
from webui.words import load_words

# What is answered here is read by models and programs first, whose language is not told.
WORDS = load_words("en")


@dataclass
class Told:
    """What a turn has told so far; `ending` is its last event."""

    turn_id: str = ""
    words: list[str] = field(default_factory=list)
    pictures: dict[str, Picture] = field(default_factory=dict)
    failures: list[ErrorInfo] = field(default_factory=list)
    plans: tuple[Plan, ...] = ()
    asks: tuple[Ask, ...] = ()
    ending: TurnDone | TurnFailed | TurnPaused | TurnStopped | None = None

    @property
    def text(self) -> str:
        """The agent's words."""
        return "".join(self.words).strip()

    def take(self, event: TurnEvent) -> None:
        """Remember what an event brings."""
        match event:
            case TurnStarted():
                self.turn_id = event.turn_id
            case TextDelta():
                self.words.append(event.text)
            case QuestionAsked():
                self.words.append(f"\n\n{question_sentence(WORDS, event.question, event.subject)}")
            case TargetChanged():
                self.words.append(f"\n\n{target_sentence(WORDS, event)}")
            case PictureReady():
                self.pictures[event.picture.handle] = event.picture
            case PictureFailed():
                self.failures.append(event.error)
            case PlanReady():
                self.plans = event.plans
            case ConsentAsked():
                self.asks = event.asks
            case TurnDone() | TurnFailed() | TurnPaused() | TurnStopped():
                self.ending = event
            case _:
                pass


async def follow(call: Call, conversation_id: str, events: AsyncIterator[TurnEvent]) -> Told:
    """Return what a turn told until its end, reporting each of its steps."""
    told = Told()
    try:
        async for event in events:
            told.take(event)
            if isinstance(event, ThoughtLog):
                await call.report(step_sentence(WORDS, event))
            elif isinstance(event, PictureReady):
                await call.report(f"Picture {event.picture.handle} is there.")
    except asyncio.CancelledError:
        # The call's scope is cancelled: whatever is awaited in it now would be cancelled at once.
        with anyio.CancelScope(shield=True):
            # One that still waits in line has no id: whatever runs before it is stopped with it.
            await call.studio.cancel(conversation_id, call.caller.owner, turn_id=told.turn_id or None)
        raise
    return told
