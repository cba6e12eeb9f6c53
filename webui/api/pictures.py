"""Pictures of a conversation by handle: bytes, small copies, receipts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from agent import Receipt, Value
from webui.api.door import TheCaller, TheDoor
from webui.api.problems import RefusalCode, Refused
from webui.api.views import PictureView, picture_view

router = APIRouter(prefix="/api/v1/conversations/{conversation_id}/pictures", tags=["pictures"])

SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HEADERS = {"Cache-Control": "private, no-cache", **SAFE}
PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The picture.", "content": {"image/*": {"schema": {"type": "string"}}}}
}


class Pictures(Value):
    """The pictures of the branch that is shown, the oldest first; `elsewhere` are those of other branches."""

    pictures: tuple[PictureView, ...]
    elsewhere: tuple[PictureView, ...] = Field(default=())


@router.get("")
async def list_pictures(door: TheDoor, caller: TheCaller, conversation_id: str) -> Pictures:
    """Return what pictures there are."""
    conversation = await door.studio().conversations.get(conversation_id, caller.owner)
    return Pictures(
        pictures=tuple(picture_view(conversation.id, one) for one in conversation.pictures),
        elsewhere=tuple(picture_view(conversation.id, one) for one in conversation.elsewhere),
    )


@router.get("/{handle}", response_class=Response, responses=PICTURE)
async def read_picture(
    door: TheDoor,
    caller: TheCaller,
    conversation_id: str,
    handle: str,
    form: Annotated[
        Literal["original", "recipe", "clean"],
        Query(description="The bytes as they came, with the picture's recipe in them, or with nothing said of it."),
    ] = "original",
) -> Response:
    """Return the bytes of a picture; the pixels are the same in each form. The handle is `7b` or `%237b`."""
    studio, owner = door.studio(), caller.owner
    if form == "original":
        stored = await studio.picture(conversation_id, handle, owner)
        return Response(stored.data, media_type=stored.mime_type, headers=_HEADERS)
    if form == "clean":
        file = await studio.recipes.clean(conversation_id, handle, owner)
    else:
        file = await studio.recipes.with_recipe(conversation_id, handle, owner, key=caller.key)
    return Response(file.data, media_type=file.picture.image.mime_type, headers=_HEADERS)


@router.get("/{handle}/thumbnail", response_class=Response, responses=PICTURE)
async def read_thumbnail(
    door: TheDoor,
    caller: TheCaller,
    conversation_id: str,
    handle: str,
    edge_px: Annotated[int, Query(ge=16, le=2048)] = 512,
) -> Response:
    """Return a small copy as WebP, its longer edge at most `edge_px`."""
    data, mime_type = await door.studio().thumbnail(conversation_id, handle, edge_px, caller.owner)
    return Response(data, media_type=mime_type, headers=_HEADERS)


@router.get("/{handle}/receipt")
async def read_receipt(door: TheDoor, caller: TheCaller, conversation_id: str, handle: str) -> Receipt:
    """Return asked against got. An upload has no receipt, which is answered with 404."""
    picture = (await door.studio().conversations.get(conversation_id, caller.owner)).picture(handle)
    if picture.receipt is None:
        raise Refused(RefusalCode.NO_RECEIPT, handle=picture.handle)
    return picture.receipt
