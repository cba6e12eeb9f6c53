"""A request made ready to run: read, checked, its pictures taken in, given an id."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from pathlib import Path

from agent.conversation import Conversation, Turn
from agent.errors import ErrorCode, RequestRefused
from agent.imaging.handles import allot_handle
from agent.imaging.intake import check_request, shown_name, take_in
from agent.messages import ImageOrigin
from agent.pictures import Picture
from agent.requests import TurnRequest
from agent.storage.images import ImageStore
from agent.workflow.turn import prompt_message


async def prepare(
    request: TurnRequest, conversation: Conversation, images: ImageStore, provider_name: str
) -> tuple[Turn, list[Picture]]:
    """Return the turn and its uploads, not yet on record. Raises RequestRefused for bad input."""
    check_request(request.text, len(request.images))
    handles = [request.editing] if request.editing else []
    for handle in (*handles, *request.references):
        conversation.picture(handle)
    turn_id = uuid.uuid4().hex
    uploads = await _take_in(request, conversation, images, turn_id)
    turn = Turn(
        id=turn_id,
        text=request.text,
        settings=request.settings,
        started_at=datetime.now(UTC),
        provider=provider_name,
        request_id=request.request_id,
        uploads=tuple(picture.image for picture in uploads),
        editing=request.editing,
        references=request.references,
    )
    # On record with its own message, so that the model hears of the turn even when this process dies in it.
    return turn.model_copy(update={"messages": (prompt_message(turn),)}), uploads


async def _take_in(request: TurnRequest, conversation: Conversation, images: ImageStore, turn_id: str) -> list[Picture]:
    """Return the uploads as pictures with handles; all are read before the first is stored."""
    read = [await _read(image, number) for number, image in enumerate(request.images, 1)]
    taken = [await take_in(data, name) for name, data in read]
    handles = [picture.handle for picture in conversation.pictures]
    uploads = []
    for one in taken:
        part = await images.write(one.data, one.mime_type, ImageOrigin.UPLOADED)
        handles.append(allot_handle(handles, base=None))
        named = part.model_copy(update={"width": one.width, "height": one.height, "handle": handles[-1]})
        uploads.append(Picture(handle=handles[-1], image=named, turn_id=turn_id, created_at=datetime.now(UTC)))
    return uploads


async def _read(image: bytes | Path | tuple[str, bytes], number: int) -> tuple[str, bytes]:
    """Return a name to speak of and the bytes of one picture of a request."""
    if isinstance(image, bytes):
        return f"Picture {number}", image
    if isinstance(image, tuple):
        return image
    try:
        return image.name, await asyncio.to_thread(image.read_bytes)
    except OSError as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=shown_name(image.name)) from error
