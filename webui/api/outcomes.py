"""The outcome of a turn, for callers that wait for its end instead of following its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent import (
    Ask,
    ConsentAsked,
    ErrorInfo,
    LiveTurn,
    Picture,
    PictureFailed,
    PictureReady,
    Plan,
    PlanReady,
    QuestionAsked,
    RequestRefused,
    SmartCanvas,
    Studio,
    TargetChanged,
    TextDelta,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStopped,
)
from webui.features.thread.steps import question_sentence, target_sentence
from webui.words import Words

Ending = TurnDone | TurnFailed | TurnPaused | TurnStopped


@dataclass(frozen=True)
class Outcome:
    """The outcome of a turn that has ended or waits. `text` is the agent's text with its question.

    `pictures` are those of the turn as they are on record now, without attempts that a review replaced by a better one.
    `attempts` are all pictures, in order.
    """

    conversation_id: str
    turn_id: str
    text: str
    pictures: tuple[Picture, ...]
    attempts: tuple[Picture, ...]
    failures: tuple[ErrorInfo, ...]
    plans: tuple[Plan, ...]
    asks: tuple[Ask, ...]
    ending: Ending


async def outcome_of(studio: Studio, live: LiveTurn, words: Words, after: int = 0) -> Outcome:
    """Wait until the turn has ended or waits; return the outcome of its events after that number."""
    async for _ in live.follow(after):
        pass
    events, place, ending = live.events[after:], live.conversation_id, live.last
    assert isinstance(ending, Ending)
    made = {event.picture.handle: event.picture for event in events if isinstance(event, PictureReady)}
    turn_id = live.turn_id or ""
    return Outcome(
        conversation_id=place,
        turn_id=turn_id,
        text=text_of(events, words),
        pictures=await _pictures(studio, live.owner, place, turn_id, made) if made else (),
        attempts=tuple(made.values()),
        failures=tuple(event.error for event in events if isinstance(event, PictureFailed)),
        plans=next((event.plans for event in reversed(events) if isinstance(event, PlanReady)), ()),
        asks=next((event.asks for event in reversed(events) if isinstance(event, ConsentAsked)), ()),
        ending=ending,
    )


def text_of(events: Sequence[TurnEvent], words: Words, separator: str = "\n\n") -> str:
    """Return the agent's text in these events, and its question after a separator."""
    parts: list[str] = []
    for event in events:
        match event:
            case TextDelta():
                parts.append(event.text)
            case QuestionAsked():
                parts.append(f"{separator}{question_sentence(words, event.question, event.subject)}")
            case TargetChanged():
                parts.append(f"{separator}{target_sentence(words, event)}")
            case _:
                pass
    return "".join(parts).strip()


async def _pictures(
    studio: Studio, owner: str, conversation_id: str, turn_id: str, made: dict[str, Picture]
) -> tuple[Picture, ...]:
    try:
        conversation = await studio.conversations.get(conversation_id, owner)
    except RequestRefused:
        # Deleted meanwhile.
        return ()
    turn = conversation.turn(turn_id)
    canvases = [one for one in (turn.components if turn else ()) if isinstance(one, SmartCanvas)]
    earlier = {handle for canvas in canvases for handle in canvas.earlier}
    now = {one.handle: one for one in conversation.all_pictures if one.handle not in earlier}
    return tuple(now[handle] for handle in made if handle in now)
