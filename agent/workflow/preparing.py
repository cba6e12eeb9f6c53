"""Prepares a request to run: validates it, stores its pictures, and assigns an id."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from agent.conversation import Conversation, MaskedPicture, Turn
from agent.errors import ErrorCode, RequestRefused
from agent.imaging.intake import check_request, shown_name, take_in_image
from agent.imaging.intents import expansion_note, mask_note
from agent.imaging.references import read_roles
from agent.messages import ContentPart, ImageOrigin, ImagePart, PromptMessage, Role, TextPart
from agent.pictures import (
    MAX_MEGAPIXELS,
    MAX_MESSAGE_MEGABYTES,
    MAX_PICTURES_PER_MESSAGE,
    MAX_SIDE_PX,
    Margins,
    OriginalFile,
    Picture,
    upload_limit_megabytes,
)
from agent.requests import NO_PICTURE, Expansion, KeptUpload, Mask, TurnRequest, UploadSource, upload_number
from agent.storage.images import ImageStore, StagedImage
from agent.storage.private_files import StagedFile
from agent.wording.requests import read_expansion
from agent.workflow.masked import mask_of, stored

T = TypeVar("T")
_ANEW = "[The person marked no picture to change: what they ask for is a new one, unless they name another.]"


@dataclass(frozen=True)
class _Upload:
    """A decoded and cleaned picture of this request, with its future handle.

    `staged` and `staged_original` (its file) are on the disk but not stored yet; a picture that was uploaded before has
    neither.
    """

    handle: str
    name: str
    image: ImagePart
    original: OriginalFile | None
    staged: StagedImage | None = None
    staged_original: StagedFile | None = None

    async def store(self, turn_id: str) -> Picture:
        """Put the picture into the store and return it."""
        if self.staged is not None:
            await self.staged.keep()
        if self.staged_original is not None:
            await asyncio.to_thread(self.staged_original.keep)
        return Picture(
            handle=self.handle, image=self.image, turn_id=turn_id, created_at=datetime.now(UTC), original=self.original
        )

    async def drop(self) -> None:
        """Remove the staged files that were not stored."""
        if self.staged is not None:
            await self.staged.drop()
        if self.staged_original is not None:
            await asyncio.to_thread(self.staged_original.drop)


@dataclass(frozen=True)
class _Target:
    """The picture of a mask or an expansion: its handle, its name in messages to the user, width and height."""

    handle: str
    name: str
    size: tuple[int, int]


@dataclass(frozen=True)
class _Marked:
    """The user's selection: the picture to change, and its masks or its expansion."""

    editing: str | None = None
    masked: tuple[MaskedPicture, ...] = ()
    margins: Margins | None = None
    notes: tuple[str, ...] = ()


async def prepare(
    request: TurnRequest, conversation: Conversation, images: ImageStore, provider_name: str, handles: Sequence[str]
) -> tuple[Turn, list[Picture]]:
    """Return the turn and its uploads, which are not recorded yet; `handles` are the handles for the uploads.

    Raises RequestRefused for invalid input.
    """
    check_request(request.text, len(request.images))
    _check_area(request, conversation)
    for handle in request.references:
        conversation.picture(handle)
    roles = read_roles({conversation.picture(handle).handle: role for handle, role in request.roles.items()})
    taken: list[_Upload] = []
    turn_id = uuid.uuid4().hex
    try:
        # All validation happens before the first picture is stored.
        await _take_in(request, conversation.owner, handles, images, taken)
        marked = await _marked(request, conversation, images, taken)
        uploads = [await upload.store(turn_id) for upload in taken]
    finally:
        for upload in taken:
            await upload.drop()
    masked = next(iter(marked.masked), None)
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
        mask=masked.mask if masked else None,
        feather_px=masked.feather_px if masked else None,
        margins=marked.margins,
        more_masks=marked.masked[1:],
    )
    # Recorded with the user's message, so that later turns contain it even if this process dies during the turn.
    return turn.model_copy(update={"messages": (_prompt_message(turn, *marked.notes),)}), uploads


def _prompt_message(turn: Turn, *areas: str) -> PromptMessage:
    """Return the user's message: text, notes about marked pictures (`areas`: about parts), then the uploads."""
    parts: list[ContentPart] = [TextPart(text=turn.text)] if turn.text else []
    if turn.editing:
        parts.append(TextPart(text=f"[The person marked {turn.editing} as the picture to change.]"))
        parts += [TextPart(text=area) for area in areas]
    elif turn.starts_anew and turn.text and not turn.uploads:
        parts.append(TextPart(text=_ANEW))
    if turn.references:
        marked = (f"{one} ({turn.roles[one]})" if one in turn.roles else one for one in turn.references)
        parts.append(TextPart(text=f"[The person marked as references: {', '.join(marked)}.]"))
    if not parts and not turn.uploads:
        # The studio asks back without sending this; but a message in the history must not be empty.
        parts.append(TextPart(text="[The person sent an empty message.]"))
    return PromptMessage(role=Role.PROMPT, parts=(*parts, *turn.uploads))


def kept_uploads(request: TurnRequest, uploads: Sequence[Picture]) -> list[KeptUpload]:
    """Return the request's pictures as KeptUploads, after they were stored."""
    names = (_name(image, number) for number, image in enumerate(request.images, 1))
    return [KeptUpload(name, one.image, one.original) for name, one in zip(names, uploads, strict=True)]


def _check_area(request: TurnRequest, conversation: Conversation) -> None:
    """Check the picture to change and its masks or expansion. Raises RequestRefused.

    The picture must exist, the masks or the expansion must include it, and no picture may have two masks."""
    areas: list[Mask | Expansion] = [*request.masks, *([request.expand] if request.expand else [])]
    if not areas:
        if request.editing and request.editing != NO_PICTURE:
            conversation.picture(request.editing)
        return
    if request.masks and request.expand is not None:
        raise RequestRefused(ErrorCode.MASK_AND_EXPANSION)
    if len(areas) > MAX_PICTURES_PER_MESSAGE:
        raise RequestRefused(ErrorCode.TOO_MANY_PICTURES, count=len(areas), limit=MAX_PICTURES_PER_MESSAGE)
    meant = [_meant(request, conversation, area.handle) for area in areas]
    twice = next((one for place, one in enumerate(meant) if one in meant[:place]), None)
    if twice is not None:
        raise RequestRefused(ErrorCode.MASKED_TWICE, handle=_called(request, twice))
    if request.editing == NO_PICTURE or (
        request.editing and _meant(request, conversation, request.editing) not in meant
    ):
        raise RequestRefused(ErrorCode.MASK_OF_ANOTHER_PICTURE, handle=_called(request, meant[0]))


def _meant(request: TurnRequest, conversation: Conversation, handle: str) -> str | int:
    """Return the identity of a picture: its handle, or its number among the pictures of this request."""
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
    if request.masks:
        targets = [_target(conversation, uploads, mask.handle) for mask in request.masks]
        read = [await mask_of(one.image, at.size, at.name) for one, at in zip(request.masks, targets, strict=True)]
        # All masks are read before the first one is stored.
        taken = [
            MaskedPicture(handle=at.handle, mask=await stored(images, mask.data, at.size), feather_px=one.feather_px)
            for one, at, mask in zip(request.masks, targets, read, strict=True)
        ]
        first = _target(conversation, uploads, request.editing or request.masks[0].handle).handle
        taken.sort(key=lambda one: one.handle != first)
        return _Marked(first, tuple(taken), notes=tuple(mask_note(one.handle) for one in taken))
    area = request.expand or _expansion_in_words(request, conversation, uploads)
    if area is None:
        return _Marked("" if request.editing == NO_PICTURE else request.editing or None)
    target = _target(conversation, uploads, area.handle)
    margins = _margins(area, target)
    return _Marked(target.handle, margins=margins, notes=(expansion_note(target.handle, *target.size, margins),))


def _expansion_in_words(
    request: TurnRequest, conversation: Conversation, uploads: Sequence[_Upload]
) -> Expansion | None:
    """Return the expansion that the text asks for; None when it asks for anything else.

    Raises RequestRefused(EXPANSION_EMPTY) for a ratio that the picture already has.
    """
    expansion = read_expansion(request.text)
    if expansion is None or request.references or len(uploads) > 1:
        return None
    sent = f"upload:{len(uploads)}" if uploads else None
    marked = sent if request.editing == NO_PICTURE else request.editing or sent or conversation.edit_target
    if marked is None:
        return None
    target = _target(conversation, uploads, marked)
    left, top, right, bottom = expansion.shares(*target.size)
    if not any((left, top, right, bottom)):
        raise RequestRefused(ErrorCode.EXPANSION_EMPTY, handle=target.name)
    return Expansion(marked, left, top, right, bottom)


def _target(conversation: Conversation, uploads: Sequence[_Upload], handle: str) -> _Target:
    number = upload_number(handle)
    if number is not None:
        upload = uploads[number - 1]
        return _Target(upload.handle, shown_name(upload.name), (upload.image.width or 1, upload.image.height or 1))
    picture = conversation.picture(handle)
    return _Target(picture.handle, picture.handle, (picture.image.width or 1, picture.image.height or 1))


def _margins(expansion: Expansion, target: _Target) -> Margins:
    """Return the expansion in pixels of the picture. Raises RequestRefused(EXPANSION_EMPTY or EXPANSION_TOO_LARGE)."""
    width, height = target.size
    shares = (expansion.left, expansion.top, expansion.right, expansion.bottom)
    if any(not math.isfinite(share) or share < 0 for share in shares):
        raise RequestRefused(ErrorCode.EXPANSION_EMPTY, handle=target.name)
    # Limits huge shares: MAX_SIDE_PX times the side is too large for any picture.
    left, top, right, bottom = (
        round(min(share, MAX_SIDE_PX) * side) for share, side in zip(shares, (width, height) * 2, strict=True)
    )
    if not any((left, top, right, bottom)):
        raise RequestRefused(ErrorCode.EXPANSION_EMPTY, handle=target.name)
    wide, high = width + left + right, height + top + bottom
    if max(wide, high) > MAX_SIDE_PX or wide * high > MAX_MEGAPIXELS * 1_000_000:
        raise RequestRefused(ErrorCode.EXPANSION_TOO_LARGE, handle=target.name, width=wide, height=high)
    return Margins(left=left, top=top, right=right, bottom=bottom)


async def _take_in(
    request: TurnRequest, owner: str, handles: Sequence[str], images: ImageStore, taken: list[_Upload]
) -> None:
    """Decode the request's pictures and add them to `taken`, one by one, so that only one is in memory at a time."""
    sizes = [await _size_bytes(image) for image in request.images]
    if sum(sizes) > MAX_MESSAGE_MEGABYTES << 20:
        megabytes = math.ceil(sum(sizes) / (1 << 20))
        raise RequestRefused(ErrorCode.PICTURES_TOO_LARGE, megabytes=megabytes, limit=MAX_MESSAGE_MEGABYTES)
    limit = upload_limit_megabytes(owner)
    for number, (image, handle) in enumerate(zip(request.images, handles, strict=True), 1):
        name = _name(image, number)
        if isinstance(image, KeptUpload):
            kept = image.image.model_copy(update={"handle": handle})
            taken.append(_Upload(handle, name, kept, image.original))
        else:
            taken.append(await _staged(await _read(image), name, handle, images, limit))


async def _staged(data: bytes, name: str, handle: str, images: ImageStore, limit_megabytes: int) -> _Upload:
    clean = await take_in_image(data, name, limit_megabytes=limit_megabytes)
    staged = await images.stage(clean.data, clean.mime_type, ImageOrigin.UPLOADED)
    try:
        file = await images.stage_original(data)
    except BaseException:
        await staged.drop()
        raise
    original = OriginalFile(
        digest=file.digest, mime_type=clean.file_mime_type, size_bytes=len(data), bit_depth=clean.file_bit_depth
    )
    measured = {"width": clean.width, "height": clean.height, "bit_depth": clean.bit_depth, "handle": handle}
    return _Upload(handle, name, staged.image.model_copy(update=measured), original, staged, file)


def _name(image: UploadSource, number: int) -> str:
    """Return the name of a picture of the request."""
    match image:
        case bytes():
            return f"Picture {number}"
        case tuple():
            return image[0]
        case _:
            return image.name


async def _size_bytes(image: UploadSource) -> int:
    match image:
        case bytes():
            return len(image)
        case tuple():
            return len(image[1])
        case KeptUpload():
            return 0
        case _:
            return (await _of_path(image, Path.stat)).st_size


async def _read(image: bytes | Path | tuple[str, bytes]) -> bytes:
    match image:
        case bytes():
            return image
        case tuple():
            return image[1]
        case _:
            return await _of_path(image, Path.read_bytes)


async def _of_path(path: Path, look: Callable[[Path], T]) -> T:
    try:
        return await asyncio.to_thread(look, path)
    except OSError as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=shown_name(path.name)) from error
