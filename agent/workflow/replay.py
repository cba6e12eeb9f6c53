"""A turn told from its record: to whoever sends the same request once more, or follows one of another process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.events import (
    FailureNote,
    PaintingStarted,
    PictureReady,
    SearchNote,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
    component_events,
)
from agent.messages import ImageOrigin
from agent.pictures import Picture
from agent.storage.conversations import ConversationStore

# A process that dies writes nothing: it is looked after this often.
_LOOK_AGAIN_S = 1.0


async def follow_record(
    records: ConversationStore, conversation_id: str, owner: str, turn_id: str
) -> AsyncIterator[TurnEvent]:
    """Tell a turn that any process runs, or ran: its pictures as they are recorded, all else when it rests.

    One whose process died meanwhile is closed, and told as cut. Raises RequestRefused when the conversation is gone.
    """
    told: set[str] = set()
    is_first = True
    while True:
        seen = records.changes()
        conversation = await records.get(conversation_id, owner)
        turn = await records.turn(conversation_id, turn_id)
        if turn is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        if is_first:
            yield TurnStarted(turn_id=turn.id, uploads=turn.uploads)
            is_first = False
        if turn.state is not TurnState.RUNNING:
            break
        for picture in _made_in(conversation, turn_id):
            if picture.handle not in told:
                told.add(picture.handle)
                yield _painting_of(picture)
                yield PictureReady(index=0, picture=picture)
        if not await records.is_running(conversation_id):
            await records.close_abandoned()
        else:
            await records.changed(seen, _LOOK_AGAIN_S)
    for event in replay_events(conversation, turn):
        match event:
            case TurnStarted():
                continue
            case PictureReady() if event.picture.handle in told:
                continue
            case _:
                yield event


def _made_in(conversation: Conversation, turn_id: str) -> Iterator[Picture]:
    for picture in conversation.all_pictures:
        if picture.turn_id == turn_id and picture.image.origin is not ImageOrigin.UPLOADED:
            yield picture


def _painting_of(picture: Picture) -> PaintingStarted:
    return PaintingStarted(
        count=1,
        width=picture.image.width or 1,
        height=picture.image.height or 1,
        model_label=picture.receipt.model_label if picture.receipt else "",
    )


def replay_events(conversation: Conversation, turn: Turn) -> Iterator[TurnEvent]:
    """Return the turn's events as far as its record holds them; nothing is asked of any model."""
    yield TurnStarted(turn_id=turn.id, uploads=turn.uploads)
    pictures = {picture.handle: picture for picture in conversation.all_pictures}
    for component in turn.components:
        if not isinstance(component, SearchNote):
            yield from component_events(component, pictures)
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
