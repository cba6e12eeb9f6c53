"""Replays recorded turns: their events, and their requests.

The events are for a repeated request or a turn of another process; the requests are sent again or edited."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TypedDict

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
from agent.imaging.arguments import GENERATE_IMAGE
from agent.messages import ImageOrigin, ImagePart, Role, ToolCallPart
from agent.pictures import Picture
from agent.requests import Expansion, KeptUpload, Mask, TurnRequest
from agent.settings import TurnSettings
from agent.storage.images import ImageStore
from agent.storage.records import Records

# The name of an image call from the planner's first answer: its call index, slot and round follow.
_FIRST_CALL = re.compile(r"picture:1\.(\d+)\.\d+\.\d+")
# A process that dies sends no change notice, so its turns are checked this often.
_LOOK_AGAIN_S = 1.0


class _Area(TypedDict, total=False):
    mask: Sequence[Mask]
    expand: Expansion


async def request_of(conversation: Conversation, turn: Turn, images: ImageStore) -> TurnRequest:
    """Return the request of a turn: text, pictures, masks or expansion, and settings.

    Raises RequestRefused(PICTURE_NOT_FOUND) when the file of one of its pictures is gone.
    """
    sent = [await _kept(conversation, upload, images) for upload in turn.uploads]
    # The turn's uploads are uploaded again as new pictures.
    numbers = {upload.handle: f"upload:{number}" for number, upload in enumerate(turn.uploads, 1)}
    changed = [one for one in (turn.editing, *(more.handle for more in turn.more_masks)) if one]
    meant = {handle: numbers.get(handle, handle) for handle in changed}
    return TurnRequest(
        text=turn.text,
        images=sent,
        settings=_uncapped(turn),
        editing=meant.get(turn.editing) if turn.editing else turn.asked_editing,
        references=turn.references,
        roles=turn.roles,
        **await _area_of(conversation, turn, images, meant),
    )


async def repeated(
    conversation: Conversation, handle: str, images: ImageStore, pro_id: str, difference: str = ""
) -> TurnRequest | None:
    """Return a request that generates this one picture again, with the same message, references and planner's call.

    None for a picture that was not made by such a call. Only the `difference`, if any, is added to the call's prompt.
    Raises RequestRefused(PICTURE_NOT_FOUND) when the file of one of its references is gone.
    """
    picture = conversation.picture(handle)
    turn = conversation.turn(picture.turn_id)
    call = _call_of(turn, picture) if turn is not None else None
    if turn is None or call is None or picture.receipt is None:
        return None
    shown = [conversation.picture(one.handle) for one in picture.receipt.references]
    for one in shown:
        if not await images.has(one.image):
            raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=one.handle)
    # The reference mode could select other pictures now, so the original references are named explicitly.
    arguments = {name: value for name, value in call.arguments.items() if not name.startswith("reference_")}
    arguments["handles"] = [one.handle for one in shown]
    if difference:
        arguments["prompt"] = f"{call.arguments.get('prompt', '')}\n\n{difference}"
    # The signature is removed because the model did not sign the changed arguments.
    call = call.unsigned().model_copy(update={"arguments": arguments})
    update = {
        "number_of_images": 1,
        "image_model": "pro" if picture.receipt.model == pro_id else "flash",
        "budget_usd": None,
        "reference_mode": None,
        "reference_count": None,
    }
    editing = turn.changed_by(picture.parents)
    return TurnRequest(
        text=turn.text,
        settings=_uncapped(turn).model_copy(update=update),
        editing=editing or turn.asked_editing,
        references=turn.references,
        roles={one.handle: one.role for one in picture.receipt.references if one.role},
        repeats=call,
        **await _area_of(conversation, turn, images, {editing: editing} if editing else {}),
    )


def _call_of(turn: Turn, picture: Picture) -> ToolCallPart | None:
    """Return the planner's call that made the picture, None if a search or a tool call came before or with it."""
    found = _FIRST_CALL.fullmatch(picture.call)
    first_answer = next((message for message in turn.messages if message.role is Role.MODEL), None)
    if found is None or first_answer is None:
        return None
    calls = [part for part in first_answer.parts if isinstance(part, ToolCallPart)]
    index = int(found[1])
    is_alone = all(call.name == GENERATE_IMAGE for call in calls)
    return calls[index] if is_alone and index < len(calls) else None


def _uncapped(turn: Turn) -> TurnSettings:
    """Return the turn's settings without caps, so that the current caps apply: the user may have raised them."""
    return turn.settings.model_copy(update={"cap_conversation_usd": None, "cap_day_usd": None})


async def _kept(conversation: Conversation, upload: ImagePart, images: ImageStore) -> KeptUpload:
    """Return an upload for sending again. Raises RequestRefused(PICTURE_NOT_FOUND) when its file is gone."""
    if not await images.has(upload):
        raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=upload.handle or "")
    picture = next((one for one in conversation.all_pictures if one.handle == upload.handle), None)
    name = f"{(upload.handle or '').lstrip('#')}.png"
    return KeptUpload(name, upload, picture.original if picture else None)


async def _area_of(conversation: Conversation, turn: Turn, images: ImageStore, meant: Mapping[str, str]) -> _Area:
    """Return the masks or the expansion of the turn; `meant` maps the handles of their pictures to the new handles."""
    masked = [one for one in turn.masked if one.handle in meant]
    if masked:
        return {"mask": [Mask(await images.read(one.mask), meant[one.handle], one.feather_px) for one in masked]}
    if turn.margins is None or turn.editing is None or turn.editing not in meant:
        return {}
    image, grown = conversation.picture(turn.editing).image, turn.margins
    width, height = image.width or 1, image.height or 1
    shares = {"left": grown.left / width, "right": grown.right / width}
    shares |= {"top": grown.top / height, "bottom": grown.bottom / height}
    return {"expand": Expansion(meant[turn.editing], **shares)}


async def follow_record(records: Records, conversation_id: str, owner: str, turn_id: str) -> AsyncIterator[TurnEvent]:
    """Stream the events of a turn in any process: pictures as they are recorded, all others when it ends or pauses.

    A turn whose process died is closed as interrupted (`is_cut`). Raises RequestRefused when the conversation or the
    turn is gone.
    """
    published: set[str] = set()
    is_first = True
    while True:
        seen = records.changes()
        conversation = await records.conversations.get(conversation_id, owner)
        turn = await records.conversations.turn(conversation_id, turn_id)
        if turn is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        if is_first:
            yield TurnStarted(turn_id=turn.id, uploads=turn.uploads)
            is_first = False
        if turn.state is not TurnState.RUNNING:
            break
        for picture in conversation.all_pictures:
            image = picture.image
            is_made_here = picture.turn_id == turn_id and image.origin is not ImageOrigin.UPLOADED
            if is_made_here and picture.handle not in published:
                published.add(picture.handle)
                label = picture.receipt.model_label if picture.receipt else ""
                yield PaintingStarted(count=1, width=image.width or 1, height=image.height or 1, model_label=label)
                yield PictureReady(index=0, picture=picture)
        if not await records.turns.is_running(conversation_id):
            await records.turns.close_abandoned()
        else:
            await records.changed(seen, _LOOK_AGAIN_S)
    for event in replay_events(conversation, turn):
        is_told = isinstance(event, PictureReady) and event.picture.handle in published
        if not is_told and not isinstance(event, TurnStarted):
            yield event


def replay_events(conversation: Conversation, turn: Turn) -> Iterator[TurnEvent]:
    """Yield the turn's events from its record, without any model call."""
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
            # Running in another process, or paused until the user decides.
            return TurnPaused(turn_id=turn.id)
