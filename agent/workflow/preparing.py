"""A request made ready to run: read, checked, its pictures taken in, given an id."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

from agent.conversation import Conversation, Turn
from agent.errors import ErrorCode, RequestRefused
from agent.imaging.handles import allot_handle
from agent.imaging.intake import MAX_MEGAPIXELS, MAX_SIDE_PX, check_request, shown_name, take_in
from agent.imaging.intents import expansion_note, mask_note
from agent.imaging.roles import read_roles
from agent.messages import ImageOrigin, ImagePart
from agent.pictures import Margins, Picture
from agent.requests import Expansion, Mask, TurnRequest
from agent.storage.images import ImageStore
from agent.workflow.masked import take_mask
from agent.workflow.turn import prompt_message


@dataclass(frozen=True)
class _Marked:
    """What the person marked: the picture to change, and what of it may change or how far it grows."""

    editing: str | None = None
    mask: ImagePart | None = None
    margins: Margins | None = None
    note: str = ""


async def prepare(
    request: TurnRequest, conversation: Conversation, images: ImageStore, provider_name: str
) -> tuple[Turn, list[Picture]]:
    """Return the turn and its uploads, not yet on record. Raises RequestRefused for bad input."""
    check_request(request.text, len(request.images))
    handles = [request.editing] if request.editing else []
    for handle in (*handles, *request.references):
        conversation.picture(handle)
    roles = read_roles({conversation.picture(handle).handle: role for handle, role in request.roles.items()})
    marked = await _marked(request, conversation, images)
    turn_id = uuid.uuid4().hex
    uploads = await _take_in(request, conversation, images, turn_id)
    turn = Turn(
        id=turn_id,
        text=request.text,
        settings=request.settings,
        started_at=datetime.now(UTC),
        provider=provider_name,
        request_id=request.request_id,
        parent=conversation.turns[-1].id if conversation.turns else None,
        uploads=tuple(picture.image for picture in uploads),
        editing=marked.editing,
        references=tuple(dict.fromkeys((*request.references, *(one for one in roles if one != marked.editing)))),
        roles=roles,
        mask=marked.mask,
        feather_px=request.mask.feather_px if request.mask else None,
        margins=marked.margins,
    )
    # On record with its own message, so that the model hears of the turn even when this process dies in it.
    return turn.model_copy(update={"messages": (prompt_message(turn, marked.note),)}), uploads


async def _marked(request: TurnRequest, conversation: Conversation, images: ImageStore) -> _Marked:
    area = request.mask or request.expand
    if area is None:
        return _Marked(request.editing)
    if request.mask is not None and request.expand is not None:
        raise RequestRefused(ErrorCode.MASK_AND_EXPANSION)
    picture = conversation.picture(area.handle)
    if request.editing and conversation.picture(request.editing) != picture:
        raise RequestRefused(ErrorCode.MASK_OF_ANOTHER_PICTURE, handle=picture.handle)
    if isinstance(area, Mask):
        mask = await take_mask(images, area.image, picture)
        return _Marked(picture.handle, mask=mask, note=mask_note(picture.handle))
    width, height = _size(picture)
    margins = _margins(area, picture)
    return _Marked(picture.handle, margins=margins, note=expansion_note(picture.handle, width, height, margins))


def _margins(expansion: Expansion, picture: Picture) -> Margins:
    """Return how far the picture grows, in its own pixels."""
    width, height = _size(picture)
    shares = (expansion.left, expansion.top, expansion.right, expansion.bottom)
    if any(not isfinite(share) or share < 0 for share in shares):
        raise RequestRefused(ErrorCode.EXPANSION_EMPTY, handle=picture.handle)
    # A share may be any number; more than a side of that many pixels is too large whatever the picture.
    left, top, right, bottom = (
        round(min(share, MAX_SIDE_PX) * side) for share, side in zip(shares, (width, height) * 2, strict=True)
    )
    if not any((left, top, right, bottom)):
        raise RequestRefused(ErrorCode.EXPANSION_EMPTY, handle=picture.handle)
    wide, high = width + left + right, height + top + bottom
    if max(wide, high) > MAX_SIDE_PX or wide * high > MAX_MEGAPIXELS * 1_000_000:
        raise RequestRefused(ErrorCode.EXPANSION_TOO_LARGE, handle=picture.handle, width=wide, height=high)
    return Margins(left=left, top=top, right=right, bottom=bottom)


def _size(picture: Picture) -> tuple[int, int]:
    return picture.image.width or 1, picture.image.height or 1


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
