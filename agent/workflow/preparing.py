"""A request made ready to run: read, checked, its pictures taken in, given an id."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

from agent.conversation import Conversation, Turn
from agent.errors import ErrorCode, RequestRefused
from agent.imaging.handles import allot_handle
from agent.imaging.intake import MAX_MEGAPIXELS, MAX_SIDE_PX, TakenIn, check_request, shown_name, take_in
from agent.imaging.intents import expansion_note, mask_note
from agent.imaging.roles import read_roles
from agent.messages import ImageOrigin, ImagePart
from agent.pictures import Margins, Picture
from agent.requests import Expansion, Mask, TurnRequest, upload_number
from agent.storage.images import ImageStore
from agent.workflow.masked import take_mask_of
from agent.workflow.turn import prompt_message


@dataclass(frozen=True)
class _Upload:
    """A picture of this request: read and clean, under the handle it will have, but not stored yet."""

    handle: str
    name: str
    taken: TakenIn


@dataclass(frozen=True)
class _Target:
    """The picture that a mask or an expansion is meant for: its handle, what the person calls it, width and height."""

    handle: str
    name: str
    size: tuple[int, int]


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
    _check_area(request, conversation)
    for handle in request.references:
        conversation.picture(handle)
    roles = read_roles({conversation.picture(handle).handle: role for handle, role in request.roles.items()})
    # All that can be refused is judged before the first picture is stored.
    taken = await _take_in(request, conversation)
    marked = await _marked(request, conversation, images, taken)
    turn_id = uuid.uuid4().hex
    uploads = [await _stored(upload, images, turn_id) for upload in taken]
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


def _check_area(request: TurnRequest, conversation: Conversation) -> None:
    """Return when the picture marked to be changed is there, and a mask or an expansion belongs to that one."""
    area = request.mask or request.expand
    if area is None:
        if request.editing:
            conversation.picture(request.editing)
        return
    if request.mask is not None and request.expand is not None:
        raise RequestRefused(ErrorCode.MASK_AND_EXPANSION)
    meant = _meant(request, conversation, area.handle)
    if request.editing and _meant(request, conversation, request.editing) != meant:
        raise RequestRefused(ErrorCode.MASK_OF_ANOTHER_PICTURE, handle=_called(request, meant))


def _meant(request: TurnRequest, conversation: Conversation, handle: str) -> str | int:
    """Return which picture is meant: its handle, or its number among those of this request."""
    number = upload_number(handle)
    if number is None:
        return conversation.picture(handle).handle
    if not 1 <= number <= len(request.images):
        raise RequestRefused(ErrorCode.UPLOAD_MISSING, number=number)
    return number


def _called(request: TurnRequest, meant: str | int) -> str:
    return meant if isinstance(meant, str) else shown_name(_name(request.images[meant - 1], meant))


async def _marked(
    request: TurnRequest, conversation: Conversation, images: ImageStore, uploads: Sequence[_Upload]
) -> _Marked:
    area = request.mask or request.expand
    if area is None:
        return _Marked(request.editing)
    target = _target(conversation, uploads, area.handle)
    if isinstance(area, Mask):
        mask = await take_mask_of(images, area.image, target.size, target.name)
        return _Marked(target.handle, mask=mask, note=mask_note(target.handle))
    margins = _margins(area, target)
    return _Marked(target.handle, margins=margins, note=expansion_note(target.handle, *target.size, margins))


def _target(conversation: Conversation, uploads: Sequence[_Upload], handle: str) -> _Target:
    number = upload_number(handle)
    if number is not None:
        upload = uploads[number - 1]
        return _Target(upload.handle, shown_name(upload.name), (upload.taken.width, upload.taken.height))
    picture = conversation.picture(handle)
    return _Target(picture.handle, picture.handle, (picture.image.width or 1, picture.image.height or 1))


def _margins(expansion: Expansion, target: _Target) -> Margins:
    """Return how far the picture grows, in its own pixels."""
    width, height = target.size
    shares = (expansion.left, expansion.top, expansion.right, expansion.bottom)
    if any(not isfinite(share) or share < 0 for share in shares):
        raise RequestRefused(ErrorCode.EXPANSION_EMPTY, handle=target.name)
    # A share may be any number; more than a side of that many pixels is too large whatever the picture.
    left, top, right, bottom = (
        round(min(share, MAX_SIDE_PX) * side) for share, side in zip(shares, (width, height) * 2, strict=True)
    )
    if not any((left, top, right, bottom)):
        raise RequestRefused(ErrorCode.EXPANSION_EMPTY, handle=target.name)
    wide, high = width + left + right, height + top + bottom
    if max(wide, high) > MAX_SIDE_PX or wide * high > MAX_MEGAPIXELS * 1_000_000:
        raise RequestRefused(ErrorCode.EXPANSION_TOO_LARGE, handle=target.name, width=wide, height=high)
    return Margins(left=left, top=top, right=right, bottom=bottom)


async def _take_in(request: TurnRequest, conversation: Conversation) -> list[_Upload]:
    """Return the request's pictures, read and with handles; none is stored."""
    read = [(_name(image, number), await _read(image)) for number, image in enumerate(request.images, 1)]
    handles = list(conversation.handles)
    uploads = []
    for name, data in read:
        handles.append(allot_handle(handles, base=None))
        uploads.append(_Upload(handles[-1], name, await take_in(data, name)))
    return uploads


async def _stored(upload: _Upload, images: ImageStore, turn_id: str) -> Picture:
    taken, handle = upload.taken, upload.handle
    part = await images.write(taken.data, taken.mime_type, ImageOrigin.UPLOADED)
    named = part.model_copy(update={"width": taken.width, "height": taken.height, "handle": handle})
    return Picture(handle=handle, image=named, turn_id=turn_id, created_at=datetime.now(UTC))


def _name(image: bytes | Path | tuple[str, bytes], number: int) -> str:
    """Return what to call one picture of a request."""
    if isinstance(image, bytes):
        return f"Picture {number}"
    return image[0] if isinstance(image, tuple) else image.name


async def _read(image: bytes | Path | tuple[str, bytes]) -> bytes:
    if isinstance(image, bytes):
        return image
    if isinstance(image, tuple):
        return image[1]
    try:
        return await asyncio.to_thread(image.read_bytes)
    except OSError as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=shown_name(image.name)) from error
