"""A turn's request as it was, to be sent again or said otherwise."""

from __future__ import annotations

from typing import TypedDict

from agent.conversation import Conversation, Turn
from agent.errors import ErrorCode, RequestRefused
from agent.messages import ImagePart
from agent.requests import Expansion, KeptUpload, Mask, TurnRequest
from agent.storage.images import ImageStore


class _Area(TypedDict, total=False):
    mask: Mask
    expand: Expansion


async def request_of(conversation: Conversation, turn: Turn, images: ImageStore) -> TurnRequest:
    """Return the request that the turn was: words, pictures, area and settings.

    Raises RequestRefused(PICTURE_NOT_FOUND) when the file of one of its pictures is gone.
    """
    sent = [await _kept(conversation, upload, images) for upload in turn.uploads]
    return TurnRequest(
        text=turn.text,
        images=sent,
        # Caps are those of today: whoever raised one does so in order to go on.
        settings=turn.settings.model_copy(update={"cap_conversation_usd": None, "cap_day_usd": None}),
        editing=_meant(turn),
        references=turn.references,
        roles=turn.roles,
        **await _area_of(conversation, turn, images),
    )


async def _kept(conversation: Conversation, upload: ImagePart, images: ImageStore) -> KeptUpload:
    """Return an upload to be sent again. Raises RequestRefused(PICTURE_NOT_FOUND) when its file is gone."""
    if not await images.has(upload):
        raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=upload.handle or "")
    picture = next((one for one in conversation.all_pictures if one.handle == upload.handle), None)
    name = f"{(upload.handle or '').lstrip('#')}.png"
    return KeptUpload(name, upload, picture.original if picture else None)


def _meant(turn: Turn) -> str | None:
    """Return what the turn calls the picture to be changed: one that came with it comes once more, as a new one."""
    numbers = {upload.handle: number for number, upload in enumerate(turn.uploads, 1)}
    return f"upload:{numbers[turn.editing]}" if turn.editing in numbers else turn.editing


async def _area_of(conversation: Conversation, turn: Turn, images: ImageStore) -> _Area:
    """Return the mask or the expansion that the turn was sent with."""
    meant = _meant(turn)
    if meant is None or turn.editing is None:
        return {}
    if turn.mask is not None:
        return {"mask": Mask(await images.read(turn.mask), meant, turn.feather_px)}
    if turn.margins is None:
        return {}
    image, grown = conversation.picture(turn.editing).image, turn.margins
    width, height = image.width or 1, image.height or 1
    shares = {"left": grown.left / width, "right": grown.right / width}
    shares |= {"top": grown.top / height, "bottom": grown.bottom / height}
    return {"expand": Expansion(meant, **shares)}
