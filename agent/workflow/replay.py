"""A turn told again from its record, for whoever sends the same request once more."""

from __future__ import annotations

from collections.abc import Iterator

from agent.components import AgentMessage, AskBack, ConsentCard, FailureNote, PlanCard, SmartCanvas
from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.events import (
    ConsentAsked,
    PictureReady,
    PlanReady,
    QuestionAsked,
    TextDelta,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
)


def told_again(conversation: Conversation, turn: Turn) -> Iterator[TurnEvent]:
    """Return the turn's events as far as its record holds them; nothing is asked of any model."""
    yield TurnStarted(turn_id=turn.id, uploads=turn.uploads)
    pictures = {picture.handle: picture for picture in conversation.all_pictures}
    for component in turn.components:
        match component:
            case AgentMessage():
                yield TextDelta(text=component.text)
            case AskBack():
                yield QuestionAsked(question=component.question, subject=component.subject)
            case SmartCanvas():
                for index, handle in enumerate(component.handles):
                    if handle in pictures:
                        yield PictureReady(index=index, picture=pictures[handle])
            case PlanCard() if component.state == "pending":
                yield PlanReady(plans=component.plans)
            case ConsentCard() if component.state == "pending":
                yield ConsentAsked(asks=component.asks)
            case _:
                pass
    yield _last(turn)


def _last(turn: Turn) -> TurnEvent:
    match turn.state:
        case TurnState.DONE:
            return TurnDone(turn_id=turn.id, usage=turn.usage, price_usd=turn.price_usd, seconds=turn.seconds)
        case TurnState.FAILED:
            notes = [one for one in turn.components if isinstance(one, FailureNote)]
            if notes:
                return TurnFailed(error=notes[-1].error, node=notes[-1].node, rewordings=notes[-1].rewordings)
            return TurnFailed(error=ErrorInfo(code=ErrorCode.INTERNAL))
        case TurnState.STOPPED:
            return TurnStopped()
        case TurnState.INTERRUPTED:
            return TurnPaused(turn_id=turn.id, is_cut=True)
        case TurnState.WAITING | TurnState.RUNNING:
            # At work in another process, or at rest until the person says something.
            return TurnPaused(turn_id=turn.id)
